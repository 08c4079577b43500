"""Gangs: pods that are only of use together get nodes together, or none does.

Pure: who is still missing, the trial placement, and one sentence for all when it fails. The trial is made on the cache
itself by assuming pod after pod; nothing awaits in between, so nobody sees it half done, and a trial that fails is
taken back completely (`trial_on`), down to the cache's generation: equal state, equal answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from danlu.diagnose import stated
from danlu.embedded.scheduler import shortage
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.filters import ON_ROOM
from danlu.embedded.scheduler.placement import Diagnosis, FoundNode, Placer, histogram
from danlu.embedded.scheduler.podinfo import REQUIRED, PodInfo
from danlu.embedded.scheduler.policy import Gang, Lane
from danlu.meta.kind import Object
from danlu.meta.said import carried


@dataclass(slots=True)
class Attempt:
    """One gang as it stands: `pods` wait, `members` (uid → role) already have a node."""

    gang: Gang
    lane: Lane | None
    pods: Sequence[PodInfo]
    members: Mapping[str, str]

    @property
    def needed(self) -> int:
        return max(self.gang.min_member - len(self.members), 0)

    @property
    def needed_of_roles(self) -> dict[str, int]:
        if not self.gang.roles:
            return {}
        have = Counter(self.members.values())
        return {role: least - have[role] for role, least in self.gang.roles.items() if least > have[role]}


@dataclass(slots=True)
class Placement:
    """Pods with their nodes, all assumed in the cache; the rest of the gang may wait for room of its own."""

    placed: list[tuple[PodInfo, FoundNode]]
    left: list[PodInfo]
    left_because: str = ""
    wakes: frozenset[str] = ON_ROOM


@dataclass(slots=True)
class GangRefusal:
    message: str
    wakes: frozenset[str] = ON_ROOM
    room: bool = False  # other pods are in the way: clearing some away could help
    passing: bool = False  # likely to be over in a moment (members are being created): not worth a word yet


def place(attempt: Attempt, placer: Placer) -> Placement | GangRefusal:
    """At least the minimum in all, or nothing is placed."""
    missing = _waiting_for_members(attempt)
    if missing is not None:
        return missing
    refused = shortage.of_quota(attempt.gang, attempt.lane, attempt.pods, attempt.needed, placer.cache)
    if refused:
        return GangRefusal(refused)
    if attempt.needed > 1 and (short := shortage.of_free_room(attempt.pods, attempt.needed, placer.cache)):
        return _no_room(attempt, placer.cache, short)
    found = search(attempt, placer)
    if isinstance(found, Placement):
        return found
    return _no_room(attempt, placer.cache, found.message, found.wakes)


def search(attempt: Attempt, placer: Placer) -> Placement | GangRefusal:
    """Spread out first; packed, with the largest first, when they do not all fit so."""
    pods = _in_order(attempt)
    with trial_on(placer.cache) as trial:
        first = _try(attempt, pods, placer, pack=False)
        if not first.left:
            trial.keep = True
            return first
        take_back(first, placer.cache)
        packed = _try(attempt, sorted(pods, key=_size, reverse=True), placer, pack=True)
        if len(packed.placed) >= len(first.placed) and is_enough(attempt, packed):
            trial.keep = True
            return packed
        take_back(packed, placer.cache)
        if is_enough(attempt, first):
            again = _try(attempt, pods, placer, pack=False)
            trial.keep = True
            return again
    best = max(first, packed, key=lambda placement: len(placement.placed))
    lacking = max(best.left, key=lambda pod: (pod.created, pod.name)).name
    why: str = best.left_because
    if attempt.gang.name and best.placed:
        why = stated("DL-GROUP-FITS-PARTLY", fit=len(best.placed), pod=lacking, why=best.left_because)
    elif attempt.gang.name:
        why = stated("DL-GROUP-FITS-NOT", pod=lacking, why=best.left_because)
    return GangRefusal(why, best.wakes)


def is_enough(attempt: Attempt, placement: Placement) -> bool:
    if len(placement.placed) < attempt.needed:
        return False
    of_roles = attempt.needed_of_roles
    if not of_roles:
        return True
    placed = Counter(pod.role for pod, _ in placement.placed)
    return all(placed[role] >= needed for role, needed in of_roles.items())


def _waiting_for_members(attempt: Attempt) -> GangRefusal | None:
    gang, present = attempt.gang, len(attempt.members) + len(attempt.pods)
    if len(attempt.pods) < attempt.needed:
        message = stated("DL-GROUP-INCOMPLETE", group=gang.name, have=present, least=gang.min_member)
        return GangRefusal(message, frozenset(), passing=True)
    waiting = Counter(pod.role for pod in attempt.pods)
    for role, needed in attempt.needed_of_roles.items():
        if waiting[role] < needed:
            least = gang.roles[role]
            have = least - needed + waiting[role]
            message = stated("DL-GROUP-INCOMPLETE", group=gang.name, have=have, least=least, role=role)
            return GangRefusal(message, frozenset(), passing=True)
    return None


def _no_room(attempt: Attempt, cache: Cache, why: str, wakes: frozenset[str] = ON_ROOM) -> GangRefusal:
    gang, total = attempt.gang, len(cache.real)
    if not total:
        return GangRefusal(why, wakes)
    if any(cause["code"] == shortage.OVER_QUOTA for cause in carried(why)):
        return GangRefusal(why, wakes)  # the nodes are not to blame
    never = shortage.for_ever(attempt.pods, attempt.needed, attempt.members, cache)
    told: dict[str, object] = {"nodes": total, "group": gang.name}
    if attempt.members and gang.name:
        more = max(attempt.needed, 1)
        told |= {"missing": more, "more_pods": f"{more} more pod{'s' if more > 1 else ''}"}
    elif gang.name:
        told["all"] = gang.min_member
    if never:
        return GangRefusal(stated("DL-GROUP-NEVER", **told, why=never), wakes)
    return GangRefusal(stated("DL-GROUP-NO-ROOM", **told, why=why), wakes, room=True)


def _in_order(attempt: Attempt) -> list[PodInfo]:
    """What the roles need first, then by age and name: an elastic gang that does not fit whole gets its first pods."""
    pods = sorted(attempt.pods, key=lambda pod: (pod.created, pod.name))
    of_roles = attempt.needed_of_roles
    if not of_roles:
        return pods
    first: list[PodInfo] = []
    for pod in pods:
        if of_roles.get(pod.role, 0) > 0:
            of_roles[pod.role] -= 1
            first.append(pod)
    return [*first, *(pod for pod in pods if pod not in first)]


def _try(attempt: Attempt, pods: Sequence[PodInfo], placer: Placer, *, pack: bool) -> Placement:
    placement = Placement([], [])
    cache, lane = placer.cache, attempt.lane
    for pod in pods:
        if lane is not None:
            over = shortage.over_quota(pod, lane, cache)
            if over:
                placement.left.append(pod)
                placement.left_because = placement.left_because or over
                continue
        found = placer.place(pod, pack=pack)
        if isinstance(found, Diagnosis):
            placement.left.append(pod)
            placement.left_because = placement.left_because or _words(found)
            placement.wakes |= found.wakes
        else:
            cache.assume(pod, found.node)
            placement.placed.append((pod, found))
    return placement


def _words(found: Diagnosis) -> str:
    if not found.total:
        return found.message()
    return found.overall or histogram(found.refusals.values())


def restrict(pod: PodInfo, requirements: Sequence[Object]) -> None:
    """The lane's nodes, beside what the pod itself asks for. Begins from the pod's spec, so that it may be repeated."""
    affinity = ((pod.pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    own = affinity.get(REQUIRED)
    terms = None if own is None else own.get("nodeSelectorTerms") or ()
    if requirements:
        stated: Collection[Object] = ({},) if terms is None else terms
        terms = [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *requirements]}
            for term in stated
            if terms is None or term.get("matchExpressions") or term.get("matchFields")
        ]
    pod.node_affinity = terms


@dataclass(slots=True)
class TrialState:
    keep: bool = False


@contextmanager
def trial_on(cache: Cache) -> Iterator[TrialState]:
    """Unless `keep` is set, the cache is afterwards as before: what was assumed must have been forgotten by then."""
    generation = cache.generation
    nominated = {node: dict(pods) for node, pods in cache.nominated.items()}
    state = TrialState()
    try:
        yield state
    finally:
        if not state.keep:
            cache.nominated = nominated
            cache.generation = generation


def take_back(placement: Placement, cache: Cache) -> None:
    for pod, _ in placement.placed:
        cache.forget(pod)


def _size(pod: PodInfo) -> tuple[int, ...]:
    extended = sum(amount for name, amount in pod.request.items() if "/" in name)
    return extended, pod.request.get("cpu", 0), pod.request.get("memory", 0)
