"""ResourceQuota status: what is allowed and what is used, counted from what is there.

Admission refuses what goes over; this controller only tells. Both count with `meta.resourcesums`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from danlu import errors
from danlu.client.informer import Informer
from danlu.embedded.controllers._shared import discovery
from danlu.meta import objects, resourcesums
from danlu.meta.kind import Kind, Object
from danlu.meta.quantity import ZERO, Quantity
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_QUOTA, SERVICE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

SETTLE_S = 0.05  # many pods come and go together: they are counted once
RECOUNT_S = 2.0  # kinds that are only counted are not watched but looked at

WATCHED: dict[str, Kind] = {kind.resource: kind for kind in (POD, SERVICE, PERSISTENT_VOLUME_CLAIM)}


def make(manager: Manager) -> Controller:
    quotas = QuotaController(manager)
    controller = Controller("quotas", quotas.reconcile, workers=2)
    controller.watches(quotas.quotas)

    def changed(event: str, obj: Object, old: Object | None) -> None:
        if event == "MODIFIED" and old is not None and _charged_facts(old) == _charged_facts(obj):
            return
        for quota in quotas.quotas.list(objects.namespace(obj)):
            controller.queue.add_after(Request(objects.namespace(obj), objects.name(quota)), SETTLE_S)

    for informer in quotas.informers.values():
        informer.add_handler(changed)
    return controller


def _charged_facts(obj: Object) -> tuple[Any, ...]:
    status = obj.get("status") or {}
    return obj.get("spec"), status.get("phase"), status.get("allocatedResources"), objects.is_deleting(obj)


class QuotaController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.quotas = manager.informer(RESOURCE_QUOTA)
        self.informers: dict[str, Informer] = {name: manager.informer(kind) for name, kind in WATCHED.items()}
        self._metadata = discovery.metadata_client(manager.client)
        self._kinds: dict[str, Kind] = {}
        self._charges: dict[str, tuple[Object, bool, resourcesums.Amounts]] = {}  # pod's uid → (spec, charged, charge)

    async def reconcile(self, request: Request) -> Outcome | None:
        quota = self.quotas.get(request.namespace, request.name)
        if quota is None:
            return None
        hard: dict[str, str] = quota["spec"].get("hard") or {}
        used = dict.fromkeys(hard, ZERO)
        counted = {resourcesums.charged_resource(name) for name in hard}
        now = self.clock()
        for resource in counted & WATCHED.keys():
            _add(used, self._charges_of(resource, quota, now))
        for resource in counted - WATCHED.keys():
            number = await self._count(resource, request.namespace)
            for name, one in resourcesums.object_usage(resource).items():
                if name in used:
                    used[name] = used[name] + one * number
        status = {"hard": hard, "used": {name: str(amount) for name, amount in used.items()}}
        if quota.get("status") != status:
            try:
                await self.client.update_status(RESOURCE_QUOTA, {**quota, "status": status})
            except errors.NotFound:
                return None
        return Outcome(requeue_after=RECOUNT_S) if counted - WATCHED.keys() else None

    def _charges_of(self, resource: str, quota: Object, now: datetime) -> Iterable[resourcesums.Amounts]:
        for obj in self.informers[resource].list(objects.namespace(quota)):
            if resource != POD.resource:
                yield resourcesums.usage_of(resource, obj)
            elif resourcesums.matches_scopes(obj, quota):
                yield self._charge_of_pod(obj, now)

    def _charge_of_pod(self, pod: Object, now: datetime) -> resourcesums.Amounts:
        uid, charged = objects.uid(pod), resourcesums.is_charged(pod, now)
        known = self._charges.get(uid)
        if known is not None and known[1] == charged and known[0] == pod["spec"]:
            return known[2]
        charge = resourcesums.pod_usage(pod, now)
        if len(self._charges) > 2 * len(self.informers[POD.resource]) + 100:
            self._charges.clear()  # mostly pods that are gone
        self._charges[uid] = (pod["spec"], charged, charge)
        return charge

    async def _count(self, resource: str, namespace: str) -> int:
        if resource not in self._kinds:
            self._kinds = {r.kind.resource: r.kind for r in await discovery.resources(self.client)}
        kind = self._kinds.get(resource)
        if kind is None or not kind.namespaced:
            return 0
        try:
            return len((await self._metadata.list(kind, namespace)).items)
        except errors.NotFound:
            del self._kinds[resource]
            return 0


def _add(used: dict[str, Quantity], charges: Iterable[resourcesums.Amounts]) -> None:
    for charge in charges:
        for name, amount in charge.items():
            if name in used:
                used[name] = used[name] + amount
