"""Services and where their ready pods are, kept current: what the forwarding and the names are made from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.meta.kind import Object
from danlu.meta.wellknown import ENDPOINT_SLICE, SERVICE

ALWAYS_THERE = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
Key = tuple[str, str]
"""(namespace, name) of a service."""


@dataclass(frozen=True, slots=True)
class ServiceBackend:
    """One address that a service leads to; `ports` by the name of the service's port."""

    address: str
    ports: tuple[tuple[str, int], ...]
    hostname: str = ""
    pod_uid: str = ""  # the pod that is meant; an address alone may be another's by now

    def port(self, name: str) -> int | None:
        return next((number for found, number in self.ports if found == name), None)


class ServiceTable:
    """`listen` registers who is told that a service or its backends changed. The informers may be shared."""

    def __init__(self, client: Client, services: Informer | None = None, slices: Informer | None = None) -> None:
        # `is None`, because an informer with nothing in it yet counts as false
        self.services = Informer(client, SERVICE) if services is None else services
        self.slices = Informer(client, ENDPOINT_SLICE) if slices is None else slices
        self._own = [made for made, given in ((self.services, services), (self.slices, slices)) if given is None]
        self._listeners: list[Callable[[Key], None]] = []
        self.slices.add_index("service", _service_of)
        self.services.add_index("with address", _namespace_if_addressed)
        self.services.add_index("address", _cluster_address)
        self.slices.add_index("endpoint", _endpoint_addresses)
        self.services.add_handler(lambda _event, obj, _old: self._tell(key_of(obj)))
        self.slices.add_handler(self._slice_changed)

    async def start(self) -> None:
        for informer in self._own:
            informer.start()
        await asyncio.gather(self.services.synced(), self.slices.synced())

    async def stop(self) -> None:
        for informer in self._own:
            await informer.stop()

    def listen(self, listener: Callable[[Key], None]) -> None:
        self._listeners.append(listener)

    def service(self, key: Key) -> Object | None:
        return self.services.get(*key)

    def with_address(self, namespace: str) -> list[Object]:
        """The services of a namespace that are not headless: of a thousand replicas' names none is."""
        return self.services.by_index("with address", namespace)

    def backends(self, key: Key) -> list[ServiceBackend]:
        """Ready ones; when none is ready, those that still serve while they end (as kube-proxy has it)."""
        ready: dict[str, ServiceBackend] = {}
        serving: dict[str, ServiceBackend] = {}
        for found in self.slices.by_index("service", key):
            ports = tuple(
                (port.get("name") or "", int(port["port"])) for port in found.get("ports") or [] if port.get("port")
            )
            for endpoint in found.get("endpoints") or []:
                conditions = endpoint.get("conditions") or {}
                is_ready = conditions.get("ready") is not False
                if not is_ready and not conditions.get("serving"):
                    continue
                for address in (endpoint.get("addresses") or [])[:1]:
                    target = endpoint.get("targetRef") or {}
                    pod_uid = target.get("uid") or "" if target.get("kind") == "Pod" else ""
                    backend = ServiceBackend(address, ports, endpoint.get("hostname") or "", pod_uid)
                    (ready if is_ready else serving)[f"{address} {ports}"] = backend
        return [*(ready or serving).values()]

    # -- for names: what a namespace or an address is known by

    def has_namespace(self, namespace: str) -> bool:
        """Whether anything is known of it: of one without services there is no name to ask for."""
        return namespace in ALWAYS_THERE or bool(self.services.list(namespace))

    def at_address(self, address: str) -> list[Key]:
        """The services with this cluster IP."""
        return [key_of(service) for service in self.services.by_index("address", address)]

    def behind(self, address: str) -> list[tuple[Key, ServiceBackend]]:
        """The headless services that lead to this address, and as what."""
        found = []
        for one in self.slices.by_index("endpoint", address):
            for key in _service_of(one):
                service = self.service(key)  # type: ignore[arg-type]
                if service is not None and (service.get("spec") or {}).get("clusterIP") == "None":
                    found += [(key, b) for b in self.backends(key) if b.address == address]  # type: ignore[arg-type]
        return found  # type: ignore[return-value]

    def _slice_changed(self, _event: str, obj: Object, _old: Object | None) -> None:
        for key in _service_of(obj):
            self._tell(key)  # type: ignore[arg-type]

    def _tell(self, key: Key) -> None:
        for listener in self._listeners:
            listener(key)


def key_of(obj: Object) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _service_of(obj: Object) -> list[Hashable]:
    name = (obj["metadata"].get("labels") or {}).get(SERVICE_NAME_LABEL)
    return [(obj["metadata"]["namespace"], name)] if name else []


def _namespace_if_addressed(service: Object) -> list[Hashable]:
    address = (service.get("spec") or {}).get("clusterIP")
    return [service["metadata"]["namespace"]] if address and address != "None" else []


def _cluster_address(service: Object) -> list[Hashable]:
    address = (service.get("spec") or {}).get("clusterIP")
    return [address] if address and address != "None" else []


def _endpoint_addresses(found: Object) -> list[Hashable]:
    return [address for one in found.get("endpoints") or [] for address in (one.get("addresses") or [])[:1]]
