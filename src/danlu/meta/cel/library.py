"""The functions of CEL as Kubernetes has it: standard, strings, lists, regex, sets, optionals, math.

Each takes evaluated values and raises CelError; a wrong type is NoSuchOverload. The functions on URLs, IP addresses,
quantities, named formats and versions are in `extensions`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from danlu.meta.cel.costs import CHARACTERS, Budget, counted, free
from danlu.meta.cel.parser import Uint
from danlu.meta.cel.values import (
    NONE,
    CelError,
    NoSuchOverload,
    Optional,
    TypeValue,
    checked,
    equal,
    format_duration,
    format_timestamp,
    is_number,
    parse_duration,
    parse_timestamp,
    text_of,
    type_name,
)
from danlu.meta.goregex import PatternError, compile_go

Function = Callable[..., Any]


def need(value: Any, *types: type) -> Any:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise NoSuchOverload
    return value


# -- standard


@free
def size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise NoSuchOverload


def to_int(value: Any) -> int:
    if isinstance(value, bool):
        raise NoSuchOverload
    if isinstance(value, int):
        return checked(int(value))
    if isinstance(value, float):
        # As in Go, whose conversion is not defined at the ends, where a float is not exact any more.
        if not -(2.0**63) < value < 2.0**63:
            raise CelError("integer overflow")
        return int(value)
    if isinstance(value, str):
        try:
            return checked(int(value, 10))
        except ValueError:
            raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, timedelta):
        return int(value.total_seconds() * 1e9)
    raise NoSuchOverload


def to_uint(value: Any) -> Uint:
    number = to_int(value)
    if number < 0:
        raise CelError("unsigned integer overflow")
    return Uint(number)


def to_double(value: Any) -> float:
    if is_number(value):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None
    raise NoSuchOverload


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "True": True, "TRUE": True, "t": True, "1": True}
    known |= {"false": False, "False": False, "FALSE": False, "f": False, "0": False}
    if isinstance(value, str) and value in known:
        return known[value]
    if isinstance(value, str):
        raise CelError(f'strconv.ParseBool: parsing "{value}": invalid syntax')
    raise NoSuchOverload


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(need(value, str)).encode()


def to_duration(value: Any) -> timedelta:
    return value if isinstance(value, timedelta) else parse_duration(need(value, str))


def to_timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    return parse_timestamp(need(value, str))


@counted
def matches(budget: Budget, text: Any, pattern: Any) -> bool:
    _pay_for_search(budget, text, pattern)
    return _regex(need(pattern, str)).search(need(text, str)) is not None


def _pay_for_search(budget: Budget, text: Any, pattern: Any) -> None:
    """A search goes through the text once, with as many states at a time as the pattern is long: as Kubernetes."""
    budget.spend((len(need(text, str)) // CHARACTERS + 1) * (len(need(pattern, str)) // 4 + 1))


def _regex(pattern: str) -> Any:
    try:
        return compile_go(pattern)
    except PatternError as reason:
        raise CelError(str(reason)) from None


# -- strings


def _between(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    return text[start:end]


def substring(text: Any, start: Any, end: Any = None) -> str:
    need(text, str)
    return _between(text, need(start, int), len(text) if end is None else need(end, int))


def char_at(text: Any, index: Any) -> str:
    need(text, str)
    if not 0 <= need(index, int) <= len(text):
        raise CelError(f"index out of range: {index}")
    return str(text[index : index + 1])


@counted
def index_of(budget: Budget, value: Any, sought: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((i for i, item in enumerate(value) if equal(item, sought, budget)), -1)
    if not 0 <= start <= len(need(value, str)):
        raise CelError(f"index out of range: {start}")
    return int(value.find(need(sought, str), start))


@counted
def last_index_of(budget: Budget, value: Any, sought: Any, start: int | None = None) -> int:
    if isinstance(value, list):
        return next((i for i in range(len(value) - 1, -1, -1) if equal(value[i], sought, budget)), -1)
    text = need(value, str)
    if start is not None and not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return int(text.rfind(need(sought, str), 0, len(text) if start is None else start + len(sought)))


@counted
def join(budget: Budget, items: Any, separator: str = "") -> str:
    budget.spend(len(need(items, list)) * len(need(separator, str)) // CHARACTERS)
    if not all(isinstance(item, str) for item in need(items, list)):
        raise NoSuchOverload
    return separator.join(items)


@counted
def replace(budget: Budget, text: Any, old: Any, new: Any, count: int = -1) -> str:
    times = need(text, str).count(need(old, str))
    budget.spend((times if count < 0 else min(times, count)) * len(need(new, str)) // CHARACTERS)
    return str(need(text, str).replace(need(old, str), need(new, str), count))


def split(text: Any, separator: Any, count: int = -1) -> list[str]:
    need(text, str)
    if count == 0:
        return []
    if separator == "":
        letters = list(text)
        return letters if count < 0 or len(letters) <= count else [*letters[: count - 1], "".join(letters[count - 1 :])]
    return list(text.split(need(separator, str), count - 1 if count > 0 else -1))


def _ascii(change: Callable[[str], str]) -> Function:
    return lambda text: "".join(change(letter) if letter.isascii() else letter for letter in need(text, str))


def quote(text: Any) -> str:
    # The two escapes of Go that JSON does not have.
    return json.dumps(need(text, str), ensure_ascii=False).replace("\\u0007", "\\a").replace("\\u000b", "\\v")


def format_text(pattern: Any, arguments: Any) -> str:
    out, index, given = [], 0, iter(need(arguments, list))
    text = need(pattern, str)
    while index < len(text):
        if text[index] != "%":
            out.append(text[index])
            index += 1
            continue
        index += 1
        if text[index : index + 1] == "%":
            out.append("%")
            index += 1
            continue
        digits = ""
        if text[index : index + 1] == ".":
            index += 1
            while index < len(text) and text[index].isdigit():
                digits += text[index]
                index += 1
        clause = text[index : index + 1]
        index += 1
        try:
            value = next(given)
        except StopIteration:
            raise CelError("index out of range: insufficient number of formatting arguments") from None
        if len(digits) > 2:
            raise CelError(f"could not parse formatting clause: precision {digits} is more than 99")
        out.append(_formatted(clause, value, int(digits) if digits else 6))
    return "".join(out)


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _formatted(clause: str, value: Any, precision: int) -> str:
    integer = isinstance(value, int) and not isinstance(value, bool)
    if clause == "s":
        return _shown(value)
    if isinstance(value, float) and not math.isfinite(value) and clause in ("d", "e", "f"):
        return _NOT_FINITE[str(value)]
    if clause == "d" and integer:
        return str(int(value))
    if clause == "f" and is_number(value):
        return f"{value:.{precision}f}"
    if clause == "e" and is_number(value):
        return f"{value:.{precision}e}"
    if clause == "b" and isinstance(value, int):
        return f"{int(value):b}"
    if clause == "o" and integer:
        return f"{value:o}"
    if clause in ("x", "X"):
        body = f"{value:x}" if integer else (value.encode() if isinstance(value, str) else need(value, bytes)).hex()
        return body.upper() if clause == "X" else body
    raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_nested(item) for item in value) + "]"
    if isinstance(value, dict):
        entries = sorted((_nested(key), _nested(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    return text_of(value)


def _nested(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, timedelta):
        return f'duration("{format_duration(value)}")'
    if isinstance(value, datetime):
        return f'timestamp("{format_timestamp(value)}")'
    return _shown(value)


# -- lists, regular expressions, sets


def _extreme(pick: Callable[[list[Any]], Any], name: str) -> Function:
    def apply(items: Any) -> Any:
        if not need(items, list):
            raise CelError(f"{name} called on empty list")
        try:
            return pick(items)
        except TypeError:
            raise NoSuchOverload from None

    return apply


def is_sorted(items: Any) -> bool:
    try:
        return all(items[i] <= items[i + 1] for i in range(len(need(items, list)) - 1))
    except TypeError:
        raise NoSuchOverload from None


def total(items: Any) -> Any:
    need(items, list)
    if items and isinstance(items[0], timedelta):
        return sum(items, timedelta())
    try:
        return sum(items)
    except TypeError:
        raise NoSuchOverload from None


@counted
def distinct(budget: Budget, items: Any) -> list[Any]:
    found: list[Any] = []
    for item in need(items, list):
        if not any(equal(item, one, budget) for one in found):
            found.append(item)
    return found


def flatten(items: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    out: list[Any] = []
    for item in need(items, list):
        if isinstance(item, list) and depth > 0:
            out.extend(flatten(item, depth - 1))
        else:
            out.append(item)
    return out


def sort(items: Any) -> list[Any]:
    try:
        return sorted(need(items, list))
    except TypeError:
        raise NoSuchOverload from None


@counted
def numbers(budget: Budget, count: Any) -> list[int]:
    if need(count, int) < 0:
        raise CelError("lists.range: size must be non-negative")
    budget.spend(count)
    return list(range(count))


def list_slice(items: Any, start: Any, end: Any) -> list[Any]:
    if not 0 <= need(start, int) <= need(end, int) <= len(need(items, list)):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


@counted
def find(budget: Budget, text: Any, pattern: Any) -> str:
    _pay_for_search(budget, text, pattern)
    found = _regex(need(pattern, str)).search(need(text, str))
    return found[0] if found else ""


@counted
def find_all(budget: Budget, text: Any, pattern: Any, limit: int = -1) -> list[str]:
    _pay_for_search(budget, text, pattern)
    found = [match[0] for match in _regex(need(pattern, str)).finditer(need(text, str))]
    return found if limit < 0 else found[:limit]


def _contains(budget: Budget, items: list[Any], sought: Any) -> bool:
    return any(equal(item, sought, budget) for item in items)


@counted
def sets_contains(budget: Budget, one: Any, other: Any) -> bool:
    return all(_contains(budget, need(one, list), item) for item in need(other, list))


@counted
def sets_equivalent(budget: Budget, one: Any, other: Any) -> bool:
    return sets_contains(budget, one, other) and sets_contains(budget, other, one)


@counted
def sets_intersects(budget: Budget, one: Any, other: Any) -> bool:
    return any(_contains(budget, need(one, list), item) for item in need(other, list))


def contains(value: Any, sought: Any) -> bool:
    return need(sought, str) in need(value, str)


# -- optionals, time


def unwrapped(optional: Any) -> Any:
    if not need(optional, Optional).present:
        raise CelError("optional.none() dereference")
    return optional.value


def non_zero(value: Any) -> Optional:
    return Optional(True, value) if value not in (None, 0, "", b"", False, [], {}) else NONE


def _moment(part: Callable[[datetime], int], span: Callable[[timedelta], int] | None = None) -> Function:
    def apply(value: Any, zone: str = "UTC") -> int:
        if span is not None and isinstance(value, timedelta):
            return span(value)
        return part(need(value, datetime).astimezone(UTC if zone == "UTC" else _zone(zone)))

    return apply


_OFFSET = re.compile(r"([+-]?)([01]\d|2[0-3]):([0-5]\d)")


def _zone(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-span if offset[1] == "-" else span)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


def _whole(seconds: float) -> Callable[[timedelta], int]:
    return lambda value: int(value.total_seconds() / seconds)


GLOBAL: dict[str, Function] = {
    "size": size,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": text_of,
    "bool": to_bool,
    "bytes": to_bytes,
    "dyn": free(lambda value: value),
    "type": free(lambda value: TypeValue(type_name(value))),
    "duration": to_duration,
    "timestamp": to_timestamp,
    "matches": matches,
    "optional.of": free(lambda value: Optional(True, value)),
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": non_zero,
    "jsonpatch.escapeKey": lambda key: key.replace("~", "~0").replace("/", "~1"),
    "sets.contains": sets_contains,
    "sets.equivalent": sets_equivalent,
    "sets.intersects": sets_intersects,
    "strings.quote": quote,
    "lists.range": numbers,
}

METHODS: dict[str, Function] = {
    "size": size,
    "contains": contains,
    "startsWith": lambda text, prefix: need(text, str).startswith(need(prefix, str)),
    "endsWith": lambda text, suffix: need(text, str).endswith(need(suffix, str)),
    "matches": matches,
    "charAt": char_at,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "join": join,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": replace,
    "split": split,
    "substring": substring,
    "trim": lambda text: need(text, str).strip(),
    "reverse": lambda value: need(value, str, list)[::-1],
    "format": format_text,
    "isSorted": is_sorted,
    "sum": total,
    "min": _extreme(min, "min"),
    "max": _extreme(max, "max"),
    "distinct": distinct,
    "flatten": flatten,
    "sort": sort,
    "slice": list_slice,
    "find": find,
    "findAll": find_all,
    "hasValue": free(lambda optional: need(optional, Optional).present),
    "value": free(unwrapped),
    "orValue": free(lambda optional, other: optional.value if need(optional, Optional).present else other),
    "or": free(lambda optional, other: optional if need(optional, Optional).present else other),
    "getFullYear": _moment(lambda moment: moment.year),
    "getMonth": _moment(lambda moment: moment.month - 1),
    "getDate": _moment(lambda moment: moment.day),
    "getDayOfMonth": _moment(lambda moment: moment.day - 1),
    "getDayOfWeek": _moment(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _moment(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _moment(lambda moment: moment.hour, _whole(3600)),
    "getMinutes": _moment(lambda moment: moment.minute, _whole(60)),
    "getSeconds": _moment(lambda moment: moment.second, _whole(1)),
    "getMilliseconds": _moment(lambda moment: moment.microsecond // 1000, _whole(0.001)),
}
