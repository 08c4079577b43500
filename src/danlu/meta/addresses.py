"""IP addresses and CIDRs as Kubernetes words their errors."""

from __future__ import annotations

import ipaddress
import re

from danlu.meta.fields import FieldError, invalid

NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_LEADING_ZEROS = re.compile(r"(^|\.)0+(?=[0-9])")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address | None:
    """As Kubernetes' old fields read it: leading zeros in IPv4 (`010.1.2.3`) are forgiven."""
    try:
        return ipaddress.ip_address(text if ":" in text else _LEADING_ZEROS.sub(r"\1", text))
    except ValueError:
        return None


def is_address(text: str) -> bool:
    return parse_address(text) is not None


def family_of(text: str) -> str:
    return "IPv6" if ":" in text else "IPv4"


def address_errors(text: str, path: str) -> list[FieldError]:
    return [] if is_address(text) else [invalid(path, text, NOT_AN_ADDRESS)]


def cidr_errors(text: str, path: str) -> list[FieldError]:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return [invalid(path, text, NOT_A_CIDR)]
    return [] if "/" in text else [invalid(path, text, NOT_A_CIDR)]


def endpoint_address_errors(text: str, path: str) -> list[FieldError]:
    """An address traffic is sent to. Loopback is fine here: see the note in `endpoints.py`."""
    address = parse_address(text)
    if address is None:
        return [invalid(path, text, NOT_AN_ADDRESS)]
    errors: list[FieldError] = []
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    multicast = ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")
    if address in multicast:
        text_of = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, text, text_of))
    return errors
