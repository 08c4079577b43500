"""One broken object never stops the others."""

from __future__ import annotations

import asyncio
import logging

import pytest

from danlu import errors
from danlu.client import Informer
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, JOB
from danlu.runtime import Controller, Outcome, Request


async def until(condition: asyncio.Event) -> None:
    await asyncio.wait_for(condition.wait(), 5)


async def test_failures_are_retried_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    attempts: dict[str, int] = {}
    mended, good = asyncio.Event(), asyncio.Event()

    async def reconcile(request: Request) -> None:
        attempts[request.name] = attempts.get(request.name, 0) + 1
        if request.name == "good":
            good.set()
        elif attempts["bad"] < 3:
            raise errors.Forbidden("not yet")
        else:
            mended.set()

    controller = Controller("test", reconcile, workers=1, first_delay_s=0.001)
    controller.start()
    with caplog.at_level(logging.WARNING):
        controller.queue.add(Request("ns", "bad"))
        controller.queue.add(Request("ns", "good"))
        await until(good)
        await until(mended)
    await controller.stop()
    assert attempts == {"bad": 3, "good": 1}
    assert [record.message.count("not yet") for record in caplog.records] == [1, 1]


async def test_a_conflict_is_tried_again_quietly(caplog: pytest.LogCaptureFixture) -> None:
    done = asyncio.Event()

    async def reconcile(_: Request) -> None:
        if not caplog.records and not tried:
            tried.append(1)
            raise errors.Conflict("old")
        done.set()

    tried: list[int] = []
    controller = Controller("test", reconcile, first_delay_s=0.001)
    controller.start()
    controller.queue.add(Request("ns", "a"))
    await until(done)
    await controller.stop()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_an_outcome_says_when_to_look_again() -> None:
    looks = []
    twice = asyncio.Event()

    async def reconcile(_: Request) -> Outcome:
        looks.append(1)
        if len(looks) == 2:
            twice.set()
            return Outcome()
        return Outcome(requeue_after=0.001)

    controller = Controller("test", reconcile)
    controller.start()
    controller.queue.add(Request("ns", "a"))
    await until(twice)
    await controller.stop()


async def test_children_wake_their_owner_of_any_version() -> None:
    async def reconcile(_: Request) -> None: ...

    informer = Informer(None, CONFIG_MAP)  # type: ignore[arg-type]
    controller = Controller("test", reconcile)
    controller.owns(informer, JOB)

    def child(name: str, version: int, owner: Object) -> Object:
        meta = {"namespace": "ns", "name": name, "uid": name, "resourceVersion": str(version)}
        return {"metadata": {**meta, "ownerReferences": [{"controller": True, "uid": "u", **owner}]}}

    informer.replace([child("a", 1, {"apiVersion": "batch/v1", "kind": "Job", "name": "j"})], "1")
    informer.replace([child("b", 2, {"apiVersion": "other/v1", "kind": "Job", "name": "k"})], "2")
    assert await controller.queue.get() == Request("ns", "j")
    assert len(controller.queue) == 0


async def test_both_owners_hear_of_a_child_that_changes_hands() -> None:
    async def reconcile(_: Request) -> None: ...

    controller = Controller("test", reconcile)
    informer = Informer(None, CONFIG_MAP)  # type: ignore[arg-type]

    def child(version: int, owner: str) -> Object:
        meta = {"namespace": "ns", "name": "c", "uid": "c", "resourceVersion": str(version)}
        reference = {"controller": True, "uid": owner, "apiVersion": "batch/v1", "kind": "Job", "name": owner}
        return {"metadata": {**meta, "ownerReferences": [reference]}}

    informer.replace([child(1, "old")], "1")
    controller.owns(informer, JOB)  # it comes late, and is told of what is there
    assert await controller.queue.get() == Request("ns", "old")
    controller.queue.done(Request("ns", "old"))
    informer.replace([child(2, "new")], "2")
    assert {await controller.queue.get(), await controller.queue.get()} == {Request("ns", "old"), Request("ns", "new")}
