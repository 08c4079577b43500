"""Claims and volumes are born with a finalizer, so that deleting one waits until nobody uses it."""

from __future__ import annotations

from danlu.embedded.apiserver.admission import CREATE, Attributes, Handler

_FINALIZERS = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}


class StorageObjectInUse(Handler):
    resources = frozenset(_FINALIZERS)

    def mutate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.subresource or a.obj is None:
            return
        meta = a.obj["metadata"]
        finalizer = _FINALIZERS[a.served.key]
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            meta["finalizers"] = [*finalizers, finalizer]
