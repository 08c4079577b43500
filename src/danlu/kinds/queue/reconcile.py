"""One Queue and the pods in it → its status, and whose time is over. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from danlu.diagnose import say, stated
from danlu.kinds._gang import durations, markers
from danlu.kinds._gang.queuerules import quota_of
from danlu.meta import conditions
from danlu.meta.clock import parse_time, rfc3339
from danlu.meta.kind import Object
from danlu.meta.quantity import Quantity, parse
from danlu.meta.resourcesums import add, pod_requests
from danlu.runtime.reconcile import Outcome

PRESSURE = 0.9  # of the quota: from here on the queue is said to be under pressure
CRITICAL_PRIORITY = 2_000_000_000  # pods of the system are not ended, whatever queue they name


@dataclass(frozen=True, slots=True)
class Observed:
    pods: Sequence[Object] = ()  # all that are in the queue
    groups: Sequence[Object] = ()


@dataclass(slots=True)
class QueueOutcome(Outcome):
    expired: list[Object] = field(default_factory=list)  # pods that ran longer than maxDuration


def reconcile(queue: Object, observed: Observed, now: datetime) -> QueueOutcome:
    outcome = QueueOutcome()
    spec = queue.get("spec") or {}
    if queue["metadata"].get("namespace") != markers.SYSTEM_NAMESPACE:
        outcome.status = _unused(queue, now)
        return outcome
    alone = sum(1 for pod in observed.pods if not markers.group_of(pod) and not markers.is_finished(pod))
    outcome.status = {
        "allocated": markers.allocated(observed.pods),
        "conditions": _conditions(queue, spec, observed.pods, now),
        "podGroups": {"total": len(observed.groups) + alone},
        "pods": markers.counts(observed.pods),
    }
    if spec.get("maxDuration"):
        _expire(outcome, observed.pods, durations.seconds(spec["maxDuration"]), now)
    return outcome


def _conditions(queue: Object, spec: Object, pods: Sequence[Object], now: datetime) -> list[Object]:
    found = [dict(one) for one in (queue.get("status") or {}).get("conditions") or ()]
    conditions.remove(found, "Unused")
    stamp = rfc3339(now)
    if spec.get("closed"):
        conditions.set(found, "QueueClosed", "True", "QueueClosed", stated("DL-QUEUE-IS-CLOSED"), stamp)
    else:
        conditions.set(found, "QueueClosed", "False", "QueueOpen", stated("DL-QUEUE-IS-OPEN"), stamp)
    short = _pressure(quota_of(spec), pods)
    if short:
        conditions.set(
            found,
            "ResourcePressure",
            "True",
            "QueueHasResourcePressure",
            stated("DL-QUEUE-PRESSURE", used=short),
            stamp,
        )
    else:
        words = stated("DL-QUEUE-NO-PRESSURE")
        conditions.set(found, "ResourcePressure", "False", "QueueHasNoResourcePressure", words, stamp)
    return found


def _unused(queue: Object, now: datetime) -> Object:
    found: list[Object] = [dict(one) for one in (queue.get("status") or {}).get("conditions") or ()]
    words = say("DL-QUEUE-ELSEWHERE", namespace=markers.SYSTEM_NAMESPACE)
    conditions.set(found, "Unused", "True", "WrongNamespace", words, rfc3339(now))
    return {"conditions": found}


def _pressure(quota: Mapping[str, str | int], pods: Sequence[Object]) -> str:
    used: dict[str, Quantity] = {}
    for pod in pods:
        if markers.is_placed(pod) and not markers.is_finished(pod):
            add(used, pod_requests(pod))
    parts = []
    for name, most in sorted(quota.items()):
        limit = parse(most)
        have = used.get(name)
        if have is not None and have.nano > PRESSURE * limit.nano:
            parts.append(f"{name} {have}/{limit}")
    return ", ".join(parts)


# -- maxDuration


def _expire(outcome: QueueOutcome, pods: Sequence[Object], longest: float, now: datetime) -> None:
    """Who is over, and when to look again for the next."""
    for pod in pods:
        started = (pod.get("status") or {}).get("startTime")
        if not started or not may_end(pod):
            continue
        left = longest - (now - parse_time(started)).total_seconds()
        if left <= 0:
            outcome.expired.append(pod)
        elif outcome.requeue_after is None or left < outcome.requeue_after:
            outcome.requeue_after = left


def may_end(pod: Object) -> bool:
    meta = pod["metadata"]
    if markers.is_finished(pod) or meta.get("deletionTimestamp"):
        return False
    if ((pod.get("spec") or {}).get("priority") or 0) >= CRITICAL_PRIORITY:
        return False
    return not any(owner.get("kind") == "DaemonSet" for owner in meta.get("ownerReferences") or ())
