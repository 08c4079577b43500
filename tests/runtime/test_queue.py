"""Each key at most once, at most one worker on it, failures later each time."""

from __future__ import annotations

import asyncio

import pytest

from danlu.runtime.workqueue import Closed, Queue


async def test_a_key_is_in_it_once() -> None:
    queue: Queue[str] = Queue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_added_while_worked_on_comes_back_after_done() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert queue.idle


async def test_failures_wait_longer_each_time_until_forgotten() -> None:
    queue: Queue[str] = Queue(first_delay_s=0.001, longest_delay_s=0.005)
    assert [queue.add_failed("a") for _ in range(4)] == [0.001, 0.002, 0.004, 0.005]
    assert queue.add_failed("b") == 0.001
    queue.forget("a")
    assert queue.add_failed("a") == 0.001


async def test_of_two_delays_the_shorter_counts() -> None:
    queue: Queue[str] = Queue()
    queue.add_after("a", 60)
    queue.add_after("a", 0.001)
    queue.add_after("a", 60)
    assert await asyncio.wait_for(queue.get(), 5) == "a"


async def test_a_cancelled_waiter_loses_no_key() -> None:
    queue: Queue[str] = Queue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 5) == "a"


async def test_closing_lets_waiters_go() -> None:
    queue: Queue[str] = Queue()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.close()
    with pytest.raises(Closed):
        await waiting
    queue.add("a")
    queue.add_after("a", 0.001)
    assert queue.idle
