"""networking.k8s.io ServiceCIDR and IPAddress: an address object for each cluster IP, and which ranges are in use.

`apiserver/allocator.py` hands the addresses out and knows who has which; the objects say it to others. One that is
labelled as the allocator's own and whose Service has gone or has another address goes, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable

from danlu import errors
from danlu.embedded.clusteraddresses import ADDRESS_LABELS, CLUSTER_RANGE, DEFAULT_RANGE, is_own
from danlu.meta import conditions, objects
from danlu.meta.addresses import family_of, parse_address
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.wellknown import IP_ADDRESS, SERVICE, SERVICE_CIDR
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status

_BY_ADDRESS = "cluster-ip"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
_READY = ("True", "", "Kubernetes Service CIDR is ready")
_UNUSED = (
    "False",
    "RangeNotServed",
    f"cluster IPs come from {CLUSTER_RANGE} only, the range of the ServiceCIDR kubernetes",
)
_HELD = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)


def make_addresses(manager: Manager) -> Controller:
    addresses = AddressController(manager)
    controller = Controller("clusteraddresses", addresses.reconcile)

    def of_service(service: Object) -> list[Request]:
        return [Request("", str(address)) for address in _cluster_ips(service)]

    controller.watches(addresses.services, of_service)
    controller.watches(addresses.addresses)
    return controller


def _cluster_ips(service: Object) -> list[Hashable]:
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return []
    return [str(parsed) for text in spec.get("clusterIPs") or () if (parsed := parse_address(text)) is not None]


class AddressController:
    """One request for each address."""

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.services = manager.informer(SERVICE)
        self.services.add_index(_BY_ADDRESS, _cluster_ips)
        self.addresses = manager.informer(IP_ADDRESS)

    async def reconcile(self, request: Request) -> Outcome | None:
        holder = next(iter(self.services.by_index(_BY_ADDRESS, request.name)), None)
        found = self.addresses.get("", request.name)
        if found is not None and (holder is None or objects.get(found, "spec.parentRef") != _parent(holder)):
            if is_own(found) and not objects.is_deleting(found):
                with contextlib.suppress(errors.NotFound, errors.Conflict):
                    await self.client.delete(IP_ADDRESS, request.name, uid=objects.uid(found))
            return None  # its deletion comes back as a request
        if found is None and holder is not None:
            with contextlib.suppress(errors.AlreadyExists):
                await self.client.create(IP_ADDRESS, address_object(request.name, holder))
        return None


def _parent(service: Object) -> Object:
    return {"resource": SERVICE.plural, "namespace": objects.namespace(service), "name": objects.name(service)}


def address_object(address: str, service: Object) -> Object:
    labels = {**ADDRESS_LABELS, "ipaddress.kubernetes.io/ip-family": family_of(address)}
    return {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": _parent(service)}}


def make_ranges(manager: Manager) -> Controller:
    ranges = RangeController(manager)
    controller = Controller("servicecidrs", ranges.reconcile)
    controller.watches(ranges.ranges)
    return controller


class RangeController:
    def __init__(self, manager: Manager) -> None:
        self.client, self.clock = manager.client, manager.clock
        self.ranges = manager.informer(SERVICE_CIDR)

    async def reconcile(self, request: Request) -> Outcome | None:
        found = self.ranges.get("", request.name)
        if found is None:
            return None
        finalizers = found["metadata"].get("finalizers") or []
        used = request.name == DEFAULT_RANGE
        if objects.is_deleting(found):
            if used:  # its own address, the API server's, is always in it
                await self._say(found, _HELD)
            elif FINALIZER in finalizers:
                await self._keep(found, [name for name in finalizers if name != FINALIZER])
            return None
        if FINALIZER not in finalizers:
            found = await self._keep(found, [*finalizers, FINALIZER])
        await self._say(found, _READY if used else _UNUSED)
        return None

    async def _keep(self, found: Object, finalizers: list[str]) -> Object:
        meta = {"finalizers": finalizers or None, "resourceVersion": found["metadata"]["resourceVersion"]}
        return await self.client.patch(SERVICE_CIDR, objects.name(found), None, {"metadata": meta}, type="merge")

    async def _say(self, found: Object, told: tuple[str, str, str]) -> None:
        status, reason, message = told
        wanted: Object = objects.copy(found.get("status") or {})
        held = wanted.setdefault("conditions", [])
        conditions.set(held, "Ready", status, reason, message, rfc3339(self.clock()))
        for condition in held:
            condition.setdefault("reason", "")  # a field that must be there, empty or not
        await write_status(self.client, SERVICE_CIDR, found, wanted)
