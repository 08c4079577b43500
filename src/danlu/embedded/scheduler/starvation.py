"""`StarvationGuard`: a large gang is not passed by small ones for ever.

A gang that does not fit holds up nobody behind it, which keeps nodes busy; but where small gangs come without end, the
room for a large one would never gather. One that has waited `STARVATION_S` for room therefore holds back those that
come after it and want what it lacks. As a single pod that never ends could then stop everybody, it holds for a while
and lets others pass for as long, in turns that double: whatever runs for less than such a turn cannot starve it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from danlu.diagnose import stated
from danlu.embedded.scheduler.gangs import Attempt

STARVATION_S = 300.0


@dataclass(slots=True)
class Waiter:
    name: str
    since: float
    lane: str
    lane_priority: int
    priority: int
    wants: frozenset[str]

    def holds(self, now: float) -> bool:
        """First passed by others for a turn, then holding for one, then both for twice as long, and so on."""
        passed, turn = now - self.since, STARVATION_S
        while passed >= 2 * turn:
            passed -= 2 * turn
            turn *= 2
        return passed >= turn


class StarvationGuard:
    def __init__(self, clock: Callable[[], float], is_there: Callable[[str], bool]) -> None:
        self._clock = clock
        self._is_there = is_there  # gang → whether it still has pods that wait
        self._waiters: dict[str, Waiter] = {}

    def waits_for_room(self, attempt: Attempt) -> None:
        """To be called whenever it is refused for want of room; the first time counts."""
        gang = attempt.gang
        if attempt.members or gang.key in self._waiters:
            return
        priority = attempt.lane.priority if attempt.lane is not None else 0
        wants = scarce(attempt)
        name = f"group {gang.name}" if gang.name else f"pod {attempt.pods[0].name}"
        self._waiters[gang.key] = Waiter(name, self._clock(), gang.lane, priority, gang.priority, wants)

    def is_placed(self, key: str) -> None:
        self._waiters.pop(key, None)

    def held_back(self, attempt: Attempt) -> str:
        """Why it has to let another go first, or "". A gang that mends itself lets nobody go first."""
        if not self._waiters or (attempt.members and attempt.needed):
            return ""
        now, wants = self._clock(), scarce(attempt)
        own = self._waiters.get(attempt.gang.key)
        for key, waiter in [*self._waiters.items()]:
            if key == attempt.gang.key or (own is not None and own.since <= waiter.since):
                continue
            if not wants & waiter.wants or _outranks(attempt, waiter) or not waiter.holds(now):
                continue
            if not self._is_there(key):
                del self._waiters[key]
                continue
            minutes = int((now - waiter.since) // 60)
            told = {"subject": waiter.name, "queue": waiter.lane, "minutes": minutes}
            return stated("DL-QUEUE-TURN", **told, resources=", ".join(sorted(waiter.wants)))
        return ""


def scarce(attempt: Attempt) -> frozenset[str]:
    """What room is short of: devices where it asks for any, else whatever it asks for."""
    amounts: list[Mapping[str, int]] = [pod.request for pod in attempt.pods]
    names = {name for request in amounts for name, amount in request.items() if amount}
    return frozenset({name for name in names if "/" in name} or names - {"pods"})


def _outranks(attempt: Attempt, waiter: Waiter) -> bool:
    priority = attempt.lane.priority if attempt.lane is not None else 0
    if priority != waiter.lane_priority:
        return priority > waiter.lane_priority
    return attempt.gang.lane == waiter.lane and attempt.gang.priority > waiter.priority
