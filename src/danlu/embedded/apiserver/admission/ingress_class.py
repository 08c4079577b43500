"""An Ingress that names no IngressClass gets the default one: of several, the newest. A missing one is warned of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import objects, wellknown
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_OLD_STYLE = "kubernetes.io/ingress.class"


def _default_since(ingress_class: Object) -> str:
    """When a default class was made; "" for the others."""
    if objects.annotations_of(ingress_class).get(_DEFAULT) != "true":
        return ""
    return str(objects.get(ingress_class, "metadata.creationTimestamp", ""))


class DefaultIngressClass(Handler):
    resources = frozenset({wellknown.INGRESS.resource})

    def __init__(self, store: Store) -> None:
        self._default_since = Mirror(store, wellknown.INGRESS_CLASS.resource, _default_since)

    def mutate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.subresource or a.obj is None:
            return
        spec = a.obj.setdefault("spec", {})
        named = spec.get("ingressClassName") or objects.annotations_of(a.obj).get(_OLD_STYLE)
        if named is not None:
            if self._default_since.get("", named) is None:
                from danlu.diagnose import say

                a.warnings.append(say("DL-INGRESS-CLASS", name=named))
            return
        defaults = [(name, since) for name, since in self._default_since.items() if since]
        if defaults:
            newest = max(since for _, since in defaults)
            spec["ingressClassName"] = next(name for name, since in defaults if since == newest)
