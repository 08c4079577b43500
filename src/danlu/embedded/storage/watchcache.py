"""The watch cache: recent changes of each resource, and the watchers that follow them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from danlu.errors import Expired

if TYPE_CHECKING:
    from danlu.embedded.storage.stored import Stored

# A watcher that lags this far behind is cut off; it resumes or lists again. Keeps memory bounded: changes lie in memory
# until the slowest watcher has been sent them, once for all who have to wait for the same ones.
MAX_LAG = 20_000  # changes
MAX_LAG_BYTES = 32 * 1024 * 1024
# Changes kept for watchers that resume. A client that was away for longer lists again (410 Gone).
WINDOW_CHANGES = 4_096
WINDOW_BYTES = 8 * 1024 * 1024
# Of all resources together: custom resources are made by users, as many as they like.
ALL_WINDOWS_BYTES = 64 * 1024 * 1024


class Change:
    """`type`: ADDED, MODIFIED or DELETED. `size`: bytes that are kept for its sake."""

    __slots__ = ("previous", "revision", "size", "stored", "type")

    def __init__(self, type: str, stored: Stored, previous: Stored | None) -> None:
        self.type = type
        self.stored = stored
        self.previous = previous
        self.revision = stored.revision
        self.size = len(stored.raw) + (len(previous.raw) if previous is not None else 0)


class Subscription:
    """One watcher's queue of changes. What was taken counts until it is said to be `sent`."""

    __slots__ = ("_buffer", "_lag", "_lag_bytes", "_timer", "_until", "_waiter", "_window", "overflow")

    def __init__(self, window: Window) -> None:
        self._buffer: list[Change] = []
        self._lag = self._lag_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._until = 0.0  # when the one who waits gives up
        self._timer: asyncio.TimerHandle | None = None
        self._window = window
        self.overflow = asyncio.Event()  # set once it lags too far behind: nothing comes after what it has

    @property
    def overflowed(self) -> bool:
        return self.overflow.is_set()

    def push(self, changes: Sequence[Change], size: int) -> None:
        """`size` is that of all of them."""
        if self._lag + len(changes) <= MAX_LAG and self._lag_bytes + size <= MAX_LAG_BYTES:
            self._take_in(changes, size)
        else:
            self._push_until_full(changes)
        self._wake()

    def _push_until_full(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if self._lag >= MAX_LAG or self._lag_bytes + change.size > MAX_LAG_BYTES:
                self.overflow.set()
                self.close()
                return
            self._take_in((change,), change.size)

    def _take_in(self, changes: Sequence[Change], size: int) -> None:
        self._buffer += changes
        self._lag += len(changes)
        self._lag_bytes += size

    def sent(self, changes: Sequence[Change]) -> None:
        self._lag -= len(changes)
        self._lag_bytes -= sum([change.size for change in changes])

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self, timeout: float) -> list[Change]:
        """All changes that have come, waiting at most `timeout` seconds for the first; empty when none came."""
        if not self._buffer and not self.overflowed:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            self._until = loop.time() + timeout
            self._set_timer(loop)
            try:
                await waiter
            finally:
                self._waiter = None
        taken, self._buffer = self._buffer, []
        return taken

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """One that is set already and rings earlier will do, and is set anew when it has rung: on a busy watch it is
        waited for thousands of times a second, and never for long."""
        if self._timer is not None:
            if self._timer.when() <= self._until:
                return
            self._timer.cancel()
        self._timer = loop.call_at(self._until, self._ring)

    def _ring(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        if self._until <= loop.time():
            self._wake()
        elif self._waiter is not None:
            self._set_timer(loop)

    def close(self) -> None:
        self._window.watchers.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Window:
    """The recent changes of one resource. `forgotten` is the newest revision that was dropped from it."""

    def __init__(self, resource: str, forgotten: int) -> None:
        self.resource = resource
        self.changes: deque[Change] = deque()
        self.watchers: set[Subscription] = set()
        self.forgotten = forgotten
        self.bytes = 0

    def remember(self, change: Change) -> None:
        self.changes.append(change)
        self.bytes += len(change.stored.raw)
        while len(self.changes) > WINDOW_CHANGES or (self.bytes > WINDOW_BYTES and len(self.changes) > 1):
            self.drop_oldest()

    def drop_oldest(self) -> None:
        dropped = self.changes.popleft()
        self.bytes -= len(dropped.stored.raw)
        self.forgotten = dropped.revision

    def publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.remember(change)
        size = sum([change.size for change in changes])
        for watcher in tuple(self.watchers):
            watcher.push(changes, size)

    def follow(self, since: int) -> Subscription:
        if since < self.forgotten:
            raise Expired(f"too old resource version: {since} ({self.forgotten})")
        subscription = Subscription(self)
        missed = []
        for change in reversed(self.changes):
            if change.revision <= since:
                break
            missed.append(change)
        missed.reverse()
        subscription._take_in(missed, sum(change.size for change in missed))
        self.watchers.add(subscription)
        return subscription


class WatchCache:
    """The windows of all resources, kept within bounds together: the largest gives way."""

    def __init__(self) -> None:
        self.forgotten = 0  # changes up to this revision were never seen
        self._windows: dict[str, Window] = {}
        self._bytes = 0

    def window(self, resource: str) -> Window:
        window = self._windows.get(resource)
        if window is None:
            window = self._windows[resource] = Window(resource, self.forgotten)
        return window

    def follow(self, resource: str, since: int) -> Subscription:
        return self.window(resource).follow(since)

    def publish(self, resource: str, changes: Sequence[Change]) -> None:
        window = self.window(resource)
        before = window.bytes
        window.publish(changes)
        self._account(window.bytes - before)

    def remember(self, change: Change) -> None:
        """For those who resume; at a start nobody watches yet."""
        window = self.window(change.stored.resource)
        before = window.bytes
        window.remember(change)
        self._account(window.bytes - before)

    def _account(self, grown: int) -> None:
        self._bytes += grown
        while self._bytes > ALL_WINDOWS_BYTES:
            largest = max(self._windows.values(), key=lambda window: window.bytes)
            before = largest.bytes
            largest.drop_oldest()
            self._bytes -= before - largest.bytes
