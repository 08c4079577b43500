"""Generic ephemeral volumes: the claim that such a volume describes is made for its pod, and goes with it."""

from __future__ import annotations

from danlu import errors
from danlu.meta import objects, owners
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM, POD
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

FINISHED = ("Succeeded", "Failed")


def claim_for(pod: Object, volume: Object) -> Object:
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    meta = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"{objects.name(pod)}-{volume['name']}",
            "namespace": objects.namespace(pod),
            "labels": meta.get("labels") or {},
            "annotations": meta.get("annotations") or {},
            "ownerReferences": [owners.reference(pod, POD)],
        },
        "spec": template.get("spec") or {},
    }


def make(manager: Manager) -> Controller:
    pods, claims, client = manager.informer(POD), manager.informer(PERSISTENT_VOLUME_CLAIM), manager.client
    events = manager.recorder("ephemeral_volume")

    async def reconcile(request: Request) -> Outcome | None:
        pod = pods.get(request.namespace, request.name)
        if pod is None or objects.is_deleting(pod) or (pod.get("status") or {}).get("phase") in FINISHED:
            return None
        for volume in pod["spec"].get("volumes") or ():
            if not volume.get("ephemeral"):
                continue
            wanted = claim_for(pod, volume)
            name = objects.name(wanted)
            found = claims.get(request.namespace, name)
            if found is None:
                try:
                    found = await client.create(PERSISTENT_VOLUME_CLAIM, wanted)
                except errors.AlreadyExists:
                    found = await client.get(PERSISTENT_VOLUME_CLAIM, name, request.namespace)
                except errors.ApiError as error:
                    text = f"ephemeral volume {volume['name']}: create PVC {name}: {error}"
                    events.warning(pod, "EphemeralVolumeCreationFailed", text)
                    raise
            if not owners.is_controlled_by(found, pod):
                text = f"PVC {request.namespace}/{name} was not created for pod {request} (pod is not owner)"
                events.warning(pod, "EphemeralVolumeCreationFailed", f"ephemeral volume {volume['name']}: {text}")
        return None

    controller = Controller("ephemeral volumes", reconcile, workers=2)

    def pod_changed(event: str, pod: Object, _old: Object | None) -> None:
        if event == "ADDED" and any(volume.get("ephemeral") for volume in pod["spec"].get("volumes") or ()):
            controller.queue.add(Request(objects.namespace(pod), objects.name(pod)))

    pods.add_handler(pod_changed)
    return controller
