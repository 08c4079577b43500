"""Placing one pod: filters over the nodes, scores over what is left, and one sentence when nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from danlu.embedded.scheduler import scores
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.filters import ANYTHING, ON_NODE, ON_VOLUME, FilterRefusal, refusal_among_nominated
from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.trial import Trial
from danlu.embedded.scheduler.volumeclaims import Claims, VolumeView
from danlu.meta import nodeselection

NO_NODES = "no nodes available to schedule pods"
CONFLICTING = "pod affinity terms conflict"
NOT_NAMED = FilterRefusal(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), True, ON_NODE)

# A large cluster is not searched to the end once this many nodes will do (kube-scheduler's own floor).
ENOUGH_NODES = 100


@dataclass(slots=True)
class Diagnosis:
    """Why a pod has no node."""

    total: int
    refusals: dict[str, FilterRefusal] = field(default_factory=dict)
    overall: str = ""  # a reason that holds for all nodes at once
    wakes: frozenset[str] = ANYTHING
    preemption: str = ""

    def message(self) -> str:
        if not self.total:
            return NO_NODES
        text = f"0/{self.total} nodes are available:"
        if self.overall:
            text += f" {self.overall}."
        elif self.refusals:
            text += f" {histogram(self.refusals.values())}."
        return f"{text} {self.preemption}" if self.preemption else text


def histogram(refusals: Iterable[FilterRefusal]) -> str:
    counts = Counter(reason for refused in refusals for reason in refused.reasons)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


@dataclass(slots=True)
class FoundNode:
    node: str
    claims: Claims | None


class Placer:
    def __init__(self, cache: Cache, view: VolumeView) -> None:
        self.cache = cache
        self.view = view
        self._next = 0  # where the next search begins, so that equal nodes take turns

    def place(self, pod: PodInfo, *, pack: bool = False) -> FoundNode | Diagnosis:
        nodes = self.cache.real
        if not nodes:
            return Diagnosis(0, wakes=ON_NODE)
        claims = Claims(pod, self.view) if pod.claims else None
        if claims is not None and claims.problem:
            return Diagnosis(len(nodes), overall=claims.problem, wakes=ON_VOLUME)
        named = nodeselection.named_nodes(pod.node_affinity) if pod.node_affinity else None
        if named is not None and not named:
            return Diagnosis(len(nodes), overall=CONFLICTING, wakes=ON_NODE)
        trial = Trial(pod, self.cache)
        volumes = claims.filter if claims else None
        if pod.nominated in nodes and refusal_among_nominated(trial, nodes[pod.nominated], volumes) is None:
            return FoundNode(pod.nominated, claims)
        if named is None:
            candidates = self._in_turn()
        else:
            candidates = [nodes[name] for name in sorted(named) if name in nodes]
        fitting: list[NodeInfo] = []
        refusals: dict[str, FilterRefusal] = {}
        for node in candidates:
            refused = refusal_among_nominated(trial, node, volumes)
            if refused is None:
                fitting.append(node)
                if len(fitting) >= ENOUGH_NODES:
                    break
            else:
                refusals[node.name] = refused
        if fitting:
            return FoundNode(scores.best(pod, fitting, self.cache, pack=pack).name, claims)
        if named is not None:
            refusals = {name: refusals.get(name, NOT_NAMED) for name in nodes}
        return Diagnosis(len(nodes), refusals, wakes=frozenset().union(*(r.wakes for r in refusals.values())))

    def _in_turn(self) -> list[NodeInfo]:
        nodes = [*self.cache.real.values()]
        self._next = (self._next + 1) % len(nodes)
        return nodes[self._next :] + nodes[: self._next]
