"""String formats that a custom kind's schema may name. Unknown formats are no constraint, as in Kubernetes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from danlu.meta import names
from danlu.meta.schema import leaves

_HEX = "[0-9a-f]"


def _matching(pattern: str, flags: int = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    pattern = f"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}-?{variant}-?{_HEX}{{12}}"
    return _matching(pattern, re.ASCII | re.IGNORECASE)


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _uri(text: str) -> object:
    parts = urlsplit(text)
    if not text or (not parts.scheme and not text.startswith("/")) or re.search(r"[\x00-\x20\x7f]", text):
        raise ValueError(text)
    return parts


def _hostname(text: str) -> bool:
    if not text or len(text) > 255:
        return False
    label = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?")
    return all(label.fullmatch(part) for part in text.rstrip(".").split("."))


def _email(text: str) -> bool:
    address = re.fullmatch(r"(?:[^<>]*<([^<>\s]+)>|(\S+))", text.strip())
    bare = (address[1] or address[2]) if address else ""
    return re.fullmatch(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9\[\]:.-]+", bare) is not None


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits):
        return False
    return sum((10 - i) * (10 if c == "X" else int(c)) for i, c in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(digits)) % 10 == 0


def _mac(text: str) -> bool:
    octet = "[0-9a-fA-F]{2}"
    return any(
        re.fullmatch(f"{octet}(?:{separator}{octet}){{{count - 1}}}", text)
        for separator in ":-"
        for count in (6, 8, 20)
    ) or any(re.fullmatch(rf"{octet * 2}(?:\.{octet * 2}){{{count - 1}}}", text) for count in (3, 4, 10))


def _ip(text: str) -> object:
    if "%" in text:
        raise ValueError(text)
    return ipaddress.ip_address(text)


def _cidr(text: str) -> object:
    _, slash, bits = text.partition("/")
    if not slash or not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _date(text: str) -> object:
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return leaves.time(f"{text}T00:00:00Z")


_GO_DURATION = _matching(r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_SCALA_DURATION = _matching(
    r"\d+\s*(?:ns?|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)"
)

FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matching(r"[0-9a-fA-F]{24}"),
    "uri": _accepts(_uri),
    "email": _email,
    "hostname": _hostname,
    "ipv4": lambda text: "." in text and _accepts(_ip)(text),
    "ipv6": lambda text: ":" in text and _accepts(_ip)(text),
    "cidr": _accepts(_cidr),
    "mac": _mac,
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89ab]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89ab]{_HEX}{{3}}"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _matching(r"[\d -]{12,23}"),
    "ssn": _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matching(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(r"rgb\(\s*(?:\d{1,3}\s*,\s*){2}\d{1,3}\s*\)"),
    "byte": _accepts(leaves.check_base64),
    "password": lambda _: True,
    "date": _accepts(_date),
    "datetime": _accepts(leaves.time),
    "duration": lambda text: _GO_DURATION(text) or _SCALA_DURATION(text),
    "k8sshortname": lambda text: not names.dns_label(text),
    "k8slongname": lambda text: not names.dns_subdomain(text),
}


def checker(name: str) -> Callable[[str], bool] | None:
    return FORMATS.get(name.replace("-", ""))
