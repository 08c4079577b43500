"""PodGroup: its conditions, and who is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from danlu.kinds._gang import markers
from danlu.kinds.podgroup.reconcile import reconcile
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Outcome

NOW = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)
WHY = "0/1 nodes are available for all 2 pods of group g: 2 cpu asked at once, 1 free."


def group(status: Object | None = None, **spec: Any) -> Object:
    version = "batch.tensorstack.dev/v1beta1"
    owner = {"apiVersion": version, "kind": "GenericJob", "name": "g", "uid": "u", "controller": True}
    made: Object = {"metadata": {"name": "g", "namespace": "demo", "ownerReferences": [owner]}, "spec": spec}
    if status is not None:
        made["status"] = status
    return made


def pod(name: str, *, node: str = "", phase: str = "", role: str = "", why: str = "", **meta: Any) -> Object:
    status: Object = {"phase": phase or ("Running" if node else "Pending")}
    if why:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}]
    labels = {markers.GROUP_NAME: "g", **({markers.ROLE: role} if role else {})}
    spec: Object = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {
        "metadata": {"name": name, "labels": labels, **meta},
        "spec": {**spec, **({"nodeName": node} if node else {})},
        "status": status,
    }


def told(outcome: Outcome) -> dict[str, tuple[str, str, str]]:
    assert outcome.status is not None
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in outcome.status["conditions"]}


def test_too_few_pods() -> None:
    found = reconcile(group(minMember=2), [pod("a")], NOW)
    assert told(found) == {
        "SufficientGroupMember": ("False", "TooFewPods", "1 of at least 2 pods exist"),
        "GroupScheduled": ("False", "Waiting", "0 of at least 2 pods have a node"),
    }
    assert not found.events
    assert told(reconcile(group(minMember=2), [], NOW))["GroupScheduled"][1] == "NoPods"


def test_roles() -> None:
    roles = [{"name": "master", "minMember": 1}]
    found = reconcile(group(minMember=1, roles=roles), [pod("a", role="worker")], NOW)
    assert told(found)["SufficientGroupMember"][2] == "0 of at least 1 pods with role master exist"
    found = reconcile(group(minMember=1, roles=roles), [pod("a", role="master")], NOW)
    assert told(found)["SufficientGroupMember"][0] == "True"


def test_the_schedulers_reason_is_told_to_the_group_and_its_job_once() -> None:
    pods = [pod("b", why=WHY), pod("a", why=WHY)]
    found = reconcile(group(minMember=2), pods, NOW)
    assert told(found)["GroupScheduled"] == ("False", "Unschedulable", WHY)
    assert [(note.reason, (note.about or {}).get("kind")) for note in found.events] == [
        ("Unschedulable", None), ("Unschedulable", "GenericJob"),
    ]  # fmt: skip
    assert not reconcile(group(found.status, minMember=2), pods, NOW).events


def test_placed() -> None:
    waiting = reconcile(group(minMember=2), [pod("a", why=WHY), pod("b", why=WHY)], NOW)
    found = reconcile(group(waiting.status, minMember=2), [pod("a", node="n"), pod("b", node="n")], NOW)
    assert told(found)["GroupScheduled"] == ("True", "Scheduled", "2 pods have a node, at least 2 are needed")
    assert [note.reason for note in found.events] == ["Scheduled"]
    assert found.status is not None
    assert (found.status["allocated"], found.status["running"]) == ({"cpu": "2"}, 2)
    grown = reconcile(group(found.status, minMember=2), [pod(name, node="n") for name in "abc"], NOW)
    assert not grown.events


def test_pods_that_leave_or_failed_do_not_count() -> None:
    pods = [pod("a", node="n", deletionTimestamp="x"), pod("b", node="n", phase="Failed"), pod("c", node="n")]
    found = reconcile(group(minMember=2), pods, NOW)
    assert told(found)["SufficientGroupMember"][2] == "1 of at least 2 pods exist"
    assert told(found)["GroupScheduled"][0] == "False"
