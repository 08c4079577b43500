"""NetworkPolicies: who may talk to whom. They are kept and checked; nothing enforces them, and the answer says so."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, first_generation, next_generation, schema_of
from danlu.embedded.builtin._shared.workloads import spec_of
from danlu.meta import names, objects
from danlu.meta.addresses import cidr_errors
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import SelectorError, from_label_selector, validate_label_selector
from danlu.meta.wellknown import NETWORK_POLICY

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")
_SIDES = (("ingress", "from"), ("egress", "to"))


def default(obj: Object) -> None:
    spec = spec_of(obj)
    if not isinstance(spec.get("podSelector"), dict):
        spec["podSelector"] = {}
    for side, _ in _SIDES:
        for rule in spec.get(side) or ():
            for port in rule.get("ports") or ():
                if port.get("protocol") is None:
                    port["protocol"] = "TCP"
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def validate(obj: Object) -> list[FieldError]:
    return _errors(obj.get("spec") or {}, frozenset())


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """A block that stands there already is not looked at again: which rule it stood in cannot be told."""
    before = old.get("spec") or {}
    return _errors(new.get("spec") or {}, frozenset(text for block, _ in _blocks(before) for text in _texts(block)))


def _errors(spec: Object, known: frozenset[str]) -> list[FieldError]:
    errors = validate_label_selector(spec.get("podSelector"), "spec.podSelector")
    for side, peers in _SIDES:
        for index, rule in enumerate(spec.get(side) or ()):
            path = f"spec.{side}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                errors += _port_errors(port, f"{path}.ports[{place}]")
            for place, peer in enumerate(rule.get(peers) or ()):
                errors += _peer_errors(peer, f"{path}.{peers}[{place}]", known)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    return errors + [
        not_supported(f"spec.policyTypes[{index}]", one, _TYPES) for index, one in enumerate(types) if one not in _TYPES
    ]


def _port_errors(rule: Object, path: str) -> list[FieldError]:
    protocol, port, end = rule.get("protocol"), rule.get("port"), rule.get("endPort")
    errors: list[FieldError] = []
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if port is None:
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified"))
        return errors
    if isinstance(port, str):
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
        return errors + [invalid(f"{path}.port", port, text) for text in names.port_name(port)]
    errors += [invalid(f"{path}.port", port, text) for text in names.port_number(port)]
    if end is not None:
        if end < port:
            errors.append(invalid(f"{path}.endPort", port, "must be greater than or equal to `port`"))
        errors += [invalid(f"{path}.endPort", end, text) for text in names.port_number(end)]
    return errors


def _peer_errors(peer: Object, path: str, known: frozenset[str]) -> list[FieldError]:
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    errors: list[FieldError] = []
    for field in selectors:
        errors += validate_label_selector(peer[field], f"{path}.{field}")
    block = peer.get("ipBlock")
    if block is not None:
        errors += _block_errors(block, f"{path}.ipBlock", known)
        if selectors:
            errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif not selectors:
        errors.append(required(path, "must specify a peer"))
    return errors


def _block_errors(block: Object, path: str, known: frozenset[str]) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = [] if cidr in known else cidr_errors(cidr, f"{path}.cidr")
    whole = _network(cidr)
    for index, text in enumerate(block.get("except") or ()):
        where, part = f"{path}.except[{index}]", _network(text)
        errors += [] if text in known else cidr_errors(text, where)
        if whole is not None and part is not None and (part == whole or not _is_within(part, whole)):
            errors.append(invalid(where, text, "must be a strict subset of `cidr`"))
    return errors


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _is_within(part: Any, whole: Any) -> bool:
    return bool(part.version == whole.version and part.subnet_of(whole))


def _blocks(spec: Object) -> Iterator[tuple[Object, str]]:
    for side, peers in _SIDES:
        for index, rule in enumerate(spec.get(side) or ()):
            for place, peer in enumerate(rule.get(peers) or ()):
                if peer.get("ipBlock"):
                    yield peer["ipBlock"], f"spec.{side}[{index}].{peers}[{place}].ipBlock"


def _texts(block: Object) -> list[str]:
    return [block.get("cidr") or "", *(block.get("except") or ())]


def warnings(obj: Object) -> list[str]:
    from danlu.diagnose import stated

    return [stated("DL-POLICY-IDLE")]


def _selected(obj: Object) -> str:
    try:
        return str(from_label_selector(objects.get(obj, "spec.podSelector"))) or "<none>"
    except SelectorError:
        return "<error>"


SERVED = ServedKind(
    kind=NETWORK_POLICY,
    schema=schema_of("io.k8s.api.networking.v1.NetworkPolicy"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("Pod-Selector", _selected, description="Which pods it is about, by their labels."), AGE),
    prepare_create=first_generation,
    prepare_update=next_generation,
    default=default,
    validate=validate,
    validate_update=validate_update,
    warnings=warnings,
)
