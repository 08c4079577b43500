"""EndpointSlices: the addresses behind a Service, in pieces.

Unlike Kubernetes, loopback addresses are welcome, as in Endpoints.
"""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import shortened, text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, first_generation, schema_of
from danlu.meta import names, objects
from danlu.meta.addresses import endpoint_address_errors, family_of
from danlu.meta.fields import FieldError, duplicate, immutable, invalid, not_supported, required, too_many
from danlu.meta.kind import Object
from danlu.meta.labels import validate_labels
from danlu.meta.wellknown import ENDPOINT_SLICE

_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_TOPOLOGY, _MOST_HINTS = 1000, 100, 20_000, 16, 8


def default(obj: Object) -> None:
    obj.setdefault("endpoints", None)
    obj.setdefault("ports", None)
    for endpoint in obj["endpoints"] or ():
        if endpoint.get("conditions") is None:
            endpoint["conditions"] = {}
    for port in obj["ports"] or ():
        if port.get("name") is None:
            port["name"] = ""
        if port.get("protocol") is None:
            port["protocol"] = "TCP"


def prepare_update(new: Object, old: Object) -> None:
    generation = objects.get(old, "metadata.generation", 0)
    if any(new.get(key) != old.get(key) for key in ("addressType", "endpoints", "ports")):
        generation += 1
    new["metadata"]["generation"] = generation


def validate(obj: Object) -> list[FieldError]:
    return _outer_errors(obj) + _endpoints_errors(obj.get("endpoints") or [], obj.get("addressType") or "")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors = _outer_errors(new)
    if new.get("endpoints") != old.get("endpoints"):
        errors += _endpoints_errors(new.get("endpoints") or [], new.get("addressType") or "")
    return errors + immutable("addressType", new.get("addressType"), old.get("addressType"))


def _outer_errors(obj: Object) -> list[FieldError]:
    kind = obj.get("addressType") or ""
    errors: list[FieldError] = []
    if not kind:
        errors.append(required("addressType"))
    elif kind not in _TYPES:
        errors.append(not_supported("addressType", kind, _TYPES))
    return errors + _port_errors(obj.get("ports") or [])


def _port_errors(ports: list[Object]) -> list[FieldError]:
    if len(ports) > _MOST_PORTS:
        return [too_many("ports", len(ports), _MOST_PORTS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name, protocol = f"ports[{index}]", port.get("name") or "", port.get("protocol")
        if name:
            errors += [invalid(f"{path}.name", name, text) for text in names.dns_label(name)]
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if protocol is None:
            errors.append(required(f"{path}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
        application = port.get("appProtocol")
        if application is not None:
            errors += [invalid(f"{path}.appProtocol", application, text) for text in names.qualified_name(application)]
    return errors


def _endpoints_errors(endpoints: list[Object], kind: str) -> list[FieldError]:
    if len(endpoints) > _MOST_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)]
    errors: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        errors += _endpoint_errors(endpoint, kind, f"endpoints[{index}]")
    return errors


def _endpoint_errors(endpoint: Object, kind: str, path: str) -> list[FieldError]:
    addresses = endpoint.get("addresses") or []
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        errors += _address_errors(address, kind, f"{path}.addresses", index)
    if endpoint.get("nodeName") is not None:
        node = endpoint["nodeName"]
        errors += [invalid(f"{path}.nodeName", node, text) for text in names.dns_subdomain(node)]
    topology = endpoint.get("deprecatedTopology") or {}
    if len(topology) > _MOST_TOPOLOGY:
        errors.append(too_many(f"{path}.deprecatedTopology", len(topology), _MOST_TOPOLOGY))
    errors += validate_labels(topology, f"{path}.deprecatedTopology")
    if endpoint.get("hostname") is not None:
        hostname = endpoint["hostname"]
        errors += [invalid(f"{path}.hostname", hostname, text) for text in names.dns_label(hostname)]
    return errors + _hint_errors(endpoint.get("hints") or {}, f"{path}.hints")


def _address_errors(address: str, kind: str, path: str, index: int) -> list[FieldError]:
    if kind == "FQDN":
        return _domain_errors(address, f"{path}[{index}]")
    if kind not in _TYPES:
        return []
    errors = endpoint_address_errors(address, f"{path}[{index}]")
    if not errors and family_of(address) != kind:
        errors.append(invalid(path, address, f"must be an {kind} address"))
    return errors


def _domain_errors(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if texts := names.dns_subdomain(name):
        return [invalid(path, name, ",".join(texts))]
    if "." not in name:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    return []


def _hint_errors(hints: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("forZones", names.label_value), ("forNodes", names.dns_subdomain)):
        items = hints.get(field) or []
        if len(items) > _MOST_HINTS:
            return [*errors, too_many(f"{path}.{field}", len(items), _MOST_HINTS)]
        seen: set[str] = set()
        for index, item in enumerate(items):
            name = item.get("name") or ""
            if name in seen:
                errors.append(duplicate(f"{path}.{field}[{index}].name", name))
            seen.add(name)
            errors += [invalid(f"{path}.{field}[{index}].name", name, text) for text in check(name)]
    return errors


def _ports(obj: Object) -> str:
    numbers = [port.get("port") or port.get("name") for port in obj.get("ports") or ()]
    return shortened(["*" if number is None else str(number) for number in numbers])


def _addresses(obj: Object) -> str:
    endpoints = obj.get("endpoints") or ()
    return shortened([address for endpoint in endpoints for address in endpoint.get("addresses") or ()])


SERVED = ServedKind(
    kind=ENDPOINT_SLICE,
    schema=schema_of("io.k8s.api.discovery.v1.EndpointSlice"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("AddressType", text_at("addressType"), description="IPv4, IPv6 or FQDN: all addresses are of one kind."),
        Column("Ports", _ports, description="The ports that every endpoint has."),
        Column("Endpoints", _addresses, description="The addresses of the endpoints."),
        AGE,
    ),
    prepare_create=first_generation,
    prepare_update=prepare_update,
    default=default,
    validate=validate,
    validate_update=validate_update,
)
