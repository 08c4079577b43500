"""Time as Kubernetes writes it: RFC 3339 stamps in, `kubectl get`'s short ages out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

# RFC 3339 has years of four digits. What lies beyond (a grace period of 2^63 seconds, say) is held at its ends: a stamp
# that nobody can read again would make its object one that cannot even be deleted.
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC, microsecond=0)
LONGEST_DURATION_S = 2**63 / 1e9  # Go counts nanoseconds in 64 bits
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_FIRST_SECOND, _LAST_SECOND = int(EARLIEST.timestamp()), int(LATEST.timestamp())


Clock = Callable[[], datetime]
"""The time of day, as something that can be handed in: tests own the clock."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def rfc3339(moment: float | datetime) -> str:
    """Whole seconds: `2026-01-02T03:04:05Z`."""
    if isinstance(moment, datetime):
        moment = moment.timestamp()
    return _second(int(min(max(moment, _FIRST_SECOND), _LAST_SECOND) // 1))


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    moment = time.gmtime(seconds)
    return f"{moment.tm_year:04}" + time.strftime("-%m-%dT%H:%M:%SZ", moment)  # %Y does not fill up to four digits


def rfc3339_micro(moment: float | datetime) -> str:
    """Microseconds, as Lease and events.k8s.io write them: `2026-01-02T03:04:05.000006Z`."""
    if isinstance(moment, int | float):
        moment = datetime.fromtimestamp(moment, UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def now_rfc3339() -> str:
    return _second(int(time.time()))


def now_rfc3339_micro() -> str:
    return rfc3339_micro(time.time())


def parse_time(text: str) -> datetime:
    """Raises ValueError for what is no RFC 3339 stamp; the answer is in UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text.upper():
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # the last hours of the year 9999, in a zone west of Greenwich
        return LATEST if moment.year > 1 else EARLIEST


def parse_go_duration(text: str) -> timedelta:
    """`1h30m`, `-1.5s`, `0`. Raises ValueError."""
    body = text[1:] if text[:1] in ("-", "+") else text
    seconds, position = 0.0, 0
    while found := _DURATION.match(body, position):  # not searched for: a run of digits would be gone through each time
        seconds += float(found[1]) * _UNITS[found[2]]
        position = found.end()
    if ((position != len(body) or not body) and body != "0") or seconds > LONGEST_DURATION_S:
        raise ValueError(f"not a duration: {text!r}")
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def later(moment: datetime, seconds: float) -> datetime:
    """`moment` and so many seconds more (or less), held at the first and the last moment that a stamp can name."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LATEST if seconds > 0 else EARLIEST


def seconds_between(earlier: str, later: str) -> float:
    return (parse_time(later) - parse_time(earlier)).total_seconds()


def age(text: str | None, now: datetime | float | None = None) -> str:
    """How long ago, in kubectl's short form: `5m3s`; `<unknown>` where there is no time."""
    if not text:
        return "<unknown>"
    try:
        then = parse_time(text).timestamp()
    except ValueError:
        return "<invalid>"
    if now is None:
        now = time.time()
    elif isinstance(now, datetime):
        now = now.timestamp()
    return human_duration(now - then)


def human_duration(length: float) -> str:
    seconds = int(length)
    if seconds < -1:
        return "<invalid>"
    if length < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
