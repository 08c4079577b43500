"""`PodInfo`: what the scheduler must know of one pod, read from its spec once.

Placing a pod looks at every node, and every node at the pods it already has; parsing quantities and selectors
there would cost more than all the rest. So each pod is read once, when it first arrives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from danlu.meta import labels as label_rules
from danlu.meta.kind import Object
from danlu.meta.labels import Selector
from danlu.meta.quantity import ZERO, Quantity, parse
from danlu.meta.resourcesums import Amounts, pod_requests

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# A container that asks for nothing is scored (never filtered) as if it asked for this much, as kube-scheduler does:
# otherwise a thousand silent pods would all look free and land on one node.
SCORED_CPU = parse("100m")
SCORED_MEMORY = parse("200Mi")

Request = dict[str, int]
"""Whole numbers for fast sums: cpu in thousandths, everything else in its own unit."""


def whole(name: str, amount: Quantity) -> int:
    return amount.milli() if name == "cpu" else amount.value()


def whole_request(amounts: Mapping[str, Quantity]) -> Request:
    return {name: number for name, amount in amounts.items() if (number := whole(name, amount))}


def _fill_for_score(amounts: Amounts) -> None:
    amounts.setdefault("cpu", SCORED_CPU)
    amounts.setdefault("memory", SCORED_MEMORY)


def selector_of(stated: Object | None, extra: Mapping[str, str] | None = None) -> Selector | None:
    """None matches nothing, {} everything: the two are not the same in Kubernetes."""
    if stated is None:
        return None
    if extra:
        stated = {**stated, "matchLabels": {**(stated.get("matchLabels") or {}), **extra}}
    return label_rules.from_label_selector(stated)


class AffinityTerm:
    """One pod (anti-)affinity term: which pods it speaks of, and over which topology."""

    __slots__ = ("key", "namespace_selector", "namespaces", "selector", "topology", "weight")

    def __init__(self, stated: Object, own_namespace: str, weight: int = 0) -> None:
        self.topology: str = stated.get("topologyKey") or ""
        self.selector = selector_of(stated.get("labelSelector"))
        self.namespace_selector = selector_of(stated.get("namespaceSelector"))
        named = frozenset(stated.get("namespaces") or ())
        self.namespaces = named if named or self.namespace_selector else frozenset((own_namespace,))
        self.weight = weight
        # Two terms with the same key count the same pods (the cache keeps one tally for both).
        self.key = ("term", self.namespaces, str(self.namespace_selector), str(self.selector), self.selector is None)

    def covers(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)

    def matches(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> bool:
        if self.selector is None or not self.covers(pod.namespace, namespace_labels):
            return False
        return self.selector.matches(pod.labels)


class Spread:
    """One topology spread constraint."""

    __slots__ = ("honour_affinity", "honour_taints", "key", "max_skew", "min_domains", "selector", "topology")

    def __init__(self, stated: Object, pod_namespace: str, pod_labels: Mapping[str, str]) -> None:
        self.topology: str = stated.get("topologyKey") or ""
        self.max_skew: int = stated.get("maxSkew") or 1
        self.min_domains: int = stated.get("minDomains") or 1
        own = {key: pod_labels[key] for key in stated.get("matchLabelKeys") or () if key in pod_labels}
        self.selector = selector_of(stated.get("labelSelector"), own)
        self.honour_affinity = (stated.get("nodeAffinityPolicy") or "Honor") == "Honor"
        self.honour_taints = (stated.get("nodeTaintsPolicy") or "Ignore") == "Honor"
        self.key = ("spread", pod_namespace, str(self.selector), self.selector is None)


def host_ports(spec: Object) -> list[tuple[str, str, int]]:
    """(ip, protocol, port) of all that the pod takes from its node itself."""
    found = []
    containers = [*(spec.get("containers") or ())]
    containers += [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in containers:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"])))
    return found


def claim_names(pod: Object) -> list[tuple[str, bool]]:
    """(claim, is ephemeral) for each volume that stands on a claim; an ephemeral one is named after its pod."""
    names = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            names.append((volume["persistentVolumeClaim"].get("claimName") or "", False))
        elif volume.get("ephemeral"):
            names.append((f"{pod['metadata']['name']}-{volume['name']}", True))
    return names


class PodInfo:
    __slots__ = (
        "affinity",
        "anti_affinity",
        "claims",
        "created",
        "deleting",
        "gang",
        "key",
        "labels",
        "lane",
        "lane_priority",
        "name",
        "namespace",
        "node_affinity",
        "node_preferences",
        "node_selector",
        "nominated",
        "owner",
        "pod",
        "ports",
        "preferred_affinity",
        "preferred_anti_affinity",
        "priority",
        "request",
        "role",
        "scored",
        "signature_bytes",
        "soft_spread",
        "spread",
        "tolerations",
        "uid",
    )

    def __init__(self, pod: Object) -> None:
        meta, spec = pod["metadata"], pod.get("spec") or {}
        self.pod = pod
        self.namespace: str = meta.get("namespace") or ""
        self.name: str = meta["name"]
        self.key = (self.namespace, self.name)
        self.uid: str = meta.get("uid") or f"{self.namespace}/{self.name}"
        self.created: str = meta.get("creationTimestamp") or ""
        self.labels: Mapping[str, str] = meta.get("labels") or {}
        self.deleting = bool(meta.get("deletionTimestamp"))
        self.priority: int = spec.get("priority") or 0
        self.nominated: str = (pod.get("status") or {}).get("nominatedNodeName") or ""
        self.request = whole_request(pod_requests(pod))
        scored = pod_requests(pod, _fill_for_score)
        self.scored = (scored.get("cpu", ZERO).milli(), scored.get("memory", ZERO).value())
        self.ports = host_ports(spec)
        self.claims = claim_names(pod)
        self.tolerations: Sequence[Object] = spec.get("tolerations") or ()
        self.owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
        self._read_affinity(spec)
        self._read_spread(spec)
        self.signature_bytes: bytes | None = None
        # What a policy says of the pod; pods without one have no lane (see policy.py).
        self.gang = ""
        self.role = ""
        self.lane = ""
        self.lane_priority = 0

    def _read_affinity(self, spec: Object) -> None:
        affinity = spec.get("affinity") or {}
        self.node_selector: Mapping[str, str] = spec.get("nodeSelector") or {}
        on_node = affinity.get("nodeAffinity") or {}
        self.node_affinity: Sequence[Object] | None = None
        if on_node.get(REQUIRED) is not None:
            self.node_affinity = on_node[REQUIRED].get("nodeSelectorTerms") or ()
        self.node_preferences: Sequence[Object] = on_node.get(PREFERRED) or ()
        self.affinity, self.preferred_affinity = self._terms(affinity.get("podAffinity"))
        self.anti_affinity, self.preferred_anti_affinity = self._terms(affinity.get("podAntiAffinity"))

    def _terms(self, rules: Object | None) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
        if not rules:
            return (), ()
        required = tuple(AffinityTerm(stated, self.namespace) for stated in rules.get(REQUIRED) or ())
        preferred = tuple(
            AffinityTerm(stated.get("podAffinityTerm") or {}, self.namespace, stated.get("weight") or 0)
            for stated in rules.get(PREFERRED) or ()
        )
        return required, preferred

    def _read_spread(self, spec: Object) -> None:
        hard: list[Spread] = []
        soft: list[Spread] = []
        for stated in spec.get("topologySpreadConstraints") or ():
            kept = Spread(stated, self.namespace, self.labels)
            (hard if stated.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" else soft).append(kept)
        self.spread, self.soft_spread = tuple(hard), tuple(soft)

    @property
    def has_affinity(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred_affinity or self.preferred_anti_affinity)

    @property
    def signature(self) -> bytes:
        """Pods with one signature are placed, or refused, alike: siblings of a job share one answer."""
        if self.signature_bytes is None:
            spec: Object = self.pod.get("spec") or {}
            parts: list[Any] = [
                self.namespace,
                self.labels,
                self.priority,
                spec.get("preemptionPolicy"),
                self.request,
                self.scored,
                self.ports,
                self.claims,
                self.nominated,
                self.owner and self.owner.get("uid"),
                [spec.get(name) for name in ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")],
            ]
            self.signature_bytes = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
        return self.signature_bytes
