"""How a pod says which group it belongs to, and what counts for both groups and queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from danlu.meta.kind import Kind, Object
from danlu.meta.quantity import Quantity
from danlu.meta.resourcesums import add, pod_requests

SCHEDULER = "t9k-scheduler"
SYSTEM_NAMESPACE = "t9k-system"  # queues are an administrator's: only those in this namespace are used
DEFAULT_QUEUE = "default"

GROUP_NAME = "scheduler.tensorstack.dev/group-name"
QUEUE_NAME = "scheduler.tensorstack.dev/queue"
ROLE = "scheduler.tensorstack.dev/role"

QUEUE = Kind("scheduler.tensorstack.dev", "v1beta1", "Queue", "queues", True, ("q",))
POD_GROUP = Kind("scheduler.tensorstack.dev", "v1beta1", "PodGroup", "podgroups", True, ("pg",))

PHASES = ("pending", "running", "succeeded", "failed", "unknown")
FINISHED = ("Succeeded", "Failed")


def is_ours(pod: Object) -> bool:
    return (pod.get("spec") or {}).get("schedulerName") == SCHEDULER


def _label(pod: Object, name: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(name) or "")


def group_of(pod: Object) -> str:
    """The name of its PodGroup, in its own namespace; "" for a pod on its own."""
    return _label(pod, GROUP_NAME)


def role_of(pod: Object) -> str:
    return _label(pod, ROLE)


def queue_of(pod: Object, group: Object | None) -> str:
    """A group's queue is the queue of all its pods; a pod on its own says it by a label."""
    if group is not None:
        return str((group.get("spec") or {}).get("queue") or DEFAULT_QUEUE)
    return _label(pod, QUEUE_NAME) or DEFAULT_QUEUE


def phase_of(pod: Object) -> str:
    phase = str((pod.get("status") or {}).get("phase") or "Pending").lower()
    return phase if phase in PHASES else "unknown"


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def is_placed(pod: Object) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def counts(pods: Iterable[Object]) -> dict[str, int]:
    found = Counter(phase_of(pod) for pod in pods)
    return {phase: found[phase] for phase in PHASES}


def allocated(pods: Iterable[Object]) -> dict[str, str]:
    """What pods that hold a node ask for together."""
    total: dict[str, Quantity] = {}
    for pod in pods:
        if is_placed(pod) and not is_finished(pod):
            add(total, pod_requests(pod))
    return {name: str(amount) for name, amount in sorted(total.items()) if amount}
