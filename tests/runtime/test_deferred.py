"""Children that nobody waits for: what comes later does not wait for what came first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from danlu import errors
from danlu.meta.kind import Object
from danlu.runtime import deferred
from danlu.runtime.controller import CROWD, LATER_S, Controller
from danlu.runtime.deferred import DeferredCreations
from danlu.runtime.reconcile import Creation, Refusal, Request
from danlu.runtime.refusedcreations import Refusals

JOB: Object = {"metadata": {"name": "job", "namespace": "team", "uid": "1"}}
REQUEST = Request("team", "job")


class SlowApplier:
    """Each batch ends when it is told to."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], asyncio.Future[list[Refusal]]]] = []

    def is_seen(self, _obj: Object) -> bool:
        return False

    async def create_all(self, _parent: Object, creations: Iterable[Creation]) -> list[Refusal]:
        answer: asyncio.Future[list[Refusal]] = asyncio.get_running_loop().create_future()
        self.batches.append(([one.obj["metadata"]["name"] for one in creations], answer))
        return await answer


class Bench:
    def __init__(self) -> None:
        async def reconcile(_: Request) -> None: ...

        self.controller = Controller("test", reconcile)
        self.woken: list[float] = []
        self.controller.queue.add = lambda key: self.woken.append(0.0)  # type: ignore[method-assign]
        self.controller.queue.add_after = lambda key, delay_s: self.woken.append(delay_s)  # type: ignore[method-assign]
        self.applier = SlowApplier()
        self.refusals = Refusals()
        self.deferred = DeferredCreations(self.controller, self.applier, self.refusals)  # type: ignore[arg-type]

    async def want(self, *names: str) -> None:
        wanted = [Creation({"kind": "Service", "metadata": {"name": name}}) for name in names]
        self.deferred.start(REQUEST, JOB, wanted)
        await asyncio.sleep(0)

    async def answer(self, number: int, refused: list[Refusal], error: Exception | None = None) -> None:
        answer = self.applier.batches[number][1]
        answer.set_exception(error) if error is not None else answer.set_result(refused)
        for _ in range(3):
            await asyncio.sleep(0)


async def test_a_later_child_does_not_wait_for_those_that_are_being_made() -> None:
    bench = Bench()
    await bench.want("a", "b")
    await bench.want("a", "b", "c")
    assert [names for names, _ in bench.applier.batches] == [["a", "b"], ["c"]]
    await bench.answer(0, [])
    await bench.want("a", "c")  # not in the cache yet: what was made is asked for again, what is being made is not
    assert [names for names, _ in bench.applier.batches[2:]] == [["a"]]


async def test_refusals_of_all_batches_are_kept_and_told_at_once() -> None:
    bench = Bench()
    bench.controller.stats.busy = CROWD
    await bench.want("a")
    await bench.want("b")
    for number, name in enumerate("ab"):
        refusal = Refusal({"metadata": {"name": name}}, "exceeded quota")
        await bench.answer(number, [refusal])
    assert [one.obj["metadata"]["name"] for one in bench.refusals.take("1")] == ["a", "b"]
    assert bench.woken == [0.0, 0.0]


async def test_in_a_crowd_a_batch_that_went_well_is_looked_at_later() -> None:
    bench = Bench()
    await bench.want("a")
    await bench.answer(0, [])
    bench.controller.stats.busy = CROWD
    await bench.want("b")
    await bench.answer(1, [])
    assert bench.woken == [0.0, LATER_S]


async def test_what_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "RETRY_S", 0.0)
    bench = Bench()
    await bench.want("a")
    await bench.answer(0, [], errors.Timeout("no answer"))
    assert bench.woken == [0.0]
    await bench.want("a")
    assert len(bench.applier.batches) == 2
