"""The scheduling queue: who is next, who rests after a failure, and who waits until the cluster changes.

- *active*: to be tried now, highest priority first, then oldest. Pods of lanes (policy.py) come by their lane first;
  which lane is next is asked anew each time, since it depends on what the lanes have got by then.
- *resting*: failed a moment ago and something changed since; tried again when its back-off ends, or at once when
  nothing else is to be done.
- *waiting*: refused; only an event that its refusal names (or five minutes) brings it back.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable

from danlu.embedded.scheduler.podinfo import PodInfo

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 10.0
LONGEST_WAIT_S = 300.0  # a wake-up that was missed by a bug costs five minutes, not for ever

LaneOrder = Callable[[str], tuple[float, ...]]
"""Lane → the smaller, the sooner; "" is the lane of all pods that have none."""


def no_order(_lane: str) -> tuple[float, ...]:
    return ()


class QueuedPod:
    __slots__ = ("attempts", "errored", "gang_priority", "order", "pod", "state", "tried_at", "wakes")

    def __init__(self, pod: PodInfo, order: int) -> None:
        self.pod = pod
        self.order = order
        self.attempts = 0
        self.state = "active"
        self.tried_at = 0.0
        self.errored = False  # failed for no fault of its own, or is to let others go first: its rest is not cut short
        self.wakes: frozenset[str] = frozenset()
        self.gang_priority = 0

    @property
    def rest_until(self) -> float:
        if not self.attempts:
            return 0.0
        return self.tried_at + min(FIRST_BACKOFF_S * 2.0 ** (self.attempts - 1), LONGEST_BACKOFF_S)


class SchedulingQueue:
    def __init__(self, clock: Callable[[], float], lane_order: LaneOrder = no_order) -> None:
        self.clock = clock
        self._lane_order = lane_order
        self._entries: dict[str, QueuedPod] = {}  # uid → entry, in whatever state
        self._gangs: dict[str, dict[str, QueuedPod]] = {}  # gang → uid → entry
        self._active: dict[str, list[tuple[int, int, int, int, QueuedPod]]] = {}  # lane → heap
        self._resting: list[tuple[float, int, QueuedPod]] = []
        self._waiting: dict[str, QueuedPod] = {}
        self._orders = itertools.count()
        self.cycle = 0  # how often `wake` was called: tells whether the cluster changed during an attempt
        self._woken: dict[str, int] = {}  # event → cycle in which it last happened

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def add(self, pod: PodInfo, gang_priority: int = 0) -> None:
        """A new pod, or an old one that changed in a way that may matter."""
        known = self._entries.get(pod.uid)
        if known is not None:
            known.pod, known.gang_priority = pod, gang_priority
            if known.state == "waiting":
                self._revive(known)
            return
        entry = QueuedPod(pod, next(self._orders))
        entry.gang_priority = gang_priority
        self._entries[pod.uid] = entry
        if pod.gang:
            gang = self._gangs.setdefault(pod.gang, {})
            gang[pod.uid] = entry
            # Its gang has waited for it: all are tried as if they were new.
            entry.order = min(other.order for other in gang.values())
        self._activate(entry)

    def refresh(self, pod: PodInfo) -> None:
        """The pod changed in a way that does not matter here (its own condition)."""
        known = self._entries.get(pod.uid)
        if known is not None:
            if pod.gang:
                pod.nominated = known.pod.nominated  # a gang's nominations are not written down
            known.pod = pod

    def remove(self, uid: str) -> bool:
        entry = self._entries.pop(uid, None)
        if entry is None:
            return False
        entry.state = "gone"
        self._waiting.pop(uid, None)
        gang = self._gangs.get(entry.pod.gang)
        if gang is not None:
            gang.pop(uid, None)
            if not gang:
                del self._gangs[entry.pod.gang]
        return True

    def pop(self) -> QueuedPod | None:
        """The next pod to try; it stays known until `remove` (placed, deleted) or `refused`."""
        now = self.clock()
        while self._resting and self._resting[0][0] <= now:
            self._promote(heapq.heappop(self._resting)[2])
        entry = self._pop_active()
        if entry is None:
            entry = self._pop_early()
        if entry is not None:
            entry.state = "trying"
            entry.attempts += 1
            entry.tried_at = now
        return entry

    def gang(self, key: str) -> list[QueuedPod]:
        return [*self._gangs.get(key, {}).values()]

    def pods_of_lane(self, lane: str) -> list[PodInfo]:
        return [entry.pod for entry in self._entries.values() if entry.pod.lane == lane]

    def take_gang(self, key: str) -> list[QueuedPod]:
        """All members; those that are not being tried yet are tried with the one that was popped."""
        members, now = self.gang(key), self.clock()
        for entry in members:
            if entry.state != "trying":
                self._waiting.pop(entry.pod.uid, None)
                entry.state, entry.tried_at = "trying", now
                entry.attempts += 1
        return members

    def refused(self, entry: QueuedPod, wakes: Iterable[str], since: int, *, errored: bool = False) -> None:
        """`since` is `cycle` when the attempt began: what happened meanwhile counts as if it happened now."""
        if entry.state != "trying":
            return
        entry.wakes = frozenset(wakes)
        entry.errored = errored
        if errored or any(self._woken.get(event, -1) > since for event in entry.wakes):
            self._rest(entry)
        else:
            entry.state = "waiting"
            self._waiting[entry.pod.uid] = entry

    def wake(self, event: str) -> bool:
        """Something happened in the cluster; whether anybody cared."""
        self.cycle += 1
        self._woken[event] = self.cycle
        cared = [entry for entry in self._waiting.values() if event in entry.wakes]
        for entry in cared:
            self._revive(entry)
        return bool(cared)

    def wake_gang(self, key: str) -> bool:
        """What is known of one gang changed."""
        return self._wake_entries([entry for entry in self.gang(key) if entry.state == "waiting"])

    def wake_lane(self, lane: str) -> bool:
        return self._wake_entries([entry for entry in self._waiting.values() if entry.pod.lane == lane])

    def _wake_entries(self, entries: Iterable[QueuedPod]) -> bool:
        woken = [*entries]
        for entry in woken:
            entry.attempts = 0  # refused for another reason than before: no rest
            self._revive(entry)
        return bool(woken)

    def wake_stale(self) -> None:
        """Those who have waited longest for nothing."""
        limit = self.clock() - LONGEST_WAIT_S
        for entry in [entry for entry in self._waiting.values() if entry.tried_at < limit]:
            self._revive(entry)

    def next_due(self) -> float | None:
        """When `pop` will have something again, if nothing happens."""
        return self._resting[0][0] if self._resting else None

    def _revive(self, entry: QueuedPod) -> None:
        self._waiting.pop(entry.pod.uid, None)
        if entry.rest_until <= self.clock():
            self._activate(entry)
        else:
            self._rest(entry)

    def _activate(self, entry: QueuedPod) -> None:
        entry.state = "active"
        item = (-entry.gang_priority, -entry.pod.priority, entry.order, next(self._orders), entry)
        heapq.heappush(self._active.setdefault(entry.pod.lane, []), item)

    def _rest(self, entry: QueuedPod) -> None:
        entry.state = "resting"
        heapq.heappush(self._resting, (entry.rest_until, next(self._orders), entry))

    def _promote(self, entry: QueuedPod) -> None:
        if entry.state == "resting":
            self._activate(entry)

    def _pop_active(self) -> QueuedPod | None:
        while self._active:
            lane = min(self._active, key=self._lane_order) if len(self._active) > 1 else next(iter(self._active))
            heap = self._active[lane]
            entry = heapq.heappop(heap)[-1]
            if not heap:
                del self._active[lane]
            if entry.state == "active":
                return entry
        return None

    def _pop_early(self) -> QueuedPod | None:
        kept = []
        found = None
        while self._resting and found is None:
            item = heapq.heappop(self._resting)
            if item[2].state != "resting":
                continue
            if item[2].errored:
                kept.append(item)
            else:
                found = item[2]
        for item in kept:
            heapq.heappush(self._resting, item)
        return found
