"""A claim that names no StorageClass gets the default one: of several, the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import wellknown
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_OLD_STYLE = "volume.beta.kubernetes.io/storage-class"


def _default_since(storage_class: Object) -> str | None:
    """When a default class was made; None for the others."""
    meta = storage_class["metadata"]
    annotations = meta.get("annotations") or {}
    if any(annotations.get(key) == "true" for key in _DEFAULT):
        return str(meta.get("creationTimestamp") or "")
    return None


class DefaultStorageClass(Handler):
    resources = frozenset({wellknown.PERSISTENT_VOLUME_CLAIM.resource})

    def __init__(self, store: Store) -> None:
        self._default_since = Mirror(store, wellknown.STORAGE_CLASS.resource, _default_since)

    def mutate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.subresource or a.obj is None:
            return
        spec = a.obj.setdefault("spec", {})
        # An empty name is a choice: no class, no provisioning.
        if spec.get("storageClassName") is not None or _OLD_STYLE in (a.obj["metadata"].get("annotations") or {}):
            return
        defaults = [(name, since) for name, since in self._default_since.items() if since is not None]
        if defaults:
            newest = max(since for _, since in defaults)
            spec["storageClassName"] = next(name for name, since in defaults if since == newest)
