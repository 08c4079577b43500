"""What a PodGroup's `reconcile` sees: the pods that name the group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime

from danlu.kinds._gang import markers
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.podgroup.reconcile import reconcile
from danlu.kinds.podgroup.schema import POD_GROUP
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD
from danlu.runtime.reconcile import Outcome, Refusal, Request
from danlu.runtime.reconciler import Children, Context, Reconciler, Watch

GATHER_S = 0.2  # changes of a group's pods come in bursts: one status for all of them
BY_GROUP = "podgroup"


def _group_of(pod: Object) -> list[Request]:
    name = markers.group_of(pod)
    return [Request(pod["metadata"].get("namespace") or "", name)] if name else []


def _group_key(pod: Object) -> list[Hashable]:
    return [(request.namespace, request.name) for request in _group_of(pod)]


class PodGroupReconciler(Reconciler[Sequence[Object]]):
    kind = POD_GROUP
    reads = (Watch(POD, _group_of, GATHER_S),)
    gather_s = GATHER_S

    def __init__(self, _settings: PlatformSettings) -> None:
        pass

    def start(self, context: Context) -> None:
        self._pods = context.caches[POD]
        self._pods.add_index(BY_GROUP, _group_key)

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Sequence[Object]:
        meta = obj["metadata"]
        return self._pods.by_index(BY_GROUP, (meta.get("namespace") or "", meta["name"]))

    def decide(self, obj: Object, seen: Sequence[Object], now: datetime) -> Outcome:
        return reconcile(obj, seen, now)
