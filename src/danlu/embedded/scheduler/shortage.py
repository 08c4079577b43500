"""What is short when a gang is refused, in numbers: of the lane's quota, of free room, or of nodes altogether.

All answers are a sentence with its code, or "" when nothing is short. Sums are taken over the
smallest pods that would do, so a shortage that is named is a real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from danlu.diagnose import Cause, room, stated
from danlu.diagnose.reading import without_preemption
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import PodInfo, Request
from danlu.embedded.scheduler.policy import Gang, Lane
from danlu.embedded.scheduler.trial import suits_node
from danlu.meta import nodeselection, quantity
from danlu.meta.quantity import parse

BINARY = ("memory", "ephemeral-storage")
OVER_QUOTA = "DL-QUEUE-SPENT"


def amount(resource: str, number: int) -> str:
    """`1500m cpu`, `4Gi memory`, `8 nvidia.com/gpu`"""
    if resource == "cpu":
        return f"{quantity.of_milli(number)} cpu"
    form = "BinarySI" if resource in BINARY or resource.startswith("hugepages-") else "DecimalSI"
    return f"{quantity.of(number, form)} {resource}"


def bare_amount(resource: str, number: int) -> str:
    return amount(resource, number).split(" ")[0]


def least_sums(pods: Sequence[PodInfo], count: int) -> Request:
    """For each resource, what `count` of the pods ask for at the very least."""
    names = {name for pod in pods for name in pod.request}
    return {name: sum(sorted(pod.request.get(name, 0) for pod in pods)[:count]) for name in names}


# -- quota


def over_quota(pod: PodInfo, lane: Lane, cache: Cache) -> str:
    """The pod on top of what its lane already has."""
    if not lane.quota:
        return ""
    used = cache.used_by(pod.lane)
    for name, limit in lane.quota.items():
        wanted = pod.request.get(name, 0)
        if wanted and used.get(name, 0) + wanted > limit:
            left = max(limit - used.get(name, 0), 0)
            told = {"queue": pod.lane, "resource": name, "pod": pod.name, "left": bare_amount(name, left)}
            return stated(OVER_QUOTA, **told, limit=bare_amount(name, limit), asked=bare_amount(name, wanted))
    return ""


def of_quota(gang: Gang, lane: Lane | None, pods: Sequence[PodInfo], needed: int, cache: Cache) -> str:
    if lane is None or not lane.quota or not needed:
        return ""
    used, own = cache.used_by(gang.lane), least_sums(pods, needed)
    subject = f"group {gang.name}" if gang.name else f"pod {pods[0].name}"
    for name, limit in lane.quota.items():
        wanted = own.get(name, 0)
        if wanted > limit:
            told = {"subject": subject, "queue": gang.lane, "resource": name, "asked": bare_amount(name, wanted)}
            return stated("DL-QUEUE-NEVER", **told, limit=bare_amount(name, limit))
    for name, limit in lane.quota.items():
        wanted, have = own.get(name, 0), used.get(name, 0)
        if wanted and have + wanted > limit:
            told = {"subject": subject, "queue": gang.lane, "resource": name, "asked": bare_amount(name, wanted)}
            left = bare_amount(name, max(limit - have, 0))
            return stated("DL-QUEUE-QUOTA", **told, left=left, limit=bare_amount(name, limit))
    return ""


# -- room


def of_free_room(pods: Sequence[PodInfo], needed: int, cache: Cache) -> str:
    """Too little even if it could be cut to measure: saves a search that must fail."""
    for name, wanted in sorted(least_sums(pods, needed).items()):
        free = sum(max(node.allocatable.get(name, 0) - node.requested.get(name, 0), 0) for node in cache.real.values())
        if wanted > free:
            return stated("DL-SHORT-FREE", resource=name, asked=bare_amount(name, wanted), free=bare_amount(name, free))
    return ""


def for_ever(pods: Sequence[PodInfo], needed: int, members: Iterable[str], cache: Cache) -> str:
    """Whether even the empty nodes would not do."""
    if not pods:
        return ""
    nodes = _nodes_for(pods, cache)
    if not nodes:
        return ""  # no node that the pods may use at all: their own words say why
    running = [cache.pods[uid][0] for uid in members if uid in cache.pods]
    held = least_sums(running, len(running))
    for name, wanted in sorted(least_sums(pods, needed).items()):
        exist = sum(node.allocatable.get(name, 0) for node in nodes)
        if wanted + held.get(name, 0) > exist:
            asked = bare_amount(name, wanted + held.get(name, 0))
            return stated("DL-SHORT-EXIST", resource=name, asked=asked, exist=bare_amount(name, exist))
    largest: Mapping[str, int] = {
        name: max(node.allocatable.get(name, 0) for node in nodes) for name in {n for p in pods for n in p.request}
    }
    too_large = [(pod, name) for pod in pods for name, wanted in sorted(pod.request.items()) if wanted > largest[name]]
    if too_large and len(pods) - len({pod.uid for pod, _ in too_large}) < max(needed, 1):
        pod, name = too_large[0]
        asked, most = bare_amount(name, pod.request[name]), bare_amount(name, largest[name])
        return stated("DL-SHORT-LARGEST", pod=pod.name, resource=name, asked=asked, most=most)
    return ""


def never_fits(pod: PodInfo, cache: Cache, message: str) -> Cause | None:
    """For a pod on its own whose words are kube-scheduler's: beside these, that no node is large enough."""
    nodes = _nodes_for([pod], cache)
    for name, wanted in sorted(pod.request.items()):
        most = max((node.allocatable.get(name, 0) for node in nodes), default=wanted)
        if wanted > most:
            told = {"pod": pod.name, "resource": name, "asked": bare_amount(name, wanted)}
            told["message"] = without_preemption(message)
            if not most:
                return Cause("DL-NO-DEVICE", told)
            return Cause("DL-NEVER-FITS", {**told, "most": room.shown(parse(bare_amount(name, most)))})
    return None


def _nodes_for(pods: Sequence[PodInfo], cache: Cache) -> list[NodeInfo]:
    """Nodes that at least one of the pods may use, however full they are."""
    return [node for node in cache.real.values() if any(_may_use(pod, node) for pod in pods)]


def _may_use(pod: PodInfo, node: NodeInfo) -> bool:
    if node.unschedulable or (node.taints and nodeselection.untolerated(node.taints, pod.tolerations)):
        return False
    return suits_node(pod, node)
