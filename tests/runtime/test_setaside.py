"""What cannot be reconciled is set aside, and what blocked a process is left alone by the next."""

from __future__ import annotations

import asyncio
import ctypes
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from danlu.client import Informer
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB
from danlu.runtime import Controller, Request, atwork
from danlu.runtime.reconcile import Unreconcilable
from danlu.runtime.setaside import SetAside, SetAsideEntry
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

    saved: list[list[SetAsideEntry]] = []
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


async def block_here(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # holds the interpreter's lock, as a regular expression does


async def block_in_a_task_of_its_own(seconds: float) -> None:
    await asyncio.gather(asyncio.sleep(0), block_here(seconds))


async def sleep_here(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251 - this is what is tried here


@pytest.mark.parametrize("block", [block_here, block_in_a_task_of_its_own, sleep_here])
async def test_a_reconcile_that_blocks_the_loop_is_named_while_it_does(
    block: Callable[[float], Coroutine[None, None, None]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By another process: no thread of this one runs as long as C code holds the interpreter's lock."""
    file = tmp_path / "set-aside.json"
    file.write_text(json.dumps([{"controller": "other", "namespace": "default", "name": "bad"}]))
    set_aside, recorder = SetAside(), Recorder()
    written: list[list[SetAsideEntry]] = []
    during: list[dict[str, str]] = []

    async def reconcile(_request: Request) -> None:
        await asyncio.sleep(0)
        while len(during) < 2:
            await block(0.2)
            during.extend(json.loads(file.read_text())[len(during) :])

    controller = made(reconcile, set_aside, recorder)
    watchdog = Watchdog(set_aside, file, tick_s=0.02, most_ticks=3)
    watchdog.start()
    try:
        set_aside._changed = lambda entries: written.append([*entries])
        await asyncio.sleep(0.2)
        await controller.process(REQUEST)
    finally:
        await watchdog.stop()
    assert [(one["controller"], one["name"]) for one in during] == [("other", "bad"), ("jobs", "bad")]
    [told] = [*SetAside([SetAsideEntry(**during[1])]).entries]
    assert (told.kind, told.version) == ("Job", "generation 1")
    assert written[0][0].name == "bad", "told to whoever asks, should it fail"
    assert written[-1] == [], "it came to an end after all"
    said = capfd.readouterr().err
    assert "by the jobs controller, at default/bad" in said
    assert ("in sleep_here" if block is sleep_here else "in block_here") in said, "the stack"


async def test_what_blocks_the_loop_outside_of_controllers_is_told_with_its_stack(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "set-aside.json"
    controller = made(noop, SetAside(), Recorder())
    watchdog = Watchdog(controller._set_aside, file, tick_s=0.02, most_ticks=3)
    watchdog.start()
    try:
        await controller.process(REQUEST)
        said = ""
        while "turns again" not in said:
            await block_here(0.2)
            await asyncio.sleep(0.2)
            said += capfd.readouterr().err
    finally:
        await watchdog.stop()
    assert "in block_here" in said
    assert "by the jobs controller" not in said, "no object is to blame"
    assert not file.exists()


async def noop(_request: Request) -> None: ...


async def test_what_a_reconcile_leaves_behind_is_named_as_long_as_it_works() -> None:
    """Its tasks end with it; what it leaves to the background is its own; what it merely started first is nobody's."""
    seen: dict[str, bool] = {}
    ended = asyncio.Event()

    async def look(name: str) -> None:
        await ended.wait()
        seen[name] = atwork.current() is not None

    async def reconcile(_request: Request) -> None:
        seen["child"] = await asyncio.create_task(looked_at())
        tasks.append(asyncio.create_task(look("task")))
        tasks.append(controller.background(look("background"), "background"))

    async def looked_at() -> bool:
        return atwork.current() is not None

    tasks: list[asyncio.Task[None]] = []
    controller = made(reconcile, SetAside(), Recorder())
    watchdog = Watchdog(controller._set_aside)
    watchdog.start()
    try:
        await asyncio.create_task(controller.process(REQUEST))
        ended.set()
        await asyncio.gather(*tasks)
    finally:
        await watchdog.stop()
    assert seen == {"child": True, "task": False, "background": True}


async def test_the_next_start_leaves_it_alone_until_it_is_changed() -> None:
    tried = []

    async def reconcile(request: Request) -> None:
        tried.append(request)

    before = SetAsideEntry("jobs", "Job", "default", "bad", "blocked", "2026-01-01T00:00:00Z", "generation 1")
    failed = SetAsideEntry("jobs", "Job", "default", "other", "KeyError", "2026-01-01T00:00:00Z")
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
