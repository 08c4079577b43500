"""Taking room back between lanes: which gangs of lower, preemptible lanes must go so that a gang fits.

A gang that would fall below its minimum is of no more use, so it goes whole; pods beyond a gang's minimum go one by
one, and before anything else of their lane. Pure, and made on the cache as every trial (gangs.py): when the answer is
out, the cache is as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from danlu.embedded.scheduler import gangs
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.gangs import Attempt, Placement
from danlu.embedded.scheduler.placement import Placer
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.policy import Lane

MAX_TRIALS = 64  # beyond so many single decisions the rest of the candidates goes together, least important first


@dataclass(slots=True)
class Clearing:
    """`nodes`: where each pod of the gang is to go once the victims have ended."""

    nodes: dict[str, str]  # uid → node
    victims: list[PodInfo]


@dataclass(slots=True)
class _Unit:
    """What is taken together."""

    gang: str
    pods: list[PodInfo]
    is_core: bool  # the gang cannot do without
    importance: tuple[int, int, bool, str]  # of the lane, of the gang, the core before surplus, the older first


Surplus = Callable[[str], tuple[int, int]]
"""Gang → (how many of its members are more than it needs, its priority)."""


def plan(
    attempt: Attempt,
    placer: Placer,
    lane_of: Callable[[str], Lane | None],
    surplus: Surplus,
    going: Collection[str] = (),
) -> Clearing | None:
    """`going`: uids of pods that are being evicted for others already."""
    own = attempt.lane
    if own is None:
        return None
    cache = placer.cache
    leaving = [pod for pod, _ in cache.pods.values() if pod.deleting or pod.uid in going]
    gone = {pod.uid for pod in leaving}
    units = _units((pod for pod in _candidates(cache, own, lane_of) if pod.uid not in gone), surplus)
    if not units:
        return None
    with gangs.trial_on(cache):
        removed = _Removed(cache)
        try:
            removed.take(leaving)
            for unit in units:
                removed.take(unit.pods)
            found = _fits(attempt, placer)
            if found is None:
                return None
            victims: list[PodInfo] = []
            broken: set[str] = set()  # gangs that lose their core: what is left of them is of no use
            for number, unit in enumerate(sorted(units, key=lambda unit: unit.importance, reverse=True)):
                if number < MAX_TRIALS and unit.gang not in broken:
                    removed.put_back(unit.pods)
                    kept = _fits(attempt, placer)
                    if kept is not None:
                        found = kept
                        continue
                    removed.take(unit.pods)
                victims += unit.pods
                if unit.is_core:
                    broken.add(unit.gang)
            return Clearing({pod.uid: placed.node for pod, placed in found.placed}, victims)
        finally:
            removed.restore()


def _fits(attempt: Attempt, placer: Placer) -> Placement | None:
    found = gangs.search(attempt, placer)
    if not isinstance(found, Placement):
        return None
    gangs.take_back(found, placer.cache)
    return found


def _candidates(cache: Cache, own: Lane, lane_of: Callable[[str], Lane | None]) -> list[PodInfo]:
    lanes: dict[str, bool] = {}
    found = []
    for pod, _ in cache.pods.values():
        if not pod.lane:
            continue
        if pod.lane not in lanes:
            lane = lane_of(pod.lane)
            lanes[pod.lane] = lane is not None and lane.preemptible and lane.priority < own.priority
        if lanes[pod.lane]:
            found.append(pod)
    return found


def _units(pods: Iterable[PodInfo], surplus: Surplus) -> list[_Unit]:
    by_gang: dict[str, list[PodInfo]] = {}
    for pod in pods:
        by_gang.setdefault(pod.gang, []).append(pod)
    units = []
    for key, members in by_gang.items():
        members.sort(key=lambda pod: (pod.created, pod.name))
        spare, priority = surplus(key)
        core = members[: max(len(members) - spare, 0)]
        lane_priority, age = members[0].lane_priority, _oldest_first(members[0].created)
        if core:
            units.append(_Unit(key, core, True, (lane_priority, priority, True, age)))
        units += [_Unit(key, [pod], False, (lane_priority, priority, False, age)) for pod in members[len(core) :]]
    return units


def _oldest_first(created: str) -> str:
    """Sorts the other way round than the stamp: the longest-running gang is the most important."""
    return "".join(chr(0x10FFFF - ord(char)) for char in created)


class _Removed:
    """Pods taken out of the cache for a trial, each with the way back."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._was: dict[str, tuple[PodInfo, str, bool]] = {}

    def take(self, pods: Iterable[PodInfo]) -> None:
        for pod in pods:
            known, node = self._cache.pods[pod.uid]
            self._was[pod.uid] = (known, node, self._cache.is_assumed(pod.uid))
            self._cache.remove_pod(pod.uid)

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        for pod in pods:
            known, node, assumed = self._was.pop(pod.uid)
            if assumed:
                self._cache.assume(known, node)
            else:
                self._cache.set_pod(known, node)

    def restore(self) -> None:
        self.put_back([known for known, _, _ in self._was.values()])
