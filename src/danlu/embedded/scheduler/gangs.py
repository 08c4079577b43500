"""Gangs: pods that are only of use together get nodes together, or none does.

The scheduler knows no kind that has gangs. It is handed a `Grouping`: a function from a pod to the gang it belongs
to, or None. Everything else is here: who is still missing, the trial placement, the one sentence for all.

The trial is made on the cache itself by assuming pod after pod; nothing awaits in between, so nobody sees it half
done, and a trial that fails is taken back completely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from danlu.embedded.scheduler.filters import ANYTHING
from danlu.embedded.scheduler.placing import Diagnosis, Found, Placer
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.meta.kind import Object


@dataclass(frozen=True, slots=True)
class Gang:
    key: str  # "namespace/name"; unique in the cluster
    min_member: int


Grouping = Callable[[Object], Gang | None]


def no_gangs(_pod: Object) -> Gang | None:
    return None


@dataclass(slots=True)
class Placement:
    """Pods with their nodes, all assumed in the cache; the rest of the gang may wait for room of its own."""

    placed: list[tuple[PodInfo, Found]]
    left: list[PodInfo]
    left_because: str = ""


@dataclass(slots=True)
class GangRefusal:
    message: str
    wakes: frozenset[str] = ANYTHING


def waiting_for_members(gang: Gang, present: int) -> GangRefusal:
    missing = gang.min_member - present
    return GangRefusal(f'gang "{gang.key}" waits for {missing} more of its {gang.min_member} pods to be created')


def place(gang: Gang, pods: Sequence[PodInfo], running: int, placer: Placer) -> Placement | GangRefusal:
    """`running` members already have a node. At least `gang.min_member` in all, or nothing is placed."""
    needed = max(gang.min_member - running, 0)
    if len(pods) < needed:
        return waiting_for_members(gang, running + len(pods))
    first = _attempt(pods, placer, pack=False)
    if len(first.placed) < len(pods):
        # Spread out they do not all fit. Packed, with the largest first, they may.
        _take_back(first, placer)
        packed = _attempt(sorted(pods, key=_size, reverse=True), placer, pack=True)
        if len(packed.placed) >= len(first.placed):
            first = packed
        else:
            _take_back(packed, placer)
            first = _attempt(pods, placer, pack=False)
    if len(first.placed) >= needed:
        return first
    _take_back(first, placer)
    reached = running + len(first.placed)
    return GangRefusal(
        f'gang "{gang.key}" needs {gang.min_member} pods at once and only {reached} can be placed: {first.left_because}'
    )


def _attempt(pods: Sequence[PodInfo], placer: Placer, *, pack: bool) -> Placement:
    placement = Placement([], [])
    for pod in pods:
        found = placer.place(pod, pack=pack)
        if isinstance(found, Diagnosis):
            placement.left.append(pod)
            placement.left_because = placement.left_because or found.message()
        else:
            placer.cache.assume(pod, found.node)
            placement.placed.append((pod, found))
    return placement


def _take_back(placement: Placement, placer: Placer) -> None:
    for pod, _ in placement.placed:
        placer.cache.forget(pod)


def _size(pod: PodInfo) -> tuple[int, ...]:
    extended = sum(amount for name, amount in pod.request.items() if "/" in name)
    return extended, pod.request.get("cpu", 0), pod.request.get("memory", 0)
