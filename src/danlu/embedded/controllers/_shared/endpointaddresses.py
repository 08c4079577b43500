"""Which pods stand behind a service, and how Endpoints and EndpointSlices spell that. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from danlu.meta import conditions, objects
from danlu.meta.kind import Object

HEADLESS = "service.kubernetes.io/headless"
SERVICE_NAME = "kubernetes.io/service-name"
SLICE_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SLICE_MANAGER = "endpointslice-controller.k8s.io"
MIRROR_MANAGER = "endpointslicemirroring-controller.k8s.io"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_MANAGER = "endpoint-controller"
PER_SLICE = 100
PER_ENDPOINTS = 1000
FINISHED = ("Succeeded", "Failed")

Ports = tuple[tuple[tuple[str, Any], ...], ...]
"""Port entries as sorted pairs: hashable, so that pods with the same ports fall together."""


@dataclass(frozen=True, slots=True)
class Backend:
    pod: Object
    ip: str
    ports: Ports
    ready: bool  # its own opinion
    terminating: bool


def is_headless(service: Object) -> bool:
    return bool(service["spec"].get("clusterIP") == "None")


def publishes_all(service: Object) -> bool:
    return bool(service["spec"].get("publishNotReadyAddresses"))


def target_port(pod: Object, port: Object) -> int | None:
    """The number of a service's port on this pod; a name is looked up among the containers' ports."""
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, int):
        return target
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in [*(spec.get("containers") or ()), *sidecars]:
        for own in container.get("ports") or ():
            if own.get("name") == target and (own.get("protocol") or "TCP") == (port.get("protocol") or "TCP"):
                return int(own["containerPort"])
    return None


def _ports_on(service: Object, pod: Object) -> Ports | None:
    wanted = service["spec"].get("ports") or ()
    found = []
    for port in wanted:
        number = target_port(pod, port)
        if number is None:
            continue
        entry = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        found.append(tuple(sorted(entry.items())))
    if wanted and not found:
        return None
    return tuple(found)


def backends(service: Object, pods: Iterable[Object]) -> list[Backend]:
    found = []
    for pod in pods:
        status = pod.get("status") or {}
        ip = status.get("podIP")
        if not ip or status.get("phase") in FINISHED:
            continue
        ports = _ports_on(service, pod)
        if ports is None:
            continue
        ready = conditions.is_true(status.get("conditions"), "Ready")
        found.append(Backend(pod, ip, ports, ready, objects.is_deleting(pod)))
    found.sort(key=lambda backend: (backend.ip, backend.pod["metadata"]["name"]))
    return found


def _target(pod: Object) -> Object:
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def _hostname(service: Object, pod: Object) -> str:
    """A pod answers to its own name only below the service that it names as its subdomain."""
    spec = pod["spec"]
    named = spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]
    return str(spec["hostname"]) if named else ""


def labels_for(service: Object) -> dict[str, str]:
    labels = dict(service["metadata"].get("labels") or {})
    labels.pop(HEADLESS, None)
    if is_headless(service):
        labels[HEADLESS] = ""
    return labels


# -- Endpoints


def _port_list(ports: Ports, *, keep_empty_name: bool) -> list[Object]:
    listed = [dict(entry) for entry in ports]
    for entry in listed:
        if not keep_empty_name and not entry["name"]:
            del entry["name"]
    return sorted(listed, key=lambda entry: (entry.get("name", ""), entry["port"], entry["protocol"]))


def subsets(service: Object, found: Sequence[Backend]) -> list[Object]:
    groups: dict[Ports, tuple[list[Object], list[Object]]] = {}
    everybody = publishes_all(service)
    for backend in found[:PER_ENDPOINTS]:
        if backend.terminating and not everybody:
            continue
        address: Object = {"ip": backend.ip, "targetRef": _target(backend.pod)}
        if backend.pod["spec"].get("nodeName"):
            address["nodeName"] = backend.pod["spec"]["nodeName"]
        if hostname := _hostname(service, backend.pod):
            address["hostname"] = hostname
        ready, waiting = groups.setdefault(backend.ports, ([], []))
        (ready if everybody or backend.ready else waiting).append(address)
    result = []
    for ports in sorted(groups):
        ready, waiting = groups[ports]
        subset: Object = {}
        if ready:
            subset["addresses"] = ready
        if waiting:
            subset["notReadyAddresses"] = waiting
        if ports:
            subset["ports"] = _port_list(ports, keep_empty_name=False)
        result.append(subset)
    return result


# -- EndpointSlices


def slice_name(owner: Object, discriminator: str) -> str:
    """`web-x7k2p`: looks as if it were random, and is the same each time, so no slice is ever made twice."""
    digest = hashlib.sha256(f"{owner['metadata'].get('uid')}/{discriminator}".encode()).digest()
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    return f"{owner['metadata']['name'][:56]}-{''.join(alphabet[byte % len(alphabet)] for byte in digest[:5])}"


def family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"


def _endpoint(service: Object, backend: Backend) -> Object:
    pod = backend.pod
    everybody = publishes_all(service)
    entry: Object = {
        "addresses": [backend.ip],
        "conditions": {
            "ready": everybody or (backend.ready and not backend.terminating),
            "serving": everybody or backend.ready,
            "terminating": backend.terminating,
        },
        "targetRef": _target(pod),
    }
    if pod["spec"].get("nodeName"):
        entry["nodeName"] = pod["spec"]["nodeName"]
    if hostname := _hostname(service, pod):
        entry["hostname"] = hostname
    return entry


def slices(service: Object, found: Sequence[Backend]) -> list[Object]:
    groups: dict[tuple[str, Ports], list[Object]] = {}
    for backend in found:
        groups.setdefault((family(backend.ip), backend.ports), []).append(_endpoint(service, backend))
    if not groups:
        groups[(service["spec"].get("ipFamilies") or ["IPv4"])[0], ()] = []  # says: there is nothing behind it
    labels = {
        **labels_for(service),
        SERVICE_NAME: service["metadata"]["name"],
        SLICE_MANAGED_BY: SLICE_MANAGER,
    }
    return _slices(service, "Service", groups, labels)


def mirrored(endpoints: Object) -> list[Object]:
    """The slices of Endpoints that a person keeps by hand for a service without a selector."""
    groups: dict[tuple[str, Ports], list[Object]] = {}
    for subset in endpoints.get("subsets") or ():
        ports = tuple(
            tuple(sorted({"name": "", "protocol": "TCP", **port}.items())) for port in subset.get("ports") or ()
        )
        for ready, addresses in ((True, subset.get("addresses")), (False, subset.get("notReadyAddresses"))):
            for address in addresses or ():
                entry: Object = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
                for name in ("hostname", "nodeName", "targetRef"):
                    if address.get(name):
                        entry[name] = address[name]
                groups.setdefault((family(address["ip"]), ports), []).append(entry)
    meta = endpoints["metadata"]
    labels = {**(meta.get("labels") or {}), SERVICE_NAME: meta["name"], SLICE_MANAGED_BY: MIRROR_MANAGER}
    return _slices(endpoints, "Endpoints", groups, labels)


def _slices(
    owner: Object, kind: str, groups: dict[tuple[str, Ports], list[Object]], labels: dict[str, str]
) -> list[Object]:
    meta = owner["metadata"]
    reference = {
        "apiVersion": "v1",
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = []
    for (address_type, ports), endpoints in sorted(groups.items(), key=lambda item: item[0]):
        for part, start in enumerate(range(0, max(len(endpoints), 1), PER_SLICE)):
            made.append(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        "name": slice_name(owner, f"{kind}/{address_type}/{ports if len(groups) > 1 else ''}/{part}"),
                        "namespace": meta["namespace"],
                        "labels": labels,
                        "ownerReferences": [reference],
                    },
                    "addressType": address_type,
                    "endpoints": endpoints[start : start + PER_SLICE],
                    "ports": _port_list(ports, keep_empty_name=True),
                }
            )
    return made
