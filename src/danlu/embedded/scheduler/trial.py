"""`Trial`: what is worked out once for a pod, before it is tried on every node.

Pod affinity, anti-affinity and topology spread ask about pods on *other* nodes. The trial counts those once, by
topology value, and can then answer for each node with a look into a dict. Preemption tries "what if these pods were
gone": it copies the trial and lets it count them out.
"""

from __future__ import annotations

from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import AffinityTerm, PodInfo, Spread
from danlu.meta import nodeselection

Place = tuple[str, str]
"""(topology key, value), as a label of a node."""


def matches_all(terms: tuple[AffinityTerm, ...], pod: PodInfo, cache: Cache) -> bool:
    labels = cache.namespace_labels(pod.namespace)
    return all(term.matches(pod, labels) for term in terms)


def suits_node(pod: PodInfo, node: NodeInfo) -> bool:
    """nodeSelector and required node affinity."""
    labels = node.labels
    for key, value in pod.node_selector.items():
        if labels.get(key) != value:
            return False
    return pod.node_affinity is None or nodeselection.any_term_matches(pod.node_affinity, labels, node.name)


def spread_counts(pod: PodInfo, constraint: Spread, node: NodeInfo) -> bool:
    """Whether the node's pods are counted at all for this constraint."""
    if constraint.honour_affinity and not suits_node(pod, node):
        return False
    return not (constraint.honour_taints and nodeselection.untolerated(node.taints, pod.tolerations))


class Trial:
    __slots__ = ("affine", "anti_affine", "cache", "pod", "repelling", "spread")

    def __init__(self, pod: PodInfo, cache: Cache) -> None:
        self.pod = pod
        self.cache = cache
        self.affine: dict[Place, int] = {}  # pods that the pod wants to be near
        self.anti_affine: dict[Place, int] = {}  # pods that it wants to be away from
        self.repelling: dict[Place, int] = {}  # pods that want it away
        self.spread: list[dict[str, int]] = []
        self._count_repelling()
        if pod.affinity:
            key = ("all", *(term.key for term in pod.affinity))
            tally = cache.tally(key, lambda other: matches_all(pod.affinity, other, cache))
            for term in pod.affinity:
                self._add_tally(self.affine, term.topology, tally)
        for term in pod.anti_affinity:
            self._add_tally(self.anti_affine, term.topology, self._tally_of(term))
        if pod.spread:
            self._count_spread()

    def _tally_of(self, term: AffinityTerm) -> dict[str, int]:
        cache = self.cache
        return cache.tally(term.key, lambda other: term.matches(other, cache.namespace_labels(other.namespace)))

    def _count_repelling(self) -> None:
        for node in self.cache.nodes_with_anti_affinity():
            for other in node.pods_with_anti_affinity.values():
                self._repel(other, node, 1)

    def _repel(self, other: PodInfo, node: NodeInfo, by: int) -> None:
        own_labels = self.cache.namespace_labels(self.pod.namespace)
        for term in other.anti_affinity:
            if term.matches(self.pod, own_labels):
                _step(self.repelling, term.topology, node, by)

    def _add_tally(self, counts: dict[Place, int], topology: str, tally: dict[str, int]) -> None:
        for name, count in tally.items():
            node = self.cache.real.get(name)
            if node is not None and count:
                _step(counts, topology, node, count)

    def _count_spread(self) -> None:
        constraints = self.pod.spread
        self.spread = [{} for _ in constraints]
        tallies = [spread_tally(self.cache, self.pod.namespace, c) for c in constraints]
        for node in self.cache.real.values():
            if not all(c.topology in node.labels for c in constraints):
                continue
            for constraint, tally, counts in zip(constraints, tallies, self.spread, strict=True):
                if spread_counts(self.pod, constraint, node):
                    value = node.labels[constraint.topology]
                    counts[value] = counts.get(value, 0) + tally.get(node.name, 0)

    def copy(self) -> Trial:
        twin = Trial.__new__(Trial)
        twin.pod, twin.cache = self.pod, self.cache
        twin.affine, twin.anti_affine = dict(self.affine), dict(self.anti_affine)
        twin.repelling = dict(self.repelling)
        twin.spread = [dict(counts) for counts in self.spread]
        return twin

    def shift(self, other: PodInfo, node: NodeInfo, by: int) -> None:
        """Count `other` in (1) or out (-1) on `node`."""
        pod, labels = self.pod, self.cache.namespace_labels(other.namespace)
        if other.anti_affinity:
            self._repel(other, node, by)
        if pod.affinity and matches_all(pod.affinity, other, self.cache):
            for term in pod.affinity:
                _step(self.affine, term.topology, node, by)
        for term in pod.anti_affinity:
            if term.matches(other, labels):
                _step(self.anti_affine, term.topology, node, by)
        if self.spread and other.namespace == pod.namespace and not other.deleting:
            if not all(c.topology in node.labels for c in pod.spread):
                return
            for constraint, counts in zip(pod.spread, self.spread, strict=True):
                matches = constraint.selector is not None and constraint.selector.matches(other.labels)
                if matches and spread_counts(pod, constraint, node):
                    value = node.labels[constraint.topology]
                    counts[value] = counts.get(value, 0) + by


def spread_tally(cache: Cache, namespace: str, constraint: Spread) -> dict[str, int]:
    selector = constraint.selector
    if selector is None or selector.empty:
        return {}  # an empty selector counts no pod here, unlike everywhere else in Kubernetes
    return cache.tally(
        constraint.key,
        lambda other: other.namespace == namespace and not other.deleting and selector.matches(other.labels),
    )


def _step(counts: dict[Place, int], topology: str, node: NodeInfo, by: int) -> None:
    value = node.labels.get(topology)
    if value is None:
        return
    place = (topology, value)
    count = counts.get(place, 0) + by
    if count:
        counts[place] = count
    else:
        counts.pop(place, None)
