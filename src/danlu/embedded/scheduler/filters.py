"""Filters: may this pod run on this node, and if not, why, in kube-scheduler's words.

`refusal` asks the filters in kube-scheduler's order and answers with the first that says no. A refusal is *final*
when removing other pods could not mend it; preemption then leaves the node alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.trial import Trial, matches_all, suits_node
from danlu.meta import nodeselection

# What may happen in the cluster that makes another attempt worthwhile.
NODE_CHANGED = "node changed"
POD_GONE = "pod gone"
POD_PLACED = "pod placed"
VOLUME_CHANGED = "volume changed"

ON_NODE = frozenset((NODE_CHANGED,))
ON_ROOM = frozenset((NODE_CHANGED, POD_GONE))
ON_PODS = frozenset((NODE_CHANGED, POD_GONE, POD_PLACED))
ON_VOLUME = frozenset((NODE_CHANGED, VOLUME_CHANGED))
ANYTHING = frozenset((NODE_CHANGED, POD_GONE, POD_PLACED, VOLUME_CHANGED))


class FilterRefusal(NamedTuple):
    reasons: tuple[str, ...]
    final: bool
    wakes: frozenset[str]


UNSCHEDULABLE = FilterRefusal(("node(s) were unschedulable",), True, ON_NODE)
TAINTED = FilterRefusal(("node(s) had untolerated taint(s)",), True, ON_NODE)
NODE_AFFINITY = FilterRefusal(("node(s) didn't match Pod's node affinity/selector",), True, ON_NODE)
PORTS = FilterRefusal(("node(s) didn't have free ports for the requested pod ports",), False, ON_ROOM)
SPREAD_LABEL = FilterRefusal(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), True, ON_NODE
)
SPREAD = FilterRefusal(("node(s) didn't match pod topology spread constraints",), False, ON_PODS)
AFFINITY = FilterRefusal(("node(s) didn't match pod affinity rules",), True, ON_PODS)
ANTI_AFFINITY = FilterRefusal(("node(s) didn't match pod anti-affinity rules",), False, ON_PODS)
REPELLED = FilterRefusal(("node(s) didn't satisfy existing pods anti-affinity rules",), False, ON_PODS)

VolumeFilter = Callable[[NodeInfo], FilterRefusal | None]


def resources(pod: PodInfo, node: NodeInfo) -> FilterRefusal | None:
    reasons: list[str] = []
    final = False
    if len(node.pods) + 1 > node.max_pods:
        reasons.append("Too many pods")
    allocatable, requested = node.allocatable, node.requested
    for name, wanted in pod.request.items():
        capacity = allocatable.get(name, 0)
        if wanted > capacity - requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            final = final or wanted > capacity
    return FilterRefusal(tuple(reasons), final, ON_ROOM) if reasons else None


def spread(trial: Trial, node: NodeInfo) -> FilterRefusal | None:
    for constraint, counts in zip(trial.pod.spread, trial.spread, strict=True):
        value = node.labels.get(constraint.topology)
        if value is None:
            return SPREAD_LABEL
        least = min(counts.values(), default=2**31 - 1)
        if len(counts) < constraint.min_domains:
            least = 0
        itself = constraint.selector is not None and constraint.selector.matches(trial.pod.labels)
        if counts.get(value, 0) + itself - least > constraint.max_skew:
            return SPREAD
    return None


def _near_enough(trial: Trial, node: NodeInfo) -> bool:
    found = True
    for term in trial.pod.affinity:
        value = node.labels.get(term.topology)
        if value is None:
            return False
        found = found and trial.affine.get((term.topology, value), 0) > 0
    # The first pod of a series that wants to be near its own kind has nobody to be near: it may start the series.
    return found or (not trial.affine and matches_all(trial.pod.affinity, trial.pod, trial.cache))


def neighbours(trial: Trial, node: NodeInfo) -> FilterRefusal | None:
    if trial.pod.affinity and not _near_enough(trial, node):
        return AFFINITY
    if trial.anti_affine:
        for term in trial.pod.anti_affinity:
            value = node.labels.get(term.topology)
            if value is not None and trial.anti_affine.get((term.topology, value), 0) > 0:
                return ANTI_AFFINITY
    if trial.repelling:
        labels = node.labels
        for (topology, value), count in trial.repelling.items():
            if count > 0 and labels.get(topology) == value:
                return REPELLED
    return None


def refusal(trial: Trial, node: NodeInfo, volumes: VolumeFilter | None = None) -> FilterRefusal | None:
    """None: the pod may run there."""
    pod = trial.pod
    if node.unschedulable and not nodeselection.is_tolerated(nodeselection.UNSCHEDULABLE_TAINT, pod.tolerations):
        return UNSCHEDULABLE
    if node.taints and nodeselection.untolerated(node.taints, pod.tolerations):
        return TAINTED
    if (pod.node_selector or pod.node_affinity is not None) and not suits_node(pod, node):
        return NODE_AFFINITY
    if pod.ports and node.ports_taken(pod.ports):
        return PORTS
    refused = resources(pod, node)
    if refused is None and volumes is not None:
        refused = volumes(node)
    if refused is None and trial.spread:
        refused = spread(trial, node)
    if refused is None and (pod.affinity or trial.anti_affine or trial.repelling):
        refused = neighbours(trial, node)
    return refused


def refusal_among_nominated(trial: Trial, node: NodeInfo, volumes: VolumeFilter | None = None) -> FilterRefusal | None:
    """`refusal`, also with those pods there that were promised room on the node and rank at least as high."""
    promised = trial.cache.nominated_on(node.name, trial.pod)
    if promised:
        crowded, crowded_trial = node.copy(), trial.copy()
        for other in promised:
            crowded.add(other)
            crowded_trial.shift(other, node, 1)
        refused = refusal(crowded_trial, crowded, volumes)
        if refused is not None:
            return refused
    return refusal(trial, node, volumes)
