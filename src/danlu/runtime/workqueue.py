"""The work queue: each key is in it at most once, and is worked on by at most one worker at a time.

A key that is added while it is being worked on comes back once the worker is `done`. Failures come back after a delay
that doubles with each one in a row, kept per key.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY_S = 0.005
LONGEST_DELAY_S = 1000.0


class Closed(Exception):
    """The queue was shut down: there is no next key."""


class Queue(Generic[Key]):
    def __init__(self, *, first_delay_s: float = FIRST_DELAY_S, longest_delay_s: float = LONGEST_DELAY_S) -> None:
        self._first_delay_s = first_delay_s
        self._longest_delay_s = longest_delay_s
        self._ready: deque[Key] = deque()
        self._wanted: set[Key] = set()  # in `_ready`, or to go there when done
        self._working: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def add(self, key: Key) -> None:
        if self._closed or key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._working:
            self._push(key)

    def add_after(self, key: Key, delay_s: float) -> None:
        """Of several delays for one key the one that ends first counts."""
        if self._closed:
            return
        if delay_s <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + delay_s
        waiting = self._timers.get(key)
        if waiting is not None:
            if waiting.when() <= at:
                return
            waiting.cancel()
        self._timers[key] = loop.call_at(at, self._due, key)

    def add_failed(self, key: Key) -> float:
        """Comes back later each time; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay: float = min(self._first_delay_s * 2 ** min(failures, 40), self._longest_delay_s)
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """The next failure of this key is its first again."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> Key:
        """The next key; the caller owes a `done`. Raises `Closed` after `close`."""
        while not self._ready:
            if self._closed:
                raise Closed
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # this wake-up was ours; it must not be lost
                raise
        key = self._ready.popleft()
        self._wanted.discard(key)
        self._working.add(key)
        return key

    def done(self, key: Key) -> None:
        self._working.discard(key)
        if key in self._wanted:
            self._push(key)

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.clear()
        self._wanted.clear()
        while self._waiters:
            self._wake()

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """Nothing to do now and nobody at work; delayed keys may still wait."""
        return not self._ready and not self._working

    def _push(self, key: Key) -> None:
        self._ready.append(key)
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)
