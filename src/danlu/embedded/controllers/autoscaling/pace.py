"""How fast a number of replicas may change: windows in which the steadier wish counts, and limits for each period.

`ScalingHistory` is what has been wished for and done lately. It is lost with the process, as a controller manager's is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime

from danlu.meta.clock import later
from danlu.meta.kind import Object

DOWN_WINDOW_S = 300
LONGEST_S = 3600  # that a window or a period may be
_WITHIN = ("False", "DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FAST = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_READY = ("ReadyForNewScale", "recommended size matches current size")
_UP_HELD = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_HELD = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)

Told = tuple[str, str]  # reason, message
Moment = tuple[datetime, int]


@dataclass(slots=True)
class ScalingHistory:
    wishes: list[Moment] = field(default_factory=list)
    added: list[Moment] = field(default_factory=list)
    removed: list[Moment] = field(default_factory=list)

    def begin(self, replicas: int, now: datetime) -> None:
        """Before anything was wished for, what is there counts as wished for: a restart takes nothing down at once."""
        if not self.wishes:
            self.wishes.append((now, replicas))

    def scaled(self, before: int, after: int, now: datetime) -> None:
        (self.added if after > before else self.removed).append((now, abs(after - before)))

    def forget(self, now: datetime) -> None:
        since = later(now, -LONGEST_S)
        for moments in (self.wishes, self.added, self.removed):
            moments[:] = [moment for moment in moments if moment[0] > since]


@dataclass(frozen=True, slots=True)
class ReplicaRange:
    current: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Paced:
    replicas: int
    able: Told
    limited: tuple[str, str, str]  # status, reason, message


def paced(behavior: Object | None, wished: int, bounds: ReplicaRange, memory: ScalingHistory, now: datetime) -> Paced:
    up, down = (behavior or {}).get("scaleUp") or {}, (behavior or {}).get("scaleDown") or {}
    up_window = up.get("stabilizationWindowSeconds") or 0
    down_window = down.get("stabilizationWindowSeconds")
    steady = _steady(wished, bounds.current if behavior else None, memory, now,
                     (up_window, DOWN_WINDOW_S if down_window is None else down_window))  # fmt: skip
    memory.wishes.append((now, wished))
    memory.forget(now)
    held = _UP_HELD if behavior and wished >= bounds.current else _DOWN_HELD
    able = _READY if steady == wished else held
    if behavior is None:
        replicas, told = _within(steady, bounds, _plain_limit(bounds.current), None)
    else:
        replicas, told = _by_rules(steady, bounds, (up, down), memory, now)
    return Paced(replicas, able, _WITHIN if told is None else ("True", *told))


def _steady(wished: int, current: int | None, memory: ScalingHistory, now: datetime, windows: tuple[int, int]) -> int:
    """Between the lowest wish of the one window and the highest of the other; without a behavior the latter."""
    lowest = min([wished, *_since(memory.wishes, windows[0], now)])
    highest = max([wished, *_since(memory.wishes, windows[1], now)])
    return highest if current is None else min(max(current, lowest), highest)


def _since(moments: list[Moment], seconds: int, now: datetime) -> list[int]:
    start = later(now, -seconds)
    return [number for at, number in moments if at > start]


def _plain_limit(current: int) -> int:
    return max(2 * current, 4)


def _within(steady: int, bounds: ReplicaRange, highest: int | None, lowest: int | None) -> tuple[int, Told | None]:
    """`highest` and `lowest`: how far it may go now; the told reason is None where nothing limits."""
    most = bounds.most if highest is None else min(bounds.most, highest)
    least = bounds.least if lowest is None else max(bounds.least, lowest)
    if steady < least:
        return least, _TOO_FAST_DOWN if lowest is not None and lowest > bounds.least else _TOO_FEW
    if steady > most:
        return most, _TOO_FAST if highest is not None and highest < bounds.most else _TOO_MANY
    return steady, None


def _by_rules(
    steady: int, bounds: ReplicaRange, rules: tuple[Object, Object], memory: ScalingHistory, now: datetime
) -> tuple[int, Told | None]:
    """Only the side it moves to is limited; a number that stays may lie outside until it moves."""
    if steady > bounds.current:
        limits = [_after(policy, bounds.current, memory, now, up=True) for policy in rules[0].get("policies") or ()]
        highest = _chosen(rules[0], limits, bounds.current, up=True)
        return _within(steady, ReplicaRange(bounds.current, 0, bounds.most), max(highest, bounds.current), None)
    if steady < bounds.current:
        limits = [_after(policy, bounds.current, memory, now, up=False) for policy in rules[1].get("policies") or ()]
        lowest = _chosen(rules[1], limits, bounds.current, up=False)
        return _within(steady, ReplicaRange(bounds.current, bounds.least, steady), None, min(lowest, bounds.current))
    return steady, None


def _chosen(rules: Object, limits: list[int], current: int, *, up: bool) -> int:
    select = rules.get("selectPolicy")
    if select == "Disabled" or not limits:
        return current
    return max(limits) if (select != "Min") == up else min(limits)


def _after(policy: Object, current: int, memory: ScalingHistory, now: datetime, *, up: bool) -> int:
    """As far as one policy lets it go from where the period began."""
    added = sum(_since(memory.added, policy["periodSeconds"], now))
    removed = sum(_since(memory.removed, policy["periodSeconds"], now))
    start, amount = current - added + removed, policy["value"]
    if policy["type"] == "Pods":
        return int(start + amount if up else start - amount)
    return math.ceil(start * (100 + amount) / 100) if up else int(start * (100 - amount) / 100)
