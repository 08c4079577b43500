"""Scalars that Go decodes by code of their own: times, quantities, base64. Each reads as Go's, errors included.

A function returns the value in the form Kubernetes would write it, or raises ValueError with Go's own text.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))\Z", re.ASCII)
_NORMAL = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ\Z", re.ASCII)
_RFC3339 = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"
_STEPS = (
    ("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"),
    ("15", r"\d\d?"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"),
)  # fmt: skip
_ZONE = ("Z07:00", r"Z|[+-]\d\d:\d\d")


def time(text: str) -> str:
    """metav1.Time: any RFC 3339 time in, whole seconds of UTC out."""
    if _NORMAL.match(text):
        return text
    moment = _parse(text, _RFC3339, micro=False)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment.year > 999 else moment.isoformat()[:19] + "Z"


def micro_time(text: str) -> str:
    moment = _parse(text, _RFC3339_MICRO, micro=True)
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def _parse(text: str, layout: str, *, micro: bool) -> datetime:
    found = _TIME.match(text)
    if found is None or (micro and len(found[7] or "") != 6):
        raise ValueError(_first_difference(text, layout, micro=micro))
    year, month, day, hour, minute, second = (int(found[n]) for n in range(1, 7))
    for name, value, low, high in (
        ("month", month, 1, 12), ("day", day, 1, 31), ("hour", hour, 0, 23), ("minute", minute, 0, 59),
        ("second", second, 0, 59),
    ):  # fmt: skip
        if not low <= value <= high:
            raise ValueError(f'parsing time "{text}": {name} out of range')
    fraction = int((found[7] or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, fraction, UTC)
        if found[8] is None:
            shift = timedelta(hours=int(found[10]), minutes=int(found[11]))
            moment = moment - shift if found[9] == "+" else moment + shift
    except (ValueError, OverflowError):
        raise ValueError(f'parsing time "{text}": day out of range') from None
    return moment


def _first_difference(text: str, layout: str, *, micro: bool) -> str:
    rest = text
    steps = [*_STEPS, (".000000", r"[.,]\d{6}(?!\d)") if micro else ("", r"(?:[.,]\d+)?"), _ZONE]
    for shown, pattern in steps:
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            return f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{shown}"'
        rest = rest[found.end() :]
    return f'parsing time "{text}": extra text: "{rest}"'


def check_base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        position = _base64_fault(text)
        if position >= 0:
            raise ValueError(f"illegal base64 data at input byte {position}") from None
        return
    if text and (fault := _base64_fault(text[-4:])) >= 0:
        raise ValueError(f"illegal base64 data at input byte {max(len(text) - 4, 0) + fault}")


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _base64_fault(text: str) -> int:
    """The position that Go's decoder names, or -1 where it accepts the text (it skips line ends)."""
    index, size = 0, len(text)
    while True:
        quantum = 0
        while quantum < 4:
            if index == size:
                return -1 if quantum == 0 else index - quantum
            letter = text[index]
            index += 1
            if letter in "\r\n":
                continue
            if letter in _ALPHABET:
                quantum += 1
                continue
            if letter != "=" or quantum < 2:
                return index - 1
            return _padding_fault(text, index, quantum)


def _padding_fault(text: str, index: int, quantum: int) -> int:
    size = len(text)
    if quantum == 2:
        while index < size and text[index] in "\r\n":
            index += 1
        if index == size:
            return size
        if text[index] != "=":
            return index - 1
        index += 1
    while index < size and text[index] in "\r\n":
        index += 1
    return index if index < size else -1
