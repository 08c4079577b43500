"""A bound claim may grow where its StorageClass says so.

A class that nobody made may be named too (`storageClassName: fast-ssd`): the local provisioner serves it, and what it
made can grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import UPDATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import wellknown
from danlu.meta.kind import Object
from danlu.meta.quantity import ZERO, Quantity, parse
from danlu.meta.resourcesums import storage_class_of

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store


PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def _may_grow(storage_class: Object) -> bool:
    return storage_class.get("allowVolumeExpansion") is True


def _size(claim: Object) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return parse(requests["storage"]) if "storage" in requests else ZERO


class ClaimResize(Handler):
    resources = frozenset({wellknown.PERSISTENT_VOLUME_CLAIM.resource})

    def __init__(self, store: Store) -> None:
        self._store = store
        self._may_grow = Mirror(store, wellknown.STORAGE_CLASS.resource, _may_grow)

    def validate(self, a: Attributes) -> None:
        if a.operation != UPDATE or a.subresource or a.obj is None or a.old is None:
            return
        if _size(a.obj) <= _size(a.old):
            return
        if (a.old.get("status") or {}).get("phase") != "Bound":
            raise a.forbidden("Only bound persistent volume claims can be expanded")
        storage_class = storage_class_of(a.obj)
        said = self._may_grow.get("", storage_class) if storage_class == storage_class_of(a.old) else False
        if not storage_class or not (self._was_provisioned(a.old) if said is None else said):
            raise a.forbidden(
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize"
            )

    def _was_provisioned(self, claim: Object) -> bool:
        name = (claim.get("spec") or {}).get("volumeName")
        volume = self._store.latest(wellknown.PERSISTENT_VOLUME.resource, "", name) if name else None
        return volume is not None and PROVISIONED_BY in (volume.obj["metadata"].get("annotations") or {})
