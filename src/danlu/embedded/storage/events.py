"""The watch window: recent changes of each resource, and the watchers that follow them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.errors import Expired

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Stored

# A watcher that lags this far behind is cut off; it resumes or lists again. Keeps memory bounded: changes lie in memory
# until the slowest watcher has been sent them, once for all who have to wait for the same ones.
MAX_LAG = 20_000  # changes
MAX_LAG_BYTES = 32 * 1024 * 1024
# Changes kept for watchers that resume. A client that was away for longer lists again (410 Gone).
WINDOW_CHANGES = 4_096
WINDOW_BYTES = 8 * 1024 * 1024
# Of all resources together: custom resources are made by users, as many as they like.
ALL_WINDOWS_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Change:
    type: str  # ADDED, MODIFIED, DELETED
    stored: Stored
    previous: Stored | None

    @property
    def revision(self) -> int:
        return self.stored.revision

    @property
    def size(self) -> int:
        """Bytes that are kept for its sake."""
        return len(self.stored.raw) + (len(self.previous.raw) if self.previous is not None else 0)


class Subscription:
    """One watcher's queue of changes. What was taken counts until it is said to be `sent`."""

    __slots__ = ("_buffer", "_lag", "_lag_bytes", "_waiter", "_window", "overflow")

    def __init__(self, window: Window) -> None:
        self._buffer: list[Change] = []
        self._lag = self._lag_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._window = window
        self.overflow = asyncio.Event()  # set once it lags too far behind: nothing comes after what it has

    @property
    def overflowed(self) -> bool:
        return self.overflow.is_set()

    def push(self, change: Change) -> None:
        if self._lag >= MAX_LAG or self._lag_bytes + change.size > MAX_LAG_BYTES:
            self.overflow.set()
            self.close()
        else:
            self._take_in(change)
        self._wake()

    def _take_in(self, change: Change) -> None:
        self._buffer.append(change)
        self._lag += 1
        self._lag_bytes += change.size

    def sent(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._lag -= 1
            self._lag_bytes -= change.size

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self, timeout: float) -> list[Change]:
        """All changes that have come, waiting at most `timeout` seconds for the first; empty when none came."""
        if not self._buffer and not self.overflowed:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            timer = loop.call_later(timeout, self._wake)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        taken, self._buffer = self._buffer, []
        return taken

    def close(self) -> None:
        self._window.watchers.discard(self)


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

    def publish(self, change: Change) -> None:
        self.remember(change)
        for watcher in tuple(self.watchers):
            watcher.push(change)

    def follow(self, since: int) -> Subscription:
        if since < self.forgotten:
            raise Expired(f"too old resource version: {since} ({self.forgotten})")
        subscription = Subscription(self)
        missed = []
        for change in reversed(self.changes):
            if change.revision <= since:
                break
            missed.append(change)
        for change in reversed(missed):
            subscription._take_in(change)
        self.watchers.add(subscription)
        return subscription
