"""IP addresses and CIDRs as Kubernetes words their errors."""

from __future__ import annotations

import ipaddress
import re

from danlu.meta.fields import FieldError, invalid, quoted

NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_LEADING_ZEROS = re.compile(r"(^|\.)0+(?=[0-9])")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address | None:
    """None for what is no address; leading zeros in IPv4 (`010.1.2.3`) are read as decimal."""
    try:
        return ipaddress.ip_address(text if ":" in text else _LEADING_ZEROS.sub(r"\1", text))
    except ValueError:
        return None


def is_address(text: str) -> bool:
    return parse_address(text) is not None


def family_of(text: str) -> str:
    return "IPv6" if ":" in text else "IPv4"


def address_errors(text: str, path: str) -> list[FieldError]:
    address = parse_address(text)
    if address is None or "%" in text:
        return [invalid(path, text, NOT_AN_ADDRESS)]
    if address.version == 4:
        return [invalid(path, text, "must not have leading 0s")] if _LEADING_ZEROS.search(text) else []
    if address.ipv4_mapped is not None:
        return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return []


def cidr_errors(text: str, path: str) -> list[FieldError]:
    address, slash, length = text.partition("/")
    parsed = parse_address(address)
    if not slash or parsed is None or not length.isascii() or not length.isdigit():
        return [invalid(path, text, NOT_A_CIDR)]
    if int(length) > parsed.max_prefixlen:
        return [invalid(path, text, NOT_A_CIDR)]
    if (parsed.version == 4 and _LEADING_ZEROS.search(address)) or (length != "0" and length.startswith("0")):
        return [invalid(path, text, "must not have leading 0s in IP or prefix length")]
    if parsed.version == 6 and parsed.ipv4_mapped is not None:
        return [invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
    if ipaddress.ip_network(text, strict=False).network_address != parsed:
        return [invalid(path, text, "must not have bits set beyond the prefix length")]
    return []


def canonical_address_errors(text: str, path: str) -> list[FieldError]:
    """For fields that Kubernetes had from the beginning in one way of writing only."""
    errors = address_errors(text, path)
    return errors or _form_errors(text, str(parse_address(text)), path)


def canonical_cidr_errors(text: str, path: str) -> list[FieldError]:
    errors = cidr_errors(text, path)
    return errors or _form_errors(text, str(ipaddress.ip_network(text)), path)


def _form_errors(text: str, canonical: str, path: str) -> list[FieldError]:
    return [] if text == canonical else [invalid(path, text, f"must be in canonical form ({quoted(canonical)})")]


def endpoint_address_errors(text: str, path: str) -> list[FieldError]:
    """An address that traffic is sent to.

    Unlike Kubernetes this lets loopback addresses pass: pods share the host's network and live in 127.0.0.0/8.
    """
    errors = address_errors(text, path)
    address = parse_address(text)
    if address is None or errors:
        return errors
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if address in ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16"):
        reason = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, text, reason))
    return errors
