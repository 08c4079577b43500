"""How many pods each replica set of a deployment may have; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from danlu.embedded.controllers._shared.podcontrol import share
from danlu.embedded.controllers.deployment import revisions
from danlu.meta import conditions
from danlu.meta.clock import later, parse_time
from danlu.meta.kind import Object

NO_LIMIT = 2**31 - 1


def replicas(obj: Object) -> int:
    value: int = obj["spec"]["replicas"]
    return value


def counted(obj: Object, field: str) -> int:
    value: int = (obj.get("status") or {}).get(field) or 0
    return value


def total(replica_sets: Iterable[Object]) -> int:
    return sum(map(replicas, replica_sets))


def total_counted(replica_sets: Iterable[Object], field: str) -> int:
    return sum(counted(one, field) for one in replica_sets)


def active(replica_sets: Iterable[Object]) -> list[Object]:
    return [one for one in replica_sets if replicas(one) > 0]


def oldest_first(replica_sets: Iterable[Object]) -> list[Object]:
    return sorted(replica_sets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))


def is_rolling(deployment: Object) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def _limits(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable in pods; not both 0, or nothing could move."""
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge"), replicas(deployment), round_up=True)
    unavailable = share(rolling.get("maxUnavailable"), replicas(deployment), round_up=False)
    return surge, unavailable if surge or unavailable else 1


def max_surge(deployment: Object) -> int:
    return _limits(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    if not is_rolling(deployment) or replicas(deployment) == 0:
        return 0
    return min(_limits(deployment)[1], replicas(deployment))


def new_size(deployment: Object, everything: Sequence[Object], new: Object) -> int:
    """The size that the new replica set may grow to now."""
    if not is_rolling(deployment):
        return replicas(deployment)
    room = replicas(deployment) + max_surge(deployment) - total(everything)
    if room <= 0:
        return replicas(new)
    return replicas(new) + min(room, replicas(deployment) - replicas(new))


def old_sizes(deployment: Object, old: Sequence[Object], new: Object) -> list[tuple[Object, int]]:
    """Old replica sets that may shrink now, each with its new size: first what is not healthy, then what is spare."""
    least_available = replicas(deployment) - max_unavailable(deployment)
    new_unavailable = replicas(new) - counted(new, "availableReplicas")
    most = total(old) + replicas(new) - least_available - new_unavailable
    if most <= 0:
        return []
    ordered = oldest_first(active(old))
    sizes = {one["metadata"]["name"]: replicas(one) for one in ordered}
    left = most
    for one in ordered:
        name = one["metadata"]["name"]
        taken = max(0, min(left, sizes[name] - counted(one, "availableReplicas")))
        sizes[name] -= taken
        left -= taken
    spare = total_counted([*ordered, new], "availableReplicas") - least_available
    for one in ordered:
        name = one["metadata"]["name"]
        taken = max(0, min(spare, sizes[name]))
        sizes[name] -= taken
        spare -= taken
    changed = ((one, sizes[one["metadata"]["name"]]) for one in ordered)
    return [(one, size) for one, size in changed if size != replicas(one)]


def proportional_sizes(deployment: Object, everything: Sequence[Object]) -> list[tuple[Object, int]]:
    """Scaling in the middle of a rollout: each replica set gets its share of what is added or taken."""
    allowed = replicas(deployment) + max_surge(deployment) if replicas(deployment) > 0 else 0
    to_add = allowed - total(everything)
    sets = oldest_first(everything)
    if to_add > 0:
        sets.reverse()  # of equal sizes the newest first when growing, the oldest first when shrinking
    sets.sort(key=replicas, reverse=True)
    sizes, added = [], 0
    for one in sets:
        part = _fraction(deployment, one) if to_add != added else 0
        left = to_add - added
        part = min(part, left) if to_add > 0 else max(part, left)
        part = part if to_add != 0 else 0
        sizes.append(replicas(one) + part)
        added += part
    if sizes and to_add != 0:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return list(zip(sets, sizes, strict=True))


def _fraction(deployment: Object, replica_set: Object) -> int:
    if replicas(deployment) == 0:
        return -replicas(replica_set)
    before = revisions.number(replica_set, revisions.MAX_REPLICAS) or counted(deployment, "replicas")
    if not before:
        return 0
    most = replicas(deployment) + max_surge(deployment)
    scaled = replicas(replica_set) * most / before
    return int(scaled + 0.5) - replicas(replica_set)


def has_deadline(deployment: Object) -> bool:
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, NO_LIMIT)


def is_complete(deployment: Object, status: Object) -> bool:
    wanted = replicas(deployment)
    counts = (status.get(name) or 0 for name in ("updatedReplicas", "replicas", "availableReplicas"))
    generation = deployment["metadata"].get("generation", 0)
    return all(count == wanted for count in counts) and (status.get("observedGeneration") or 0) >= generation


def has_progressed(old: Object, new: Object) -> bool:
    def outdated(status: Object) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    return outdated(new) < outdated(old) or any(
        (new.get(name) or 0) > (old.get(name) or 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def deadline(deployment: Object, status: Object) -> datetime | None:
    """When the rollout will have made no progress for too long; None when it is over or has no deadline."""
    progressing = conditions.get(status.get("conditions"), "Progressing")
    if not has_deadline(deployment) or progressing is None or not progressing.get("lastUpdateTime"):
        return None
    if progressing.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    seconds = deployment["spec"]["progressDeadlineSeconds"]
    return later(parse_time(progressing["lastUpdateTime"]), seconds)
