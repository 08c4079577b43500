"""CEL values in Python: JSON data as it is, and a few types of their own.

int, float, str, bytes, bool, None, list and dict stand for themselves; a timestamp is an aware datetime, a duration a
timedelta. Errors are exceptions, so that `&&` and `||` can swallow one side's error as CEL demands.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from danlu.meta.cel.costs import CHARACTERS, Budget
from danlu.meta.cel.parser import Uint
from danlu.meta.clock import LONGEST_DURATION_S, parse_go_duration

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class CelError(Exception):
    """An evaluation that has no value; the text is cel-go's."""


class NoSuchOverload(CelError):
    def __init__(self) -> None:
        super().__init__("no such overload")


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """`present` tells a held null from nothing."""

    present: bool
    value: Any = None


NONE = Optional(False)


class SetList(list[Any]):
    """A list of type set: equal when the same elements are in it, in any order."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list) or len(self) != len(other):
            return False
        return sorted(map(_key, self)) == sorted(map(_key, other))

    __hash__ = None


class MapList(list[Any]):
    """A list of type map: equal when the same keys hold equal elements, in any order."""

    keys: tuple[str, ...] = ()

    def by_key(self) -> dict[str, Any]:
        return {_key([item.get(key) for key in self.keys]): item for item in self if isinstance(item, dict)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MapList):
            return isinstance(other, list) and list(self) == other
        return self.by_key() == other.by_key()

    __hash__ = None


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


_TYPES: dict[type, str] = {
    bool: "bool", int: "int", Uint: "uint", float: "double", str: "string", bytes: "bytes", list: "list", dict: "map",
    type(None): "null_type", datetime: "google.protobuf.Timestamp", timedelta: "google.protobuf.Duration",
    TypeValue: "type", Optional: "optional_type", SetList: "list", MapList: "list",
}  # fmt: skip


def type_name(value: Any) -> str:
    return _TYPES.get(type(value), type(value).__name__)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any, budget: Budget) -> bool:
    """CEL's ==: numbers by value whatever their type, everything else within its own type."""
    budget.spend(1)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        if isinstance(one, SetList | MapList):
            budget.spend_on(one)
            budget.spend_on(other)
            return one == other
        return len(one) == len(other) and all(equal(a, b, budget) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key], budget) for key, value in one.items())
    if isinstance(one, str | bytes):
        budget.spend(len(one) // CHARACTERS)
    return bool(one == other)


def checked(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


def within_range(value: timedelta) -> timedelta:
    if abs(value.total_seconds()) > LONGEST_DURATION_S:
        raise CelError("integer overflow")
    return value


def parse_duration(text: str) -> timedelta:
    try:
        return parse_go_duration(text)
    except ValueError:
        raise CelError(f'time: invalid duration "{text}"') from None


def format_duration(value: timedelta) -> str:
    seconds = value.total_seconds()
    return f"{int(seconds)}s" if seconds.is_integer() else f"{seconds:.9f}".rstrip("0") + "s"


def parse_timestamp(text: str) -> datetime:
    try:
        if len(text) == 10:
            return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        if not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z", text):
            raise ValueError
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text).replace("Z", "+00:00"))
    except ValueError:
        raise CelError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse') from None


def format_timestamp(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return re.sub(r"(\.\d*?)0+Z", r"\1Z", text).replace(".Z", "Z")


def text_of(value: Any) -> str:
    """`string(x)`"""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return format_timestamp(value)
    raise NoSuchOverload
