"""`Cache`: nodes, the pods on them, and tallies of pods by selector, all kept up to date by small steps.

A pod is *assumed* on its node as soon as the scheduler has chosen it, before the API server has answered, so that
the next pod sees the room already taken. The informer later confirms the same thing, or the assumption is forgotten.

`generation` grows with each change that can alter a decision; equal generations mean equal answers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import PodInfo, Request
from danlu.meta.kind import Object

# Tallies are kept for this many different selectors; the least recently used one is recounted when it is next asked.
TALLIES = 256

Tally = dict[str, int]
"""Node name → number of pods there that a selector matches."""
Matcher = Callable[[PodInfo], bool]

OWNERS_SPREAD = ("ReplicaSet", "StatefulSet", "ReplicationController")
NO_LABELS: Mapping[str, str] = {}
NOTHING: Request = {}


class Cache:
    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}  # also nodes that only exist because pods name them
        self.real: dict[str, NodeInfo] = {}  # those that can take pods
        self.namespaces: dict[str, Mapping[str, str]] = {}  # name → labels
        self.pods: dict[str, tuple[PodInfo, str]] = {}  # uid → (pod, node)
        self.nominated: dict[str, dict[str, PodInfo]] = {}  # node → uid → pod that waits for room there
        self.generation = 0
        self.node_generation = 0  # grows when what the nodes have may have changed
        self._used: dict[str, Request] = {}  # lane → what its pods on nodes ask for
        self._assumed: set[str] = set()
        self._tallies: OrderedDict[object, tuple[Matcher, Tally]] = OrderedDict()
        self._siblings: dict[str, Tally] = {}  # owner's uid → node → pods
        self._anti_affine: dict[str, int] = {}  # node → pods there with required anti-affinity
        self._affine: dict[str, int] = {}  # node → pods there with any affinity term

    # -- nodes and namespaces

    def set_node(self, node: Object) -> None:
        name = node["metadata"]["name"]
        info = self.nodes.get(name)
        if info is None:
            info = self.nodes[name] = NodeInfo(name)
        info.set_node(node)
        self.real[name] = info
        self.generation += 1
        self.node_generation += 1

    def remove_node(self, name: str) -> None:
        info = self.real.pop(name, None)
        if info is None:
            return
        info.set_node(None)
        if not info.pods:
            del self.nodes[name]
        self.generation += 1
        self.node_generation += 1

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """`labels` None: the namespace is gone. Tallies that select namespaces by label are counted anew."""
        if self.namespaces.get(name, NO_LABELS) == (labels or NO_LABELS):
            if labels is not None:
                self.namespaces[name] = labels
            return
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        self._tallies.clear()
        self.generation += 1

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self.namespaces.get(namespace, NO_LABELS)

    # -- pods that have a node

    def assume(self, pod: PodInfo, node: str) -> None:
        self._put(pod, node)
        self._assumed.add(pod.uid)

    def forget(self, pod: PodInfo) -> None:
        if pod.uid in self._assumed:
            self.remove_pod(pod.uid)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def set_pod(self, pod: PodInfo, node: str) -> bool:
        """The API server says so. Returns whether this changed what the scheduler believed."""
        known = self.pods.get(pod.uid)
        confirmed = pod.uid in self._assumed
        self._assumed.discard(pod.uid)
        if known is not None:
            before, on = known
            same = before.request == pod.request and before.labels == pod.labels and before.deleting == pod.deleting
            if on == node and same and before.scored == pod.scored:
                before.pod = pod.pod  # sums and tallies stay as they are: nothing to wake anyone for
                return False
            self.remove_pod(pod.uid)
        self._put(pod, node)
        return not confirmed

    def _put(self, pod: PodInfo, node: str) -> None:
        info = self.nodes.get(node)
        if info is None:
            info = self.nodes[node] = NodeInfo(node)
        info.add(pod)
        self.pods[pod.uid] = (pod, node)
        self.clear_nomination(pod.uid)
        self._count(pod, node, 1)
        self.generation += 1

    def remove_pod(self, uid: str) -> bool:
        known = self.pods.pop(uid, None)
        self._assumed.discard(uid)
        if known is None:
            return False
        pod, node = known
        info = self.nodes[node]
        info.remove(pod)
        if not info.pods and info.node is None:
            self.nodes.pop(node, None)
        self._count(pod, node, -1)
        self.generation += 1
        return True

    def _count(self, pod: PodInfo, node: str, by: int) -> None:
        for matcher, tally in self._tallies.values():
            if matcher(pod):
                tally[node] = tally.get(node, 0) + by
        if pod.owner and pod.owner.get("kind") in OWNERS_SPREAD and not pod.deleting:
            uid = pod.owner.get("uid") or ""
            siblings = self._siblings.setdefault(uid, {})
            _step(siblings, node, by)
            if not siblings:
                del self._siblings[uid]
        if pod.anti_affinity:
            _step(self._anti_affine, node, by)
        if pod.has_affinity:
            _step(self._affine, node, by)
        if pod.lane:
            used = self._used.setdefault(pod.lane, {})
            for name, amount in pod.request.items():
                used[name] = used.get(name, 0) + by * amount

    def used_by(self, lane: str) -> Request:
        return self._used.get(lane, NOTHING)

    # -- nominations: room that a preemptor made and has not taken yet

    def nominate(self, pod: PodInfo, node: str) -> None:
        self.clear_nomination(pod.uid)
        self.nominated.setdefault(node, {})[pod.uid] = pod
        self.generation += 1

    def clear_nomination(self, uid: str) -> None:
        for node, waiting in list(self.nominated.items()):
            if waiting.pop(uid, None) is not None:
                self.generation += 1
                if not waiting:
                    del self.nominated[node]

    def nominated_on(self, node: str, rival: PodInfo) -> list[PodInfo]:
        """Those whose claim on the node's room `rival` has to respect."""
        waiting = self.nominated.get(node)
        if not waiting:
            return []
        return [pod for pod in waiting.values() if pod.uid != rival.uid and _ranks_with(pod, rival)]

    # -- counts

    def tally(self, key: object, matcher: Matcher) -> Tally:
        """How many pods on each node `matcher` accepts; kept from then on, so that asking again is free."""
        known = self._tallies.get(key)
        if known is not None:
            self._tallies.move_to_end(key)
            return known[1]
        tally: Tally = {}
        for pod, node in self.pods.values():
            if matcher(pod):
                tally[node] = tally.get(node, 0) + 1
        self._tallies[key] = (matcher, tally)
        if len(self._tallies) > TALLIES:
            self._tallies.popitem(last=False)
        return tally

    def siblings(self, pod: PodInfo) -> Tally:
        if not pod.owner or pod.owner.get("kind") not in OWNERS_SPREAD:
            return {}
        return self._siblings.get(pod.owner.get("uid") or "", {})

    def nodes_with_anti_affinity(self) -> list[NodeInfo]:
        return [self.real[name] for name in self._anti_affine if name in self.real]

    def nodes_with_affinity(self) -> list[NodeInfo]:
        return [self.real[name] for name in self._affine if name in self.real]


def _ranks_with(pod: PodInfo, rival: PodInfo) -> bool:
    if pod.lane and rival.lane and pod.lane_priority != rival.lane_priority:
        return pod.lane_priority > rival.lane_priority
    return pod.priority >= rival.priority


def _step(tally: Tally, node: str, by: int) -> None:
    count = tally.get(node, 0) + by
    if count:
        tally[node] = count
    else:
        tally.pop(node, None)
