"""Volume claims as the scheduler sees them: what must be bound before a pod is placed, and on which nodes it may be.

A claim whose class waits for its first consumer is bound *after* the node is chosen: the scheduler writes the node
into the claim (`selected-node`), the volume controller provisions there, and the pod is bound when the claim is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from danlu.embedded.scheduler.filters import ON_VOLUME, FilterRefusal, VolumeFilter
from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.meta import nodeselection
from danlu.meta.kind import Object
from danlu.meta.resourcesums import storage_class_of

SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

NODE_CONFLICT = FilterRefusal(("node(s) didn't match PersistentVolume's node affinity",), True, ON_VOLUME)
NO_VOLUME = FilterRefusal(("node(s) didn't find available persistent volumes to bind",), True, ON_VOLUME)
VOLUME_GONE = FilterRefusal(
    ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",), True, ON_VOLUME
)


class VolumeView(Protocol):
    def claim(self, namespace: str, name: str) -> Object | None: ...
    def volume(self, name: str) -> Object | None: ...
    def storage_class(self, name: str) -> Object | None: ...
    def free_volume_for(self, claim: Object, suits: Callable[[Object], bool]) -> Object | None: ...


def is_bound(claim: Object) -> bool:
    bound = "pv.kubernetes.io/bind-completed" in (claim["metadata"].get("annotations") or {})
    return bool((claim.get("spec") or {}).get("volumeName")) and (
        bound or (claim.get("status") or {}).get("phase") == "Bound"
    )


def waits_for_consumer(claim: Object, view: VolumeView) -> bool:
    found = view.storage_class(storage_class_of(claim))
    return bool(found) and (found or {}).get("volumeBindingMode") == "WaitForFirstConsumer"


def volume_suits(volume: Object, node: NodeInfo) -> bool:
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return nodeselection.any_term_matches(required.get("nodeSelectorTerms") or (), node.labels, node.name)


def _topology_suits(storage_class: Object, node: NodeInfo) -> bool:
    allowed = storage_class.get("allowedTopologies") or ()
    return not allowed or any(
        all(
            node.labels.get(r.get("key") or "") in (r.get("values") or ())
            for r in term.get("matchLabelExpressions") or ()
        )
        for term in allowed
    )


class Claims:
    """The claims of one pod. `problem` says why no node at all will do; `filter` judges single nodes."""

    def __init__(self, pod: PodInfo, view: VolumeView) -> None:
        self._view = view
        self.problem = ""
        self.bound: list[Object] = []
        self.delayed: list[Object] = []
        unbound = False
        for name, ephemeral in pod.claims:
            claim = view.claim(pod.namespace, name)
            self.problem = _problem(name, claim, ephemeral)
            if self.problem or claim is None:
                return
            if is_bound(claim):
                self.bound.append(claim)
            elif waits_for_consumer(claim, view) and not (claim.get("spec") or {}).get("volumeName"):
                self.delayed.append(claim)
            else:
                unbound = True
        if unbound:
            self.problem = "pod has unbound immediate PersistentVolumeClaims"

    @property
    def filter(self) -> VolumeFilter | None:
        return self._refusal if self.bound or self.delayed else None

    def _refusal(self, node: NodeInfo) -> FilterRefusal | None:
        for claim in self.bound:
            volume = self._view.volume(claim["spec"]["volumeName"])
            if volume is None:
                return VOLUME_GONE
            if not volume_suits(volume, node):
                return NODE_CONFLICT
        for claim in self.delayed:
            selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            if selected and selected != node.name:
                return NO_VOLUME
            if self._view.free_volume_for(claim, lambda volume: volume_suits(volume, node)) is not None:
                continue
            storage_class = self._view.storage_class(storage_class_of(claim)) or {}
            if storage_class.get("provisioner") in (None, "", NO_PROVISIONER):
                return NO_VOLUME
            if not _topology_suits(storage_class, node):
                return NO_VOLUME
        return None


def _problem(name: str, claim: Object | None, ephemeral: bool) -> str:
    if claim is None and ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = (claim.get("spec") or {}).get("volumeName") or ""
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{name}" is being deleted'
    return ""
