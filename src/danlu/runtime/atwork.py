"""What the event loop is at, in memory that another process reads (`watchdog`).

A thread of ours sees nothing as long as C code holds the interpreter's lock (a regular expression, a sort), which is
when it matters. So each step of a reconcile, and of the tasks that it starts, puts the object's name into a page that
is shared, and takes it out again: two small copies, below a microsecond.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

import orjson

from danlu.runtime.setaside import SetAsideEntry
from danlu.runtime.watcher import BEATS, ENTRY, LENGTH, PAGE, TOLD

Result = TypeVar("Result")
NOTHING = bytes(ENTRY - LENGTH)


class Page:
    """The shared memory. `returned` is called with the entry of what blocked the loop and came to an end after all."""

    def __init__(self, returned: Callable[[SetAsideEntry], None]) -> None:
        self._returned = returned
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("danlu-at-work", os.MFD_CLOEXEC)
        else:  # macOS
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())
        os.write(self.descriptor, bytes(PAGE))
        self.memory: mmap.mmap | bytearray = mmap.mmap(self.descriptor, PAGE)
        self._beats = 0

    def close(self) -> None:
        self.memory = bytearray(PAGE)  # of tasks that outlive it
        os.close(self.descriptor)

    def beat(self) -> None:
        """The loop turns."""
        self._beats += 1
        BEATS.pack_into(self.memory, 0, self._beats)

    def came_back(self, entry: SetAsideEntry) -> None:
        self.memory[TOLD] = 0
        self._returned(entry)


class Work:
    """One attempt at one object."""

    __slots__ = ("_end", "_entry", "_page", "_record", "under_way")

    def __init__(self, page: Page, entry: SetAsideEntry) -> None:
        """`entry`: as it is set aside, should it block the loop."""
        self._page = page
        self._entry = entry
        text = orjson.dumps(entry)
        self._record = struct.pack("<H", len(text)) + text if len(text) <= PAGE - ENTRY else NOTHING
        self._end = LENGTH + len(self._record)
        self.under_way = False

    def again(self) -> Work:
        return Work(self._page, self._entry)

    def enter(self) -> None:
        if self.under_way:
            self._page.memory[LENGTH : self._end] = self._record

    def leave(self) -> None:
        if self.under_way:
            memory = self._page.memory
            memory[LENGTH:ENTRY] = NOTHING
            if memory[TOLD]:
                self._page.came_back(self._entry)


_current: ContextVar[Work | None] = ContextVar("work", default=None)


def current() -> Work | None:
    """What the running task is part of."""
    work = _current.get()
    return work if work is not None and work.under_way else None


class Steps(Coroutine[Any, Any, Result]):
    """A coroutine, each step of which is marked as part of a work."""

    __slots__ = ("_coroutine", "_work")

    def __init__(self, coroutine: Coroutine[Any, Any, Result], work: Work) -> None:
        self._coroutine = coroutine
        self._work = work

    def send(self, value: Any) -> Any:
        self._work.enter()
        try:
            return self._coroutine.send(value)
        finally:
            self._work.leave()

    def throw(self, *error: Any) -> Any:
        self._work.enter()
        try:
            return self._coroutine.throw(*error)
        finally:
            self._work.leave()

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Result]:
        return self

    def __iter__(self) -> Steps[Result]:
        return self

    def __next__(self) -> Any:
        return self.send(None)


async def whole(coroutine: Coroutine[Any, Any, Result], work: Work) -> Result:
    """A work from its beginning to its end. Tasks that it starts are part of it until then."""
    work.under_way = True
    _current.set(work)
    try:
        return await Steps(coroutine, work)
    finally:
        work.under_way = False


def make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """The loop's task factory."""
    work = current()
    return asyncio.Task(coroutine if work is None else Steps(coroutine, work), loop=loop, **options)
