"""What cannot be reconciled is set aside, and what blocked a process is left alone by the next."""

from __future__ import annotations

import asyncio
import time

import pytest

from danlu.client import Informer
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB
from danlu.runtime import Controller, Request
from danlu.runtime.reconcile import Unreconcilable
from danlu.runtime.setaside import Entry, SetAside
from danlu.runtime.watchdog import Watchdog

REQUEST = Request("default", "bad")


class Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def warning(self, about: Object, reason: str, message: str) -> None:
        self.told.append((about["metadata"]["name"], f"{reason}: {message}"))


def job(generation: int = 1) -> Object:
    meta = {"name": "bad", "namespace": "default", "uid": "u", "generation": generation, "resourceVersion": "1"}
    return {"metadata": {**meta, "resourceVersion": str(generation)}, "spec": {}}


def made(reconcile: object, set_aside: SetAside, recorder: Recorder) -> Controller:
    controller = Controller("jobs", reconcile, first_delay_s=0.001)  # type: ignore[arg-type]
    informer = Informer(None, JOB)  # type: ignore[arg-type]
    controller.watches(informer)
    informer.replace([job()], "1")
    controller.attach(set_aside, recorder)  # type: ignore[arg-type]
    return controller


async def test_what_says_that_nothing_can_be_done_is_told_once_and_not_tried_again() -> None:
    tried = []

    async def reconcile(request: Request) -> None:
        tried.append(request)
        raise Unreconcilable("too many replicas")

    saved: list[list[Entry]] = []
    set_aside, recorder = SetAside(changed=saved.append), Recorder()
    controller = made(reconcile, set_aside, recorder)
    for _ in range(3):
        await controller.process(REQUEST)
    assert len(tried) == 3
    assert len(saved) == 1
    [entry] = set_aside.entries
    assert (entry.kind, entry.namespace, entry.name, entry.why) == ("Job", "default", "bad", "too many replicas")
    assert recorder.told == [("bad", "SetAside: The jobs controller cannot handle this object: too many replicas")]
    assert controller.queue.failures(REQUEST) == 0


@pytest.mark.parametrize("error", [MemoryError("no more"), RecursionError("too deep"), KeyError("spec")])
async def test_what_fails_again_and_again_is_set_aside_until_it_works(error: Exception) -> None:
    broken = True

    async def reconcile(_: Request) -> None:
        if broken:
            raise error

    set_aside, recorder = SetAside(), Recorder()
    controller = made(reconcile, set_aside, recorder)
    for attempt in range(5):
        assert not set_aside.entries, f"after {attempt} failures"
        await controller.process(REQUEST)
    assert len(set_aside.entries) == len(recorder.told) == 1
    broken = False
    await controller.process(REQUEST)
    assert not set_aside.entries
    controller.queue.close()


async def test_a_reconcile_that_blocks_the_loop_is_named_while_it_does() -> None:
    set_aside, recorder = SetAside(), Recorder()
    seen: list[Entry] = []

    async def reconcile(_: Request) -> None:
        for _ in range(1000):
            time.sleep(0.01)  # noqa: ASYNC251 - this is what is tried here
            if set_aside.entries:
                seen.extend(set_aside.entries)
                return

    controller = made(reconcile, set_aside, recorder)
    watchdog = Watchdog(set_aside, tick_s=0.02, most_ticks=5)
    watchdog.start()
    await asyncio.sleep(0.05)
    await controller.process(REQUEST)
    await watchdog.stop()
    assert [(entry.name, entry.version) for entry in seen] == [("bad", "generation 1")]
    assert not set_aside.entries, "it came to an end after all"


async def test_the_next_start_leaves_it_alone_until_it_is_changed() -> None:
    tried = []

    async def reconcile(request: Request) -> None:
        tried.append(request)

    before = Entry("jobs", "Job", "default", "bad", "blocked", "2026-01-01T00:00:00Z", "generation 1")
    failed = Entry("jobs", "Job", "default", "other", "KeyError", "2026-01-01T00:00:00Z")
    set_aside, recorder = SetAside([before, failed]), Recorder()
    assert set_aside.entries == [before], "what merely failed is tried anew"
    controller = made(reconcile, set_aside, recorder)
    await controller.process(REQUEST)
    assert not tried
    assert controller._root is not None
    controller._root.replace([job(generation=2)], "2")
    await controller.process(REQUEST)
    assert tried == [REQUEST]
    assert not set_aside.entries
    controller.queue.close()
