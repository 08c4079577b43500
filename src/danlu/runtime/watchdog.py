"""Watches from another process whether the event loop turns, and says which object holds it up.

Not from a thread: none of ours runs while C code holds the interpreter's lock. The log gets the object's name and the
stack, and the object is set aside for the next start, should this process not come out of it. The eyes are in
`watcher`, what they see in `atwork`.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import subprocess
import sys
from pathlib import Path

from danlu.runtime import atwork, watcher
from danlu.runtime.setaside import SetAside

TICK_S = 1.0
MOST_TICKS = 10  # without a turn of the loop; ticks, not seconds: a machine that slept has neither
LOG = 2  # the descriptor that logs go to


class Watchdog:
    def __init__(
        self, set_aside: SetAside, file: Path | None = None, *, tick_s: float = TICK_S, most_ticks: int = MOST_TICKS
    ) -> None:
        """`file`: where the next process reads what this one has set aside."""
        self._set_aside = set_aside
        self._file = file
        self._tick_s = tick_s
        self._most_ticks = most_ticks
        self._beating: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        faulthandler.register(watcher.STACK, file=LOG, all_threads=False)
        self._page = atwork.Page(self._set_aside.put_entry)
        file = str(self._file) if self._file is not None else ""
        options = [str(self._page.descriptor), file, str(self._tick_s), str(self._most_ticks)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", watcher.__file__, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[self._page.descriptor],
        )
        self._set_aside.page = self._page
        self._loop.set_task_factory(atwork.make_task)
        self._beating = asyncio.create_task(self._beat(), name="watchdog")

    async def stop(self) -> None:
        if self._beating is None:
            return
        self._loop.set_task_factory(None)
        self._set_aside.page = None
        self._beating.cancel()
        await asyncio.gather(self._beating, return_exceptions=True)
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, 5)
        faulthandler.unregister(watcher.STACK)
        self._page.close()

    async def _beat(self) -> None:
        while True:
            self._page.beat()
            await asyncio.sleep(self._tick_s / 2)
