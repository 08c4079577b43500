"""How many pods there may be, in one namespace and in all.

A cluster is bounded by its machines; here one process holds every pod in memory, and a controller makes as many as one
number in a spec asks for. The refusal reads as a quota's, so controllers and people know it: controllers back off and
tell it in an event and in their owner's conditions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, Attributes, Handler
from danlu.meta.wellknown import POD

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store
    from danlu.embedded.storage.watchcache import Change

NAMESPACE_LIMIT, CLUSTER_LIMIT = "danlu-max-pods-per-namespace", "danlu-max-pods"


class PodLimit(Handler):
    resources = frozenset({POD.resource})

    def __init__(self, store: Store, in_all: int, per_namespace: int) -> None:
        self._in_all = in_all
        self._per_namespace = per_namespace
        self._counted = Counter(stored.namespace for stored in store.scan_latest(POD.resource))
        store.observe(self._observe, POD.resource)

    def validate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.subresource:
            return
        self._check(a, NAMESPACE_LIMIT, self._counted[a.namespace], self._per_namespace)
        self._check(a, CLUSTER_LIMIT, self._counted.total(), self._in_all)

    def _check(self, a: Attributes, name: str, used: int, limit: int) -> None:
        if used >= limit:
            raise a.forbidden(f"exceeded quota: {name}, requested: pods=1, used: pods={used}, limited: pods={limit}")

    def _observe(self, change: Change) -> None:
        """Every write that is submitted, before it is durable: of two creates in flight the second sees the first."""
        stored = change.stored
        if change.type == "ADDED":
            self._counted[stored.namespace] += 1
        elif change.type == "DELETED" and change.previous is not None:
            self._counted[stored.namespace] -= 1
            if self._counted[stored.namespace] <= 0:
                del self._counted[stored.namespace]
