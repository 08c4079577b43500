"""Queue: its status, whose time is over, and what the rules in it say to a scheduler."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from danlu.kinds._gang import durations, markers
from danlu.kinds._gang.queuerules import rules_of
from danlu.kinds.crd import object_schema
from danlu.kinds.queue.kind import KIND
from danlu.kinds.queue.reconcile import Observed, reconcile
from danlu.kinds.registry import SUSPENSIONS
from danlu.kinds.suspension import Suspension
from danlu.meta.kind import Object
from danlu.meta.schema import structural

NOW = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)


def queue(namespace: str = "t9k-system", **spec: Any) -> Object:
    return {"metadata": {"name": "q", "namespace": namespace}, "spec": spec}


def pod(name: str, phase: str = "Running", started: str = "", node: str = "n", gpus: int = 1, **meta: Any) -> Object:
    status: Object = {"phase": phase}
    if started:
        status["startTime"] = started
    return {
        "metadata": {"name": name, "namespace": "demo", "labels": {markers.QUEUE_NAME: "q"}, **meta},
        "spec": {
            "schedulerName": markers.SCHEDULER,
            "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus), "cpu": "500m"}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": status,
    }


def test_status_counts_what_is_in_the_queue() -> None:
    pods = [pod("a"), pod("b"), pod("c", "Succeeded"), pod("d", "Pending", node=""), pod("e", "Odd")]
    group = {"metadata": {"name": "g"}, "spec": {"queue": "q"}}
    found = reconcile(queue(quota={"requests": {"nvidia.com/gpu": 3}}), Observed(pods, [group]), NOW).status
    assert found is not None
    assert found["pods"] == {"pending": 1, "running": 2, "succeeded": 1, "failed": 0, "unknown": 1}
    assert found["allocated"] == {"cpu": "1500m", "nvidia.com/gpu": "3"}
    assert found["podGroups"] == {"total": 5}
    told = {one["type"]: (one["status"], one["reason"], one["message"]) for one in found["conditions"]}
    assert told["QueueClosed"] == ("False", "QueueOpen", "Queue is open")
    assert told["ResourcePressure"] == ("True", "QueueHasResourcePressure", "In use: nvidia.com/gpu 3/3")


def test_conditions_keep_their_time_and_a_queue_elsewhere_is_not_used() -> None:
    given = queue(closed=True)
    given["status"] = reconcile(queue(closed=True), Observed(), datetime(2026, 1, 1, tzinfo=UTC)).status
    again = reconcile(given, Observed(), NOW).status
    assert again == given["status"]
    elsewhere = reconcile(queue("demo"), Observed([pod("a")]), NOW).status
    assert elsewhere is not None
    assert [one["type"] for one in elsewhere["conditions"]] == ["Unused"]


def test_pods_run_out_of_time() -> None:
    daemon = [{"kind": "DaemonSet", "name": "d", "controller": True}]
    pods = [
        pod("over", started="2026-01-02T02:49:59Z"), pod("nearly", started="2026-01-02T02:50:30Z"),
        pod("fresh", started="2026-01-02T02:59:00Z"), pod("waits", "Pending", node=""),
        pod("done", "Succeeded", "2026-01-02T01:00:00Z"),
        pod("leaving", started="2026-01-02T01:00:00Z", deletionTimestamp="x"),
        pod("daemon", started="2026-01-02T01:00:00Z", ownerReferences=daemon),
    ]  # fmt: skip
    found = reconcile(queue(maxDuration="10m"), Observed(pods), NOW)
    assert [one["metadata"]["name"] for one in found.expired] == ["over"]
    assert found.requeue_after == 30.0


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("PyTorchTrainingJob", {"spec": {"runMode": {"pause": {"enabled": True}}}}),
        ("TensorFlowJob", {"spec": {"runMode": {"pause": {"enabled": True}}}}),
        ("PyTorchJob", {"spec": {"runPolicy": {"suspend": True}}}),
        ("Notebook", {"spec": {"suspend": True}}),
        ("TensorBoard", {"spec": {"suspend": True}}),
        ("Deployment", {"spec": {"replicas": 0}}),
        ("Job", {"spec": {"suspend": True}}),
    ],
)
def test_how_an_owner_is_suspended(kind: str, patch: Object) -> None:
    [found] = [how for one, how in SUSPENSIONS.items() if one.kind == kind]
    assert found.patch == patch
    assert found.is_set({**patch, "kind": kind})
    assert not found.is_set({"spec": {}})


def test_no_replicas_is_not_false() -> None:
    assert not Suspension("spec.replicas", 0).is_set({"spec": {"replicas": False}})
    assert not Suspension("spec.suspend").is_set({"spec": {"suspend": 1}})


def test_the_rules_of_a_queue() -> None:
    rules = rules_of(queue())
    assert (rules.priority, rules.preemptible, rules.closed, rules.namespaces) == (0, True, False, None)
    selector = {"matchLabels": {"pool": "a"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
    rules = rules_of(
        queue(priority=9, preemptible=False, requests={"cpu": "1500m", "memory": "1Ki"}, nodeSelector=selector,
              namespaceSelector={})
    )  # fmt: skip
    assert (rules.priority, rules.preemptible) == (9, False)
    assert rules.quota == {"cpu": 1500, "memory": 1024}
    assert rules.node_requirements == [
        {"key": "pool", "operator": "In", "values": ["a"]}, {"key": "gpu", "operator": "Exists"},
    ]  # fmt: skip
    assert rules.namespaces is not None
    assert rules.namespaces.matches({"any": "thing"})


@pytest.mark.parametrize(
    ("text", "length"), [("1h20m15s", 4815.0), ("1y", 31536000.0), ("2w3d", 1468800.0), ("1m500ms", 60.5)]
)
def test_durations(text: str, length: float) -> None:
    assert durations.seconds(text) == length


@pytest.mark.parametrize("text", ["", "5", "5x", "1m1h", "-1h", "1.5h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        durations.seconds(text)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priority": 101}, "spec.priority in body should be less than or equal to 100"),
        ({"maxDuration": "5x"}, "spec.maxDuration in body should match"),
        ({"quota": {"requests": {}}, "requests": {}}, "write only one of them"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn need values"),
        ({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, "Unsupported value"),
    ],
)
def test_what_the_api_refuses(spec: Object, words: str) -> None:
    given = {**queue(**spec), "apiVersion": "scheduler.tensorstack.dev/v1beta1", "kind": "Queue"}
    errors = [error.message() for error in structural(object_schema(KIND)).validate(given)]
    assert len(errors) == 1
    assert words in errors[0]
