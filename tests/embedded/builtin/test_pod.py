"""Pods: what changes at creation, what may change later, how long a delete takes, and the columns of `kubectl get`."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from danlu.embedded.builtin.core.pod import SERVED
from danlu.embedded.builtin.core.podtable import readiness_gates_of, ready_of, restarts_of, status_of
from danlu.meta.kind import Object


def stored(**spec: Any) -> Object:
    spec.setdefault("containers", [{"name": "a", "image": "b:1"}])
    obj: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    SERVED.default(obj)
    SERVED.prepare_create(obj)
    return obj


def changed(old: Object, **spec: Any) -> list[str]:
    new = copy.deepcopy(old)
    new["spec"].update(spec)
    SERVED.default(new)
    SERVED.prepare_update(new, old)
    return [error.message() for error in SERVED.validate_update(new, old)]


def test_a_new_pod_is_pending_whatever_the_client_said() -> None:
    obj: Object = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": "Running"},
    }
    SERVED.default(obj)
    SERVED.prepare_create(obj)
    assert obj["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert obj["metadata"]["generation"] == 1


def test_an_image_may_change_and_counts_as_a_generation() -> None:
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["image"] = "b:2"
    SERVED.prepare_update(new, old)
    assert SERVED.validate_update(new, old) == []
    assert new["metadata"]["generation"] == 2


def test_other_fields_may_not_change() -> None:
    (found,) = changed(stored(), restartPolicy="Never")
    assert found.startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n@@"
    )
    assert '- "RestartPolicy": "Always",\n+ "RestartPolicy": "Never",\n' in found


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"activeDeadlineSeconds": 5}, []),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
        ),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": None},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
        ),
        ({}, {"tolerations": [{"key": "k", "operator": "Exists"}]}, []),
        (
            {"tolerations": [{"key": "k", "operator": "Exists"}]},
            {"tolerations": []},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        ),
        ({"schedulingGates": [{"name": "a/b"}]}, {"schedulingGates": []}, []),
        (
            {},
            {"schedulingGates": [{"name": "a/b"}]},
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"],
        ),
        ({"schedulingGates": [{"name": "a/b"}]}, {"nodeSelector": {"disk": "ssd"}}, []),
        (
            {},
            {"containers": [{"name": "a", "image": "b:1"}, {"name": "c", "image": "d"}]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
        ),
    ],
)
def test_what_may_change(before: Object, after: Object, expected: list[str]) -> None:
    assert changed(stored(**before), **after) == expected


def test_status_keeps_spec_owners_and_class() -> None:
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["nodeName"] = "elsewhere"
    new["metadata"]["ownerReferences"] = [{"name": "x"}]
    new["status"] = {"phase": "Running"}
    SERVED.prepare_status(new, old)
    assert "nodeName" not in new["spec"]
    assert "ownerReferences" not in new["metadata"]
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "expected"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Succeeded", None, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
    ],
)
def test_grace(spec: Object, phase: str, asked: int | None, expected: int) -> None:
    obj = stored(**spec)
    obj["status"]["phase"] = phase
    assert SERVED.grace(obj, asked) == expected


def test_fields_to_select_by() -> None:
    obj = stored(nodeName="n", hostNetwork=True)
    obj["status"]["podIPs"] = [{"ip": "127.1.0.1"}]
    fields = SERVED.selectable(obj)
    assert fields["spec.nodeName"] == "n"
    assert fields["spec.hostNetwork"] == "true"
    assert fields["status.podIP"] == "127.1.0.1"
    assert set(fields) == SERVED.selectable_names


# -- columns

RUN = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
INITIALIZED = {"type": "Initialized", "status": "True"}
READY = {"type": "Ready", "status": "True"}


def ended(code: int = 0, reason: str = "", signal: int = 0) -> Object:
    state: Object = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
    if reason:
        state["reason"] = reason
    if signal:
        state["signal"] = signal
    return {"terminated": state}


def waits(reason: str) -> Object:
    return {"waiting": {"reason": reason}}


def container(name: str, state: Object, **more: Any) -> Object:
    return {"name": name, "state": state, "ready": False, "restartCount": 0, **more}


def pod(status: Object, *, inits: tuple[Object, ...] = (), names: tuple[str, ...] = ("a",)) -> Object:
    spec = {"containers": [{"name": name} for name in names], "initContainers": list(inits)}
    return {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Pending", **status}}


INITS = ({"name": "i"}, {"name": "j"})
SIDECAR = ({"name": "s", "restartPolicy": "Always"}, {"name": "i"})


@pytest.mark.parametrize(
    ("obj", "ready", "status"),
    [
        (pod({}), "0/1", "Pending"),
        (pod({"phase": "Running", "containerStatuses": [container("a", RUN, ready=True)]}), "1/1", "Running"),
        (pod({"containerStatuses": [container("a", waits("CrashLoopBackOff"))]}), "0/1", "CrashLoopBackOff"),
        (pod({"phase": "Succeeded", "containerStatuses": [container("a", ended(0, "Completed"))]}), "0/1", "Completed"),
        (pod({"phase": "Failed", "containerStatuses": [container("a", ended(137, "OOMKilled"))]}), "0/1", "OOMKilled"),
        (pod({"phase": "Failed", "containerStatuses": [container("a", ended(3))]}), "0/1", "ExitCode:3"),
        (pod({"phase": "Failed", "containerStatuses": [container("a", ended(0, "", 9))]}), "0/1", "Signal:9"),
        (pod({"phase": "Failed", "reason": "Evicted"}), "0/1", "Evicted"),
        (
            pod(
                {
                    "phase": "Running",
                    "conditions": [READY],
                    "containerStatuses": [container("a", ended(0, "Completed")), container("b", RUN, ready=True)],
                },
                names=("a", "b"),
            ),
            "1/2",
            "Running",
        ),
        (
            pod(
                {"containerStatuses": [container("a", ended(0, "Completed")), container("b", RUN, ready=True)]},
                names=("a", "b"),
            ),
            "1/2",
            "NotReady",
        ),
        (
            pod(
                {"initContainerStatuses": [container("i", RUN), container("j", waits("PodInitializing"))]}, inits=INITS
            ),
            "0/1",
            "Init:0/2",
        ),
        (
            pod(
                {"initContainerStatuses": [container("i", ended(0)), container("j", waits("PodInitializing"))]},
                inits=INITS,
            ),
            "0/1",
            "Init:1/2",
        ),
        (pod({"initContainerStatuses": [container("i", ended(1, "Error"))]}, inits=INITS), "0/1", "Init:Error"),
        (pod({"initContainerStatuses": [container("i", ended(4))]}, inits=INITS), "0/1", "Init:ExitCode:4"),
        (
            pod({"initContainerStatuses": [container("i", waits("CrashLoopBackOff"))]}, inits=INITS),
            "0/1",
            "Init:CrashLoopBackOff",
        ),
        (
            pod(
                {"initContainerStatuses": [container("s", RUN, ready=True, started=True), container("i", RUN)]},
                inits=SIDECAR,
            ),
            "1/2",
            "Init:1/2",
        ),
        (pod({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}), "0/1", "SchedulingGated"),
    ],
)
def test_ready_and_status(obj: Object, ready: str, status: str) -> None:
    assert (ready_of(obj), status_of(obj)) == (ready, status)


def test_a_pod_on_its_way_out() -> None:
    obj = pod({"phase": "Running", "containerStatuses": [container("a", RUN, ready=True)]})
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert status_of(obj) == "Terminating"
    obj["status"]["reason"] = "NodeLost"
    assert status_of(obj) == "Unknown"


def test_restarts_say_when() -> None:
    again = container("a", RUN, ready=True, restartCount=3, lastState=ended(1))
    shown = restarts_of(pod({"phase": "Running", "containerStatuses": [again]}))
    assert shown.startswith("3 (")
    assert shown.endswith(" ago)")
    assert restarts_of(pod({})) == "0"


def test_restarts_of_init_containers_count_while_they_run() -> None:
    trying = container("i", waits("CrashLoopBackOff"), restartCount=2)
    assert restarts_of(pod({"initContainerStatuses": [trying]}, inits=INITS)) == "2"
    done = container("i", ended(0), restartCount=2)
    running = {"initContainerStatuses": [done], "containerStatuses": [container("a", RUN)], "conditions": [INITIALIZED]}
    assert restarts_of(pod(running, inits=INITS)) == "0"


def test_readiness_gates() -> None:
    obj = pod({"conditions": [{"type": "x", "status": "True"}]})
    assert readiness_gates_of(obj) == "<none>"
    obj["spec"]["readinessGates"] = [{"conditionType": "x"}, {"conditionType": "y"}]
    assert readiness_gates_of(obj) == "1/2"


def test_warnings() -> None:
    obj = stored(
        containers=[
            {
                "name": "a",
                "image": "b",
                "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "TCP"}],
            }
        ]
    )
    assert SERVED.warnings(obj) == [
        'spec.containers[0].env[1]: hides previous definition of "X", which may be dropped when using apply',
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
    ]
