"""Watches from a thread of its own whether the event loop turns, and says which object holds it up.

A thread cannot be stopped from outside, but it can be told of: the log gets the stack, and an object whose reconcile is
at work is set aside for the next start, should this process not come out of it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback

from danlu.runtime.controller import AT_WORK
from danlu.runtime.setaside import SetAside, version_of

log = logging.getLogger(__name__)

TICK_S = 1.0
MOST_TICKS = 10  # without a turn of the loop; ticks, not seconds: a process that was stopped has neither


class Watchdog:
    def __init__(self, set_aside: SetAside, *, tick_s: float = TICK_S, most_ticks: int = MOST_TICKS) -> None:
        self._set_aside = set_aside
        self._tick_s = tick_s
        self._most_ticks = most_ticks
        self._beats = 0
        self._stop = threading.Event()
        self._beating: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beating = asyncio.create_task(self._beat(), name="watchdog")
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    async def stop(self) -> None:
        self._stop.set()
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            await asyncio.sleep(self._tick_s / 2)

    def _watch(self) -> None:
        seen, silent = -1, 0
        while not self._stop.wait(self._tick_s):
            silent = silent + 1 if self._beats == seen else 0
            seen = self._beats
            if silent == self._most_ticks:
                self._tell()

    def _tell(self) -> None:
        blocked_s = self._most_ticks * self._tick_s
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        task = asyncio.current_task(self._loop)
        at_work = AT_WORK.get(task) if task is not None else None
        if at_work is None:
            name = task.get_name() if task is not None else "a callback"
            log.error("the event loop has been blocked for %.0f s by %s; it is here:\n%s", blocked_s, name, stack)
            return
        controller, request = at_work
        log.error(
            "the event loop has been blocked for %.0f s by the %s controller, at %s; should this process be killed, "
            "the next one leaves that object alone until it is changed or deleted. It is here:\n%s",
            *(blocked_s, controller.name, request, stack),
        )
        obj = controller.object_of(request)
        why = f"its reconcile blocked the server for {blocked_s:.0f} s; it is left alone until it is changed or deleted"
        version = version_of(obj) if obj is not None else ""
        self._set_aside.put(controller.name, controller.kind, request, why, version)
