"""PersistentVolumes: their phase, and what becomes of them when their claim is gone (Retain, Delete, Recycle)."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from danlu import errors
from danlu.embedded import permissions
from danlu.meta import clock, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

VOLUME_PROTECTION = "kubernetes.io/pv-protection"


def make_folder(path: Path) -> None:
    """Pods may run as any user; the folder of all volumes, and the data directory around it, are closed to others."""
    permissions.make_closed(path.parent)
    path.mkdir(exist_ok=True)
    path.chmod(0o777)


class VolumeController:
    def __init__(self, manager: Manager, directory: Path) -> None:
        self.client = manager.client
        self.directory = directory
        self.volumes = manager.informer(PERSISTENT_VOLUME)
        self.claims = manager.informer(PERSISTENT_VOLUME_CLAIM)
        self.events = manager.recorder("persistentvolume-controller")

    async def reconcile(self, request: Request) -> Outcome | None:
        volume = self.volumes.get(None, request.name)
        if volume is None:
            return None
        try:
            await self._settle(volume)
        except errors.NotFound:
            return None
        return None

    async def _settle(self, volume: Object) -> None:
        finalizers = volume["metadata"].get("finalizers") or []
        if not objects.is_deleting(volume) and VOLUME_PROTECTION not in finalizers:
            volume = await self._patch(volume, {"metadata": {"finalizers": [*finalizers, VOLUME_PROTECTION]}})
        reference = volume["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            await self._phase(volume, "Available")
        elif await self._claim_of(reference) is not None:
            await self._phase(volume, "Bound")
        else:
            volume = await self._phase(volume, "Released")
            await self._reclaim(volume)
        await self._unprotect(volume)

    async def _claim_of(self, reference: Object) -> Object | None:
        """The very claim that the volume serves. Its absence is confirmed: data may hang on it."""
        namespace, name = reference.get("namespace") or "", reference["name"]
        claim = self.claims.get(namespace, name)
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            try:
                claim = await self.client.get(PERSISTENT_VOLUME_CLAIM, name, namespace)
            except errors.NotFound:
                return None
        return claim if claim["metadata"]["uid"] == reference["uid"] else None

    async def _patch(self, volume: Object, body: Object, subresource: str | None = None) -> Object:
        return await self.client.patch(PERSISTENT_VOLUME, objects.name(volume), None, body, subresource=subresource)

    async def _phase(self, volume: Object, phase: str, message: str = "") -> Object:
        status = volume.get("status") or {}
        if status.get("phase") == phase or (phase == "Released" and status.get("phase") == "Failed"):
            return volume
        body = {"phase": phase, "message": message or None, "lastPhaseTransitionTime": clock.now_rfc3339()}
        return await self._patch(volume, {"status": body}, "status")

    async def _unprotect(self, volume: Object) -> None:
        finalizers = volume["metadata"].get("finalizers") or []
        if not objects.is_deleting(volume) or VOLUME_PROTECTION not in finalizers:
            return
        if (volume.get("status") or {}).get("phase") != "Bound":
            kept = [name for name in finalizers if name != VOLUME_PROTECTION]
            await self._patch(volume, {"metadata": {"finalizers": kept or None}})

    async def _reclaim(self, volume: Object) -> None:
        policy = volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"
        if policy == "Retain" or objects.is_deleting(volume):
            return
        name = objects.name(volume)
        path = self._own_folder(volume)
        if path is None:
            text = f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
            if (volume.get("status") or {}).get("phase") != "Failed":
                await self._phase(volume, "Failed", text)
                self.events.warning(volume, "VolumeFailedDelete", text)
            return
        await asyncio.to_thread(shutil.rmtree, path, True)
        if policy == "Delete":
            await self.client.delete(PERSISTENT_VOLUME, name, uid=objects.uid(volume))
            return
        await asyncio.to_thread(make_folder, path)
        self.events.normal(volume, "VolumeRecycled", "Volume recycled")
        freed = await self._patch(volume, {"spec": {"claimRef": None}})
        await self._phase(freed, "Available")

    def _own_folder(self, volume: Object) -> Path | None:
        """Only what lies in our own directory is ever removed from disk."""
        stated = (volume["spec"].get("hostPath") or {}).get("path")
        if not stated:
            return None
        path = Path(stated)
        own = self.directory.resolve()
        return path if path.parent.resolve() == own and path.name not in ("", ".", "..") else None
