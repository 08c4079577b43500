"""The status of a pod, from what is known of its containers."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.embedded.node.pods import podstatus
from danlu.embedded.node.pods.podstatus import Ended, PodView, View
from danlu.meta import conditions
from danlu.meta.kind import Object

NOW = 1_800_000_000.0


def over(code: int, reason: str = "") -> Ended:
    exit: Any = {
        "exit_code": code, "signal": 0, "reason": reason or ("Completed" if code == 0 else "Error"), "message": "",
        "started_at": NOW - 10, "finished_at": NOW,
    }  # fmt: skip
    return Ended(exit, "danlu://x")


def runs(name: str = "c", **spec: Any) -> View:
    return View(name, running_since=NOW, container_id="danlu://x", waiting=None, started=True, ready=True, spec=spec)


def done(code: int, name: str = "c", **spec: Any) -> View:
    return View(name, container_id="danlu://x", ended=over(code), waiting=None, spec=spec)


def new(name: str = "c", **spec: Any) -> View:
    return View(name, spec=spec)


def pod(policy: str = "Always", **spec: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "generation": 3},
        "spec": {"restartPolicy": policy, "containers": [{"name": "c"}], **spec},
    }


@pytest.mark.parametrize(
    ("policy", "init", "main", "expected"),
    [
        ("Always", [], [new()], "Pending"),
        ("Always", [], [runs()], "Running"),
        ("Always", [], [runs(), new("d")], "Pending"),
        ("Always", [], [done(0)], "Running"),
        ("OnFailure", [], [done(1)], "Running"),
        ("OnFailure", [], [done(0)], "Succeeded"),
        ("Never", [], [done(1)], "Failed"),
        ("Never", [], [done(0), done(1, "d")], "Failed"),
        ("Never", [], [done(1), runs("d")], "Running"),
        ("Never", [runs("i")], [new()], "Pending"),
        ("Never", [done(1, "i")], [new()], "Failed"),
        ("Always", [done(1, "i")], [new()], "Pending"),
        ("Never", [done(0, "i")], [done(0)], "Succeeded"),
        ("Never", [runs("s", restartPolicy="Always")], [done(0)], "Running"),
        ("Never", [done(143, "s", restartPolicy="Always")], [done(0)], "Succeeded"),
    ],
)
def test_phase(policy: str, init: list[View], main: list[View], expected: str) -> None:
    assert podstatus.phase(pod(policy)["spec"], PodView(init, main)) == expected


def test_a_container_that_waits_for_its_restart_shows_how_it_ended() -> None:
    view = done(1)
    view.waiting = ("CrashLoopBackOff", "back-off 10s")
    view.restarts = 4
    found = view.status()
    assert found["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert found["lastState"]["terminated"]["exitCode"] == 1
    assert found["restartCount"] == 4


def test_conditions_of_a_running_pod() -> None:
    found = podstatus.compute(pod(), PodView([], [runs()], pod_ip="127.64.0.1", sandbox_ready=True), NOW)
    assert {c["type"]: c["status"] for c in found["conditions"]} == {
        "PodReadyToStartContainers": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True",
        "PodScheduled": "True",
    }  # fmt: skip
    assert found["podIPs"] == [{"ip": "127.64.0.1"}]
    assert found["observedGeneration"] == 3


def test_conditions_say_what_is_missing() -> None:
    found = podstatus.compute(pod(), PodView([new("i")], [new()]), NOW)
    initialized = conditions.get(found["conditions"], "Initialized")
    ready = conditions.get(found["conditions"], "Ready")
    assert initialized is not None
    assert initialized["message"] == "containers with incomplete status: [i]"
    assert ready is not None
    assert ready["message"] == "containers with unready status: [c]"


def test_readiness_gates_hold_a_pod_back() -> None:
    gated = pod(readinessGates=[{"conditionType": "example.com/x"}])
    found = podstatus.compute(gated, PodView([], [runs()]), NOW)
    ready = conditions.get(found["conditions"], "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")


def test_an_evicted_pod_fails_when_nothing_of_it_runs() -> None:
    view = PodView([], [done(137)], verdict=("Evicted", "low on memory"), finished=True)
    found = podstatus.compute(pod(), view, NOW)
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", "Evicted", "low on memory")


def test_what_others_wrote_stays() -> None:
    old = pod()
    old["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True"}], "nominatedNodeName": "n"}
    found = podstatus.compute(old, PodView([], [runs()]), NOW)
    assert conditions.is_true(found["conditions"], "DisruptionTarget")
    assert found["nominatedNodeName"] == "n"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: Object, expected: str) -> None:
    assert podstatus.qos_class({"containers": [{"name": "c", "resources": resources}]}) == expected


@pytest.mark.parametrize(("code", "expected"), [(42, True), (1, False)])
def test_restart_rules_of_a_container(code: int, expected: bool) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    view = done(code, restartPolicy="Never", restartPolicyRules=rules)
    assert podstatus.wants_restart(pod("Never")["spec"], view, False) is expected
