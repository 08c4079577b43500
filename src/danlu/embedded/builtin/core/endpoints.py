"""Endpoints: the addresses behind a Service.

Unlike Kubernetes, loopback addresses are welcome: pods share the host's network and live in 127.0.0.0/8.
"""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.meta import names
from danlu.meta.addresses import endpoint_address_errors, is_address
from danlu.meta.fields import FieldError, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import ENDPOINTS

PROTOCOLS = ("SCTP", "TCP", "UDP")
_SHOWN = 3  # addresses in the column


def default(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def validate(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(field) or ()):
                errors += _address_errors(address, f"{path}.{field}[{at}]")
        ports = subset.get("ports") or ()
        for at, port in enumerate(ports):
            errors += _port_errors(port, len(ports) > 1, f"{path}.ports[{at}]")
    return errors


def _address_errors(address: Object, path: str) -> list[FieldError]:
    ip = address.get("ip") or ""
    errors = endpoint_address_errors(ip, f"{path}.ip")
    if not is_address(ip):
        errors.append(invalid(f"{path}.ip", ip, "must be a valid IP address"))
    if address.get("hostname"):
        hostname = address["hostname"]
        errors += [invalid(f"{path}.hostname", hostname, text) for text in names.dns_label(hostname)]
    if address.get("nodeName") is not None:
        node = address["nodeName"]
        errors += [invalid(f"{path}.nodeName", node, text) for text in names.dns_subdomain(node)]
    return errors


def _port_errors(port: Object, needs_name: bool, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name") or ""
    if name:
        errors += [invalid(f"{path}.name", name, text) for text in names.dns_label(name)]
    elif needs_name:
        errors.append(required(f"{path}.name"))
    number = port.get("port") or 0
    errors += [invalid(f"{path}.port", number, text) for text in names.port_number(number)]
    protocol = port.get("protocol") or ""
    if not protocol:
        errors.append(required(f"{path}.protocol"))
    elif protocol not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if port.get("appProtocol") is not None:
        application = port["appProtocol"]
        errors += [invalid(f"{path}.appProtocol", application, text) for text in names.qualified_name(application)]
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return [] if new.get("subsets") == old.get("subsets") else validate(new)


def _endpoints(obj: Object) -> str:
    subsets = obj.get("subsets") or ()
    if not subsets:
        return "<none>"
    shown: list[str] = []
    for subset in subsets:
        addresses = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        shown += [f"{_bracketed(ip)}:{port.get('port')}" for port in ports for ip in addresses] if ports else addresses
    text = ",".join(shown[:_SHOWN])
    return f"{text} + {len(shown) - _SHOWN} more..." if len(shown) > _SHOWN else text


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


SERVED = ServedKind(
    kind=ENDPOINTS,
    schema=schema_of("io.k8s.api.core.v1.Endpoints"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("Endpoints", _endpoints, description="The addresses and ports that are ready."), AGE),
    default=default,
    validate=validate,
    validate_update=validate_update,
    create_on_update=True,
)
