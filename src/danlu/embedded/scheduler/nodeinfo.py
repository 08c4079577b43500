"""`NodeInfo`: one node with the running sums of the pods on it, so that a fit is a few comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from danlu.embedded.scheduler.podinfo import PodInfo, Request, whole_request
from danlu.meta.kind import Object
from danlu.meta.resourcesums import amounts

ANY_ADDRESS = "0.0.0.0"


class NodeInfo:
    __slots__ = (
        "allocatable",
        "labels",
        "max_pods",
        "name",
        "node",
        "pods",
        "pods_with_affinity",
        "pods_with_anti_affinity",
        "ports",
        "requested",
        "scored_cpu",
        "scored_memory",
        "taints",
        "unschedulable",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Object | None = None  # None: pods name this node, and it does not exist (yet, or any more)
        self.labels: Mapping[str, str] = {}
        self.taints: Sequence[Object] = ()
        self.unschedulable = False
        self.allocatable: Request = {}
        self.max_pods = 0
        self.pods: dict[str, PodInfo] = {}
        self.requested: Request = {}
        self.scored_cpu = 0
        self.scored_memory = 0
        self.ports: dict[tuple[str, str, int], int] = {}
        self.pods_with_affinity: dict[str, PodInfo] = {}
        self.pods_with_anti_affinity: dict[str, PodInfo] = {}

    def set_node(self, node: Object | None) -> None:
        self.node = node
        if node is None:
            return
        spec, status = node.get("spec") or {}, node.get("status") or {}
        self.labels = node["metadata"].get("labels") or {}
        self.taints = spec.get("taints") or ()
        self.unschedulable = bool(spec.get("unschedulable"))
        self.allocatable = whole_request(amounts(status.get("allocatable") or status.get("capacity")))
        self.max_pods = self.allocatable.get("pods", 0)

    def add(self, pod: PodInfo) -> None:
        self.pods[pod.uid] = pod
        for name, amount in pod.request.items():
            self.requested[name] = self.requested.get(name, 0) + amount
        self.scored_cpu += pod.scored[0]
        self.scored_memory += pod.scored[1]
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + 1
        if pod.has_affinity:
            self.pods_with_affinity[pod.uid] = pod
            if pod.anti_affinity:
                self.pods_with_anti_affinity[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        """`pod` must be the very PodInfo that was added: what is subtracted is what was summed."""
        if self.pods.pop(pod.uid, None) is None:
            return
        for name, amount in pod.request.items():
            self.requested[name] -= amount
        self.scored_cpu -= pod.scored[0]
        self.scored_memory -= pod.scored[1]
        for port in pod.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        self.pods_with_affinity.pop(pod.uid, None)
        self.pods_with_anti_affinity.pop(pod.uid, None)

    def copy(self) -> NodeInfo:
        """A trial copy: pods may be added and removed without the cache noticing."""
        twin = NodeInfo(self.name)
        twin.node, twin.labels, twin.taints = self.node, self.labels, self.taints
        twin.unschedulable, twin.allocatable, twin.max_pods = self.unschedulable, self.allocatable, self.max_pods
        twin.pods = dict(self.pods)
        twin.requested = dict(self.requested)
        twin.scored_cpu, twin.scored_memory = self.scored_cpu, self.scored_memory
        twin.ports = dict(self.ports)
        twin.pods_with_affinity = dict(self.pods_with_affinity)
        twin.pods_with_anti_affinity = dict(self.pods_with_anti_affinity)
        return twin

    def ports_taken(self, wanted: Iterable[tuple[str, str, int]]) -> bool:
        for address, protocol, port in wanted:
            for used_address, used_protocol, used_port in self.ports:
                if used_port != port or used_protocol != protocol:
                    continue
                if address in (used_address, ANY_ADDRESS) or used_address == ANY_ADDRESS:
                    return True
        return False
