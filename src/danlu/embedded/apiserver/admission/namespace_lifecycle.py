"""Nothing is written into a namespace that is not there, nothing new into one that is going; three stay for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, DELETE, Attributes, Handler
from danlu.embedded.apiserver.auth.forbidden import resource_forbidden
from danlu.embedded.apiserver.mirror import Mirror
from danlu.errors import NotFound
from danlu.meta import wellknown
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
# Asking about rights must not tell which namespaces exist.
_SILENT = frozenset({wellknown.LOCAL_SUBJECT_ACCESS_REVIEW.resource})


def _is_going(namespace: Object) -> bool:
    phase = (namespace.get("status") or {}).get("phase")
    return phase == "Terminating" or "deletionTimestamp" in namespace["metadata"]


class NamespaceLifecycle(Handler):
    def __init__(self, store: Store) -> None:
        self._going = Mirror(store, wellknown.NAMESPACE.resource, _is_going)

    def mutate(self, a: Attributes) -> None:
        namespace = a.namespace
        if not namespace or a.operation == DELETE or a.served.key == "namespaces" or a.served.key in _SILENT:
            return
        going = self._going.get("", namespace)
        if going is None:
            raise NotFound.of("namespaces", namespace)
        if going and a.operation == CREATE:
            error = a.forbidden(f"unable to create new content in namespace {namespace} because it is being terminated")
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details["causes"] = [cause]
            raise error

    def validate(self, a: Attributes) -> None:
        if a.operation == DELETE and a.served.key == "namespaces" and a.name in IMMORTAL:
            raise resource_forbidden("namespaces", "", a.name, "this namespace may not be deleted")
