"""PersistentVolumeClaims: bound to a volume that exists, or served with a new one on this machine.

Any storage class can be served. One of ours (`danlu.io/local`) is served as it says; a class of another provisioner,
or one that does not exist, is served by the local provisioner too, and an event says so. `no-provisioner` and the
empty class mean what they mean in Kubernetes: only volumes that somebody made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from pathlib import Path

from danlu import errors
from danlu.diagnose import say, stated
from danlu.embedded.controllers.persistentvolumes import VolumeController, make_folder
from danlu.meta import nodeselection, objects, volumematching
from danlu.meta.kind import Object
from danlu.meta.wellknown import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Factory, Manager
from danlu.runtime.reconcile import Outcome, Request

PROVISIONER = "danlu.io/local"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
BY_CLAIM = "claim"


def factories(directory: Path) -> tuple[Factory, ...]:
    """`directory` holds the volumes' own folders: DATA/volumes."""
    return (lambda manager: make_claims(manager, directory), lambda manager: make_volumes(manager, directory))


def make_claims(manager: Manager, directory: Path) -> Controller:
    claims = ClaimController(manager, directory)
    controller = Controller("claims", claims.reconcile)
    controller.watches(claims.claims)
    controller.watches(claims.volumes, lambda volume: _claims_of(volume, claims))

    def pod_changed(event: str, pod: Object, old: Object | None) -> None:
        if event == "MODIFIED" and old is not None and old["spec"].get("nodeName") == pod["spec"].get("nodeName"):
            return
        for namespace, name in claims_of_pod(pod):
            controller.queue.add(Request(namespace, name))

    claims.pods.add_handler(pod_changed)
    return controller


def make_volumes(manager: Manager, directory: Path) -> Controller:
    kept = VolumeController(manager, directory)
    controller = Controller("volumes", kept.reconcile)
    controller.watches(kept.volumes)
    controller.watches(kept.claims, _volumes_of)
    return controller


def claims_of_pod(pod: Object) -> list[tuple[str, str]]:
    namespace = pod["metadata"]["namespace"]
    found = []
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.append((namespace, volume["persistentVolumeClaim"]["claimName"]))
        elif volume.get("ephemeral"):
            found.append((namespace, f"{pod['metadata']['name']}-{volume['name']}"))
    return found


def _claim_keys(pod: Object) -> Iterable[Hashable]:
    return claims_of_pod(pod)


def _volumes_of(claim: Object) -> list[Request]:
    name = (claim.get("spec") or {}).get("volumeName")
    return [Request("", name)] if name else []


def _claims_of(volume: Object, claims: ClaimController) -> list[Request]:
    """The claim a volume is meant for; a free one may serve any that waits."""
    reference = volume["spec"].get("claimRef")
    if reference:
        return [Request(reference.get("namespace") or "", reference["name"])]
    return [
        Request(objects.namespace(claim), objects.name(claim))
        for claim in claims.claims.list()
        if (claim.get("status") or {}).get("phase") != "Bound"
    ]


class ClaimController:
    def __init__(self, manager: Manager, directory: Path) -> None:
        self.client = manager.client
        self.directory = directory
        self.claims = manager.informer(PERSISTENT_VOLUME_CLAIM)
        self.volumes = manager.informer(PERSISTENT_VOLUME)
        self.classes = manager.informer(STORAGE_CLASS)
        self.nodes = manager.informer(NODE)
        self.pods = manager.informer(POD)
        self.pods.add_index(BY_CLAIM, _claim_keys)
        self.events = manager.recorder("persistentvolume-controller")
        self._told: dict[tuple[str, str], set[str]] = {}  # claim → what it was told

    async def reconcile(self, request: Request) -> Outcome | None:
        claim = self.claims.get(request.namespace, request.name)
        if claim is None:
            self._told.pop((request.namespace, request.name), None)
            return None
        try:
            if objects.is_deleting(claim):
                await self._unprotect(claim)
                return None
            if CLAIM_PROTECTION not in (claim["metadata"].get("finalizers") or ()):
                finalizers = [*(claim["metadata"].get("finalizers") or ()), CLAIM_PROTECTION]
                claim = await self._patch(claim, {"metadata": {"finalizers": finalizers}})
            if BIND_COMPLETED in objects.annotations_of(claim):
                await self._bound(claim)
            elif claim["spec"].get("volumeName"):
                await self._bind_named(claim)
            else:
                await self._bind_any(claim)
        except errors.NotFound:
            return None  # it went meanwhile
        return None

    async def _patch(self, claim: Object, body: Object, subresource: str | None = None) -> Object:
        meta = {**(body.get("metadata") or {}), "uid": claim["metadata"]["uid"]}
        if not subresource:
            meta["resourceVersion"] = claim["metadata"]["resourceVersion"]
        return await self.client.patch(
            PERSISTENT_VOLUME_CLAIM,
            objects.name(claim),
            objects.namespace(claim),
            {**body, "metadata": meta},
            subresource=subresource,
        )

    async def _unprotect(self, claim: Object) -> None:
        finalizers = claim["metadata"].get("finalizers") or ()
        if CLAIM_PROTECTION not in finalizers:
            return
        users = self.pods.by_index(BY_CLAIM, (objects.namespace(claim), objects.name(claim)))
        if any(pod["spec"].get("nodeName") for pod in users):
            return
        kept = [name for name in finalizers if name != CLAIM_PROTECTION]
        await self._patch(claim, {"metadata": {"finalizers": kept or None}})

    def _tell(self, claim: Object, type: str, reason: str, message: str) -> None:
        """Once for each claim and message: a claim that waits is looked at often."""
        told = self._told.setdefault(objects.key(claim), set())
        if message not in told:
            told.add(message)
            self.events.event(claim, type, reason, message)

    # -- bound claims

    async def _bound(self, claim: Object) -> None:
        volume = self.volumes.get(None, claim["spec"].get("volumeName") or "")
        if volume is None:
            try:
                volume = await self.client.get(PERSISTENT_VOLUME, claim["spec"].get("volumeName") or "")
            except errors.NotFound:
                text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                await self._lost(claim, "ClaimLost", text)
                return
        if not volumematching.refers_to(volume["spec"].get("claimRef"), claim):
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lost(claim, "ClaimMisbound", text)
            return
        if volumematching.requested(claim) > volumematching.capacity(volume):
            volume = await self._grow(claim, volume)
        await self._say_bound(claim, volume)

    async def _lost(self, claim: Object, reason: str, text: str) -> None:
        if (claim.get("status") or {}).get("phase") != "Lost":
            status = {"status": {"phase": "Lost", "accessModes": None, "capacity": None}}
            await self._patch(claim, status, "status")
            self.events.warning(claim, reason, text)

    async def _grow(self, claim: Object, volume: Object) -> Object:
        if PROVISIONED_BY not in objects.annotations_of(volume):
            text = "waiting for an external controller to expand this PVC"
            self._tell(claim, "Normal", "ExternalExpanding", text)
            return volume
        name = objects.name(volume)
        wanted = claim["spec"]["resources"]["requests"]["storage"]
        self.events.normal(claim, "Resizing", f"External resizer is resizing volume {name}")
        body = {"spec": {"capacity": {"storage": wanted}}}
        grown = await self.client.patch(PERSISTENT_VOLUME, name, None, body)
        self.events.normal(claim, "VolumeResizeSuccessful", "Resize volume succeeded")
        return grown

    async def _say_bound(self, claim: Object, volume: Object) -> None:
        status = claim.get("status") or {}
        wanted = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        if any(status.get(name) != value for name, value in wanted.items()):
            await self._patch(claim, {"status": wanted}, "status")

    # -- claims that wait

    async def _bind_named(self, claim: Object) -> None:
        name = claim["spec"]["volumeName"]
        volume = self.volumes.get(None, name)
        if volume is None:
            return  # its creation will wake us
        reference = volume["spec"].get("claimRef")
        if reference and not volumematching.refers_to(reference, claim):
            text = f'volume "{name}" already bound to a different claim.'
            self._tell(claim, "Warning", "FailedBinding", text)
            return
        problem = "" if reference else _mismatch(volume, claim)
        if problem:
            text = f'Cannot bind to requested volume "{name}": {problem}'
            self._tell(claim, "Warning", "VolumeMismatch", text)
            return
        await self._bind(claim, volume)

    async def _bind_any(self, claim: Object) -> None:
        class_name = volumematching.class_of_claim(claim)
        storage_class = self.classes.get(None, class_name) if class_name else None
        delayed = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        node_name = objects.annotations_of(claim).get(SELECTED_NODE, "")
        volume = volumematching.best_volume(self.volumes.list(), claim, lambda found: self._reachable(found, node_name))
        promised = volume is not None and volume["spec"].get("claimRef")
        if volume is not None and (promised or not delayed or node_name):
            await self._bind(claim, volume)
        elif delayed and not node_name:
            self._tell(claim, "Normal", *self._what_is_awaited(claim))
        elif not class_name:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._tell(claim, "Normal", "FailedBinding", text)
        elif storage_class is not None and storage_class.get("provisioner") == NO_PROVISIONER:
            text = f'storageclass.storage.k8s.io "{class_name}" has no provisioner: waiting for a volume to be created'
            self._tell(claim, "Normal", "FailedBinding", text)
        else:
            await self._provision(claim, class_name, storage_class)

    def _what_is_awaited(self, claim: Object) -> tuple[str, str]:
        users = self.pods.by_index(BY_CLAIM, (objects.namespace(claim), objects.name(claim)))
        names = sorted(objects.name(pod) for pod in users if not pod["spec"].get("nodeName"))
        if not names:
            return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        noun = "pod" if len(names) == 1 else "pods"
        return "WaitForPodScheduled", f"waiting for {noun} {','.join(names)} to be scheduled"

    def _reachable(self, volume: Object, node_name: str) -> bool:
        required = (volume["spec"].get("nodeAffinity") or {}).get("required")
        node = self.nodes.get(None, node_name) if node_name else None
        if required is None or node is None:
            return True
        terms = required.get("nodeSelectorTerms") or ()
        return nodeselection.any_term_matches(terms, objects.labels_of(node), node_name)

    async def _bind(self, claim: Object, volume: Object) -> None:
        """The volume first: a claim that names a volume which does not name it back would be lost."""
        meta = claim["metadata"]
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") != meta["uid"]:
            ours = not reference
            body: Object = {
                "metadata": {"resourceVersion": volume["metadata"]["resourceVersion"]},
                "spec": {"claimRef": reference_to(claim)},
            }
            if ours:
                body["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
            volume = await self.client.patch(PERSISTENT_VOLUME, objects.name(volume), None, body)
        annotations = {BIND_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            annotations[BOUND_BY_CONTROLLER] = "yes"
        change = {"metadata": {"annotations": annotations}, "spec": {"volumeName": objects.name(volume)}}
        claim = await self._patch(claim, change)
        await self._say_bound(claim, volume)

    # -- new volumes

    async def _provision(self, claim: Object, class_name: str, storage_class: Object | None) -> None:
        if volumematching.mode_of(claim["spec"]) == "Block":
            told = {"class": class_name}
            self._tell(claim, "Warning", "ProvisioningFailed", say("DL-CLAIM-BLOCK", **told))
            return
        meta = claim["metadata"]
        name = f"pvc-{meta['uid']}"
        path = self.directory / f"{meta['namespace']}-{meta['name']}-{meta['uid']}"
        await asyncio.to_thread(make_folder, path)
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": name,
                "annotations": {PROVISIONED_BY: PROVISIONER},
                "finalizers": [VOLUME_PROTECTION],
            },
            "spec": {
                "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
                "accessModes": claim["spec"]["accessModes"],
                "persistentVolumeReclaimPolicy": (storage_class or {}).get("reclaimPolicy") or "Delete",
                "storageClassName": class_name,
                "volumeMode": "Filesystem",
                "hostPath": {"path": str(path), "type": "DirectoryOrCreate"},
                "claimRef": reference_to(claim),
            },
        }
        try:
            volume = await self.client.create(PERSISTENT_VOLUME, body)
        except errors.AlreadyExists:
            volume = await self.client.get(PERSISTENT_VOLUME, name)
        self.events.normal(
            claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name} using {PROVISIONER}"
        )
        self._explain(claim, class_name, storage_class)
        await self._bind(claim, volume)

    def _explain(self, claim: Object, class_name: str, storage_class: Object | None) -> None:
        if storage_class is None:
            told = {"class": class_name}
        elif storage_class.get("provisioner") != PROVISIONER:
            told = {"provisioner": str(storage_class.get("provisioner")), "of": class_name}
        else:
            return
        self.events.normal(claim, "ServedLocally", stated("DL-CLAIM-LOCAL", **told, local=PROVISIONER))


def reference_to(claim: Object) -> Object:
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def _mismatch(volume: Object, claim: Object) -> str:
    if volumematching.requested(claim) > volumematching.capacity(volume):
        return "requested PV is too small"
    if volumematching.class_of_volume(volume) != volumematching.class_of_claim(claim):
        return "storageClassName does not match"
    if volumematching.mode_of(volume["spec"]) != volumematching.mode_of(claim["spec"]):
        return "incompatible volumeMode"
    if not set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ()):
        return "incompatible accessMode"
    return ""
