"""Kubernetes' own CEL functions: URLs, IP addresses and networks, quantities, named formats, versions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from danlu.meta import names, quantity
from danlu.meta.cel.library import Function, need
from danlu.meta.cel.values import NONE, CelError, NoSuchOverload, Optional, text_of
from danlu.meta.quantity import Quantity
from danlu.meta.schema import formats

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Url:
    parts: SplitResult


@dataclass(frozen=True, slots=True)
class Cidr:
    """A network as written: the address may have bits beyond the prefix."""

    address: Address
    network: Network


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    check: Callable[[str], list[str]]


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    numbers: tuple[int, int, int]
    pre: tuple[str, ...] = ()

    def _rank(self) -> tuple[Any, ...]:
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return (self.numbers, not self.pre, parts)

    def __lt__(self, other: Semver) -> bool:
        return bool(self._rank() < other._rank())


def to_url(text: Any) -> Url:
    need(text, str)
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as reason:
        raise CelError(f'URL parse error during conversion from string: parse "{text}": {reason}') from None
    if not text or (not parts.scheme and not text.startswith("/")) or re.search(r"[\x00-\x20]", text):
        detail = f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        raise CelError(detail)
    return Url(parts)


def _host(url: Url) -> str:
    return url.parts.netloc.rsplit("@", 1)[-1]


def _address(text: Any) -> Address:
    try:
        found = ipaddress.ip_address(need(text, str))
        if "%" in text or (isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped):
            raise ValueError
    except ValueError:
        raise CelError(f"IP Address {text!r} parse error during conversion from string".replace("'", '"')) from None
    return found


def _cidr(text: Any) -> Cidr:
    try:
        address, slash, bits = need(text, str).partition("/")
        parsed = ipaddress.ip_address(address)
        if not slash or not bits.isdigit() or "%" in address or getattr(parsed, "ipv4_mapped", None) is not None:
            raise ValueError
        return Cidr(parsed, ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise CelError(f"network address parse error during conversion from string: {text}") from None


def _is_link_local_multicast(address: Address) -> bool:
    """Which Python's is_link_local is not: that is for single hosts."""
    return address in _LINK_LOCAL_MULTICAST[address.version]


_LINK_LOCAL_MULTICAST: dict[int, Network] = {
    4: ipaddress.ip_network("224.0.0.0/24"),
    6: ipaddress.ip_network("ff02::/16"),
}


def _quantity(text: Any) -> Quantity:
    try:
        return quantity.parse(need(text, str))
    except ValueError as reason:
        raise CelError(str(reason)) from None


def _succeeds(convert: Function) -> Function:
    def check(text: Any) -> bool:
        need(text, str)
        try:
            convert(text)
        except CelError:
            return False
        return True

    return check


def _quantity_or_int(value: Any) -> Quantity:
    return value if isinstance(value, Quantity) else quantity.parse(str(need(value, int)))


_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


def _semver(text: Any, normalize: bool = False) -> Semver:
    given = need(text, str)
    if normalize:
        given = given.removeprefix("v")
        core, dash, rest = given.partition("-")
        given = ".".join([*core.split("."), "0", "0"][:3]) + dash + rest
    found = _SEMVER.fullmatch(given)
    if found is None:
        raise CelError(f"No Major.Minor.Patch elements found: {text}")
    pre = tuple(found[4].split(".")) if found[4] else ()
    return Semver((int(found[1]), int(found[2]), int(found[3])), pre)


def _label_value(text: str) -> list[str]:
    return names.label_value(text)


def _format_check(name: str) -> Callable[[str], list[str]]:
    accepts = formats.FORMATS[name]
    return lambda text: [] if accepts(text) else [f"invalid {name}"]


FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": names.dns_label,
    "dns1123Subdomain": names.dns_subdomain,
    "dns1035Label": names.dns1035_label,
    "qualifiedName": names.qualified_name,
    "labelValue": _label_value,
    "uri": _format_check("uri"),
    "uuid": _format_check("uuid"),
    "byte": _format_check("byte"),
    "date": _format_check("date"),
    "datetime": _format_check("datetime"),
}


def _prefix_of(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(f"{text[:-1]}a" if text.endswith("-") else text)


for _name in ("dns1123Label", "dns1123Subdomain", "dns1035Label"):
    FORMATS[f"{_name}Prefix"] = _prefix_of(FORMATS[_name])


def _constant(value: Any) -> Function:
    return lambda: value


def _named_format(name: Any) -> Optional:
    found = FORMATS.get(need(name, str))
    return Optional(True, Format(name, found)) if found else NONE


def _validated(form: Any, text: Any) -> Optional:
    texts = need(form, Format).check(need(text, str))
    return Optional(True, list(texts)) if texts else NONE


def _compare(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _less(one: Any, other: Any) -> bool:
    return bool(need(one, Quantity, Semver) < _same(one, other))


def _greater(one: Any, other: Any) -> bool:
    return bool(need(one, Quantity, Semver) > _same(one, other))


def _same(one: Any, other: Any) -> Any:
    if type(one) is not type(other):
        raise NoSuchOverload
    return other


def _contains_ip(cidr: Any, other: Any) -> bool:
    return (other if isinstance(other, Address) else _address(other)) in need(cidr, Cidr).network


def _contains_cidr(cidr: Any, other: Any) -> bool:
    inner, outer = (other if isinstance(other, Cidr) else _cidr(other)).network, need(cidr, Cidr).network
    return inner.version == outer.version and inner.subnet_of(outer)


def _as_integer(value: Any) -> int:
    if need(value, Quantity).nano % quantity.NANO:
        raise CelError("cannot convert value to integer")
    return int(value.nano // quantity.NANO)


def _text_of(value: Any) -> str:
    """`string(x)`, also of what this file adds."""
    if isinstance(value, Address):
        return str(value)
    return f"{value.address}/{value.network.prefixlen}" if isinstance(value, Cidr) else text_of(value)


GLOBAL: dict[str, Function] = {
    "string": _text_of,
    "url": to_url,
    "isURL": _succeeds(to_url),
    "ip": _address,
    "isIP": _succeeds(_address),
    "ip.isCanonical": lambda text: str(_address(text)) == text,
    "cidr": _cidr,
    "isCIDR": _succeeds(_cidr),
    "quantity": _quantity,
    "isQuantity": _succeeds(_quantity),
    "semver": _semver,
    "isSemver": _succeeds(_semver),
    "format.named": _named_format,
    **{f"format.{name}": _constant(Format(name, check)) for name, check in FORMATS.items()},
}

METHODS: dict[str, Function] = {
    "getScheme": lambda url: need(url, Url).parts.scheme,
    "getHost": lambda url: _host(need(url, Url)),
    "getHostname": lambda url: need(url, Url).parts.hostname or "",
    "getPort": lambda url: str(need(url, Url).parts.port or ""),
    "getEscapedPath": lambda url: need(url, Url).parts.path,
    "getQuery": lambda url: parse_qs(unquote(need(url, Url).parts.query), keep_blank_values=True),
    "family": lambda address: need(address, ipaddress.IPv4Address, ipaddress.IPv6Address).version,
    "isUnspecified": lambda address: need(address, *Address.__args__).is_unspecified,
    "isLoopback": lambda address: need(address, *Address.__args__).is_loopback,
    "isLinkLocalMulticast": lambda address: _is_link_local_multicast(need(address, *Address.__args__)),
    "isLinkLocalUnicast": lambda address: need(address, *Address.__args__).is_link_local,
    "isGlobalUnicast": lambda address: (
        not (
            need(address, *Address.__args__).is_multicast
            or address.is_unspecified
            or address.is_loopback
            or address.is_link_local
            or str(address) == "255.255.255.255"
        )
    ),
    "ip": lambda cidr: need(cidr, Cidr).address,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": lambda cidr: need(cidr, Cidr).network.prefixlen,
    "masked": lambda cidr: Cidr(need(cidr, Cidr).network.network_address, cidr.network),
    "isInteger": lambda value: need(value, Quantity).nano % quantity.NANO == 0,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: need(value, Quantity).nano / quantity.NANO,
    "sign": lambda value: _compare(need(value, Quantity).nano, 0),
    "add": lambda one, other: need(one, Quantity) + _quantity_or_int(other),
    "sub": lambda one, other: need(one, Quantity) - _quantity_or_int(other),
    "isLessThan": _less,
    "isGreaterThan": _greater,
    "compareTo": lambda one, other: _compare(need(one, Quantity, Semver), _same(one, other)),
    "major": lambda version: need(version, Semver).numbers[0],
    "minor": lambda version: need(version, Semver).numbers[1],
    "patch": lambda version: need(version, Semver).numbers[2],
    "validate": _validated,
}
