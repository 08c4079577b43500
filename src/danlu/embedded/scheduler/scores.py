"""Scores: among the nodes that can take the pod, which is best. Weights and formulas are kube-scheduler's defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import AffinityTerm, PodInfo, Spread
from danlu.embedded.scheduler.trial import spread_counts, spread_tally
from danlu.meta import nodeselection

MAX = 100
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED_AFFINITY_WEIGHT = 1  # what a pod's required affinity to the incoming one adds to a place's score

TAINT_WEIGHT, NODE_AFFINITY_WEIGHT, SPREAD_WEIGHT, NEIGHBOUR_WEIGHT = 3, 2, 2, 2

Nodes = Sequence[NodeInfo]


def normalised(counts: list[int], *, reverse: bool = False) -> list[int]:
    """Stretch to 0…100, the largest count becoming 100 (or 0, reversed)."""
    most = max(counts, default=0)
    if most == 0:
        return [MAX if reverse else 0] * len(counts)
    scaled = [MAX * count // most for count in counts]
    return [MAX - score for score in scaled] if reverse else scaled


def least_allocated(pod: PodInfo, nodes: Nodes) -> list[int]:
    cpu, memory = pod.scored
    scores = []
    for node in nodes:
        total = parts = 0
        for capacity, used in (
            (node.allocatable.get("cpu", 0), node.scored_cpu + cpu),
            (node.allocatable.get("memory", 0), node.scored_memory + memory),
        ):
            if capacity:
                parts += 1
                total += (capacity - used) * MAX // capacity if used <= capacity else 0
        scores.append(total // parts if parts else 0)
    return scores


def _balance(cpu: int, memory: int, node: NodeInfo) -> int:
    cpu_capacity, memory_capacity = node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0)
    if not cpu_capacity or not memory_capacity:
        return MAX
    deviation = abs(min(cpu / cpu_capacity, 1) - min(memory / memory_capacity, 1)) / 2
    return int((1 - deviation) * MAX)


def balanced(pod: PodInfo, nodes: Nodes) -> list[int]:
    """Prefers nodes on which cpu and memory would be used up evenly. Says nothing about pods that ask for neither."""
    cpu, memory = pod.request.get("cpu", 0), pod.request.get("memory", 0)
    if not cpu and not memory:
        return [0] * len(nodes)
    scores = []
    for node in nodes:
        used_cpu, used_memory = node.requested.get("cpu", 0), node.requested.get("memory", 0)
        gain = _balance(used_cpu + cpu, used_memory + memory, node) - _balance(used_cpu, used_memory, node)
        scores.append(MAX // 2 + (MAX // 2 + gain) // 2)
    return scores


def taints(pod: PodInfo, nodes: Nodes) -> list[int] | None:
    if not any(taint.get("effect") == "PreferNoSchedule" for node in nodes for taint in node.taints):
        return None
    forgiving = [t for t in pod.tolerations if t.get("effect") in (None, "", "PreferNoSchedule")]
    counts = [
        sum(
            1
            for taint in node.taints
            if taint.get("effect") == "PreferNoSchedule" and not nodeselection.is_tolerated(taint, forgiving)
        )
        for node in nodes
    ]
    return normalised(counts, reverse=True)


def node_affinity(pod: PodInfo, nodes: Nodes) -> list[int] | None:
    if not pod.node_preferences:
        return None
    counts = []
    for node in nodes:
        counts.append(
            sum(
                preference.get("weight") or 0
                for preference in pod.node_preferences
                if nodeselection.term_matches(preference.get("preference") or {}, node.labels, node.name)
            )
        )
    return normalised(counts)


def neighbours(pod: PodInfo, nodes: Nodes, cache: Cache) -> list[int] | None:
    places: dict[tuple[str, str], int] = {}

    def credit(topology: str, node: NodeInfo, weight: int) -> None:
        value = node.labels.get(topology)
        if value is not None and weight:
            places[topology, value] = places.get((topology, value), 0) + weight

    own_labels = cache.namespace_labels(pod.namespace)
    for node in cache.nodes_with_affinity():
        for other in node.pods_with_affinity.values():
            for term in other.affinity:
                if term.matches(pod, own_labels):
                    credit(term.topology, node, REQUIRED_AFFINITY_WEIGHT)
            for sign, terms in ((1, other.preferred_affinity), (-1, other.preferred_anti_affinity)):
                for term in terms:
                    if term.matches(pod, own_labels):
                        credit(term.topology, node, sign * term.weight)
    for sign, terms in ((1, pod.preferred_affinity), (-1, pod.preferred_anti_affinity)):
        for term in terms:
            for name, count in cache.tally(term.key, _matcher(term, cache)).items():
                if name in cache.real:
                    credit(term.topology, cache.real[name], sign * term.weight * count)
    if not places:
        return None
    sums = []
    for node in nodes:
        labels = node.labels
        sums.append(sum(weight for (topology, value), weight in places.items() if labels.get(topology) == value))
    least, most = min(sums), max(sums)
    return [int(MAX * (total - least) / (most - least)) if most > least else 0 for total in sums]


def _matcher(term: AffinityTerm, cache: Cache) -> Callable[[PodInfo], bool]:
    return lambda other: term.matches(other, cache.namespace_labels(other.namespace))


def _spread_score(
    pod: PodInfo, constraint: Spread, nodes: Nodes, cache: Cache, per_node: dict[str, int]
) -> list[float]:
    by_value: dict[str, int] = {}
    if constraint.topology == HOSTNAME:
        domains = len(nodes)
    else:
        by_value = {node.labels[constraint.topology]: 0 for node in nodes if constraint.topology in node.labels}
        domains = len(by_value)
        for name, count in per_node.items():
            node = cache.real.get(name)
            value = node.labels.get(constraint.topology) if node else None
            if node and value in by_value and spread_counts(pod, constraint, node):
                by_value[value] += count
    weight = math.log(domains + 2)
    scores = []
    for node in nodes:
        value = node.labels.get(constraint.topology)
        if value is None:
            scores.append(0.0)
            continue
        count = per_node.get(node.name, 0) if constraint.topology == HOSTNAME else by_value[value]
        scores.append(count * weight + constraint.max_skew - 1)
    return scores


def spread(pod: PodInfo, nodes: Nodes, cache: Cache) -> list[int] | None:
    """Soft constraints of the pod; without any, siblings of one ReplicaSet or StatefulSet keep apart."""
    if pod.soft_spread:
        parts = [_spread_score(pod, c, nodes, cache, spread_tally(cache, pod.namespace, c)) for c in pod.soft_spread]
        ignored = [any(c.topology not in node.labels for c in pod.soft_spread) for node in nodes]
    elif not pod.spread and pod.owner and (siblings := cache.siblings(pod)):
        parts = [_spread_score(pod, c, nodes, cache, siblings) for c in DEFAULT_SPREAD]
        ignored = [False] * len(nodes)
    else:
        return None
    sums = [round(sum(column)) for column in zip(*parts, strict=True)]
    counted = [total for total, skip in zip(sums, ignored, strict=True) if not skip]
    least, most = min(counted, default=0), max(counted, default=0)
    return [
        0 if skip else MAX if most == 0 else MAX * (most + least - total) // most
        for total, skip in zip(sums, ignored, strict=True)
    ]


DEFAULT_SPREAD = (
    Spread({"topologyKey": HOSTNAME, "maxSkew": 3}, "", {}),
    Spread({"topologyKey": ZONE, "maxSkew": 5}, "", {}),
)


def best(pod: PodInfo, nodes: Nodes, cache: Cache, *, pack: bool = False) -> NodeInfo:
    """`pack` fills the fullest node first: a gang that does not fit spread out may fit packed."""
    if len(nodes) == 1:
        return nodes[0]
    sign = -1 if pack else 1
    totals = [sign * free + even for free, even in zip(least_allocated(pod, nodes), balanced(pod, nodes), strict=True)]
    for weight, scores in (
        (TAINT_WEIGHT, taints(pod, nodes)),
        (NODE_AFFINITY_WEIGHT, node_affinity(pod, nodes)),
        (SPREAD_WEIGHT, None if pack else spread(pod, nodes, cache)),
        (NEIGHBOUR_WEIGHT, neighbours(pod, nodes, cache)),
    ):
        if scores is not None:
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    return nodes[max(range(len(nodes)), key=totals.__getitem__)]
