"""`StatusDebounce`: a status that tells of nothing but counts waits a moment for more of them.

Four replicas that start or end at nearly the same time are one write, not four.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from danlu.meta.kind import Object
from danlu.runtime.reconcile import COUNTS_DELAY_S, Outcome

LONGEST_DELAY_S = 5.0  # of counts, while many others start


class StatusDebounce:
    def __init__(self, calm: Callable[[], bool]) -> None:
        """`calm`: whether there is time for what can wait."""
        self._calm = calm
        self._due: dict[str, dict[float, float]] = {}  # by uid and delay: when it is to be written at the latest

    def holds(self, obj: Object, outcome: Outcome) -> bool:
        """Whether this status is to wait; the outcome then says how long."""
        uid, delay_s = obj["metadata"]["uid"], outcome.status_delay_s
        if delay_s <= 0 or outcome.status == (obj.get("status") or {}):
            self.forget(uid)
            return False
        now = asyncio.get_running_loop().time()
        left = self._due.setdefault(uid, {}).setdefault(delay_s, now + delay_s) - now
        stretches = delay_s >= COUNTS_DELAY_S and left > COUNTS_DELAY_S - LONGEST_DELAY_S and not self._calm()
        if left <= 0 and not stretches:
            self.forget(uid)
            return False
        outcome.requeue_within(left if left > 0 else COUNTS_DELAY_S)
        return True

    def forget(self, uid: str) -> None:
        self._due.pop(uid, None)
