"""What calls for a look at once while many objects are at work, and what can wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from danlu.client import Informer
from danlu.client.informer import ADDED, DELETED, MODIFIED
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB, POD
from danlu.runtime import Controller, Request, event_priority
from danlu.runtime.controller import CROWD, GATHER_S, LATER_S

SCHEDULED = {"type": "PodScheduled", "status": "True"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
LEAVING = "2026-01-01T00:00:00Z"


def pod(phase: str, *conditions: Object, version: int = 1, **meta: Any) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "u", "controller": True}
    known = {"namespace": "n", "name": "p", "uid": "p", "resourceVersion": str(version), "ownerReferences": [owner]}
    return {"metadata": {**known, **meta}, "status": {"phase": phase, "conditions": list(conditions)}}


@pytest.mark.parametrize(
    ("event", "new", "old", "expected"),
    [
        (ADDED, pod("Pending"), None, False),
        (ADDED, pod("Pending", UNSCHEDULABLE), None, True),
        (ADDED, pod("Running"), None, True),
        (MODIFIED, pod("Pending", SCHEDULED), pod("Pending"), False),
        (MODIFIED, pod("Pending", SCHEDULED), pod("Pending", UNSCHEDULABLE), True),
        (MODIFIED, pod("Running", SCHEDULED), pod("Pending", SCHEDULED), True),
        (MODIFIED, pod("Running", deletionTimestamp=LEAVING), pod("Running"), True),
        (MODIFIED, pod("Running", labels={"a": "b"}), pod("Running"), False),
        (DELETED, pod("Pending"), pod("Pending"), True),
    ],
)
def test_of_a_child(event: str, new: Object, old: Object | None, expected: bool) -> None:
    assert event_priority.is_urgent_of_child(event, new, old) is expected


def test_a_status_is_not_urgent_and_a_changed_spec_is() -> None:
    before = pod("Running", generation=1)
    assert not event_priority.is_urgent(MODIFIED, pod("Succeeded", generation=1, version=2), before)
    assert event_priority.is_urgent(MODIFIED, pod("Running", generation=2), before)
    assert event_priority.is_urgent(MODIFIED, pod("Running", generation=1, annotations={"a": "b"}), before)
    assert event_priority.is_urgent(MODIFIED, pod("Running", generation=1, deletionTimestamp=LEAVING), before)
    assert event_priority.is_urgent(ADDED, before, None)
    # What has no generation does not tell its wishes from its state.
    assert event_priority.is_urgent(MODIFIED, pod("Running", version=2), pod("Running"))


async def test_only_in_a_crowd_anything_waits() -> None:
    async def reconcile(_: Request) -> None: ...

    controller = Controller("test", reconcile)
    asked: list[tuple[str, float]] = []
    controller.queue.add_after = lambda key, delay_s: asked.append((key.name, delay_s))  # type: ignore[method-assign]
    children = Informer(None, POD)  # type: ignore[arg-type]
    controller.owns(children, JOB)
    children.replace([pod("Pending", version=1)], "1")
    controller.stats.busy = CROWD
    children.replace([pod("Pending", SCHEDULED, version=2)], "2")
    children.replace([pod("Running", SCHEDULED, version=3)], "3")
    assert asked == [("job", 0.0), ("job", LATER_S), ("job", GATHER_S)]


async def test_work_in_the_background_holds_up_only_what_is_not_urgent() -> None:
    async def reconcile(_: Request) -> None: ...

    controller = Controller("test", reconcile)
    asked: list[float] = []
    controller.queue.add_after = lambda key, delay_s: asked.append(delay_s)  # type: ignore[method-assign]
    children = Informer(None, POD)  # type: ignore[arg-type]
    controller.owns(children, JOB)
    for number in range(CROWD):
        controller.background(asyncio.sleep(0), f"child {number}")
    children.replace([pod("Pending", version=1)], "1")
    children.replace([pod("Running", version=2)], "2")
    await controller.stop()
    assert asked == [LATER_S, 0.0]
