"""Schedules of CronJobs: five fields, `@daily` and its like, `@every 90m`. What they mean, and when they come next.

Times are found by the clock on the wall of a time zone: an hour that a change of clocks skips has no runs, one that it
repeats has them twice. That, and the words of errors, are those of the library that Kubernetes reads schedules with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

from danlu.meta.clock import parse_go_duration
from danlu.meta.fields import quoted

YEARS = 5  # a schedule that has no time within so many years has none: 31 February
_STARS = ("*", "?")
_ZONE = re.compile(r"(?:CRON_)?TZ=(\S*)\s*(.*)", re.DOTALL)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class ScheduleError(ValueError):
    """The text is that of Kubernetes' own library."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: tuple[str, ...] = ()  # of the values from `low` on


_BOUNDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))


@dataclass(frozen=True, slots=True)
class _Field:
    values: frozenset[int]
    star: bool  # left open: what counts where a day may be named in two ways


@dataclass(frozen=True, slots=True)
class Every:
    """So many seconds after the last time."""

    seconds: int

    def after(self, moment: datetime) -> datetime | None:
        return moment.replace(microsecond=0) + timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Calendar:
    """At certain minutes of certain hours of certain days."""

    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field
    zone: tzinfo | None  # None: of this machine

    def after(self, moment: datetime) -> datetime | None:
        """The first time after `moment`, in UTC; None where there is none."""
        found = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        last = found.year + YEARS
        while True:
            local = found.astimezone(self.zone)
            if local.year > last:
                return None
            if local.month not in self.months.values:
                year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
                found = self._midnight(year, month, 1)
            elif not self._is_day(local):
                tomorrow = local.date() + timedelta(days=1)
                found = self._midnight(tomorrow.year, tomorrow.month, tomorrow.day)
            elif local.hour not in self.hours.values:
                found += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes.values:
                found += timedelta(minutes=1)
            else:
                return found

    def _midnight(self, year: int, month: int, day: int) -> datetime:
        wall = datetime(year, month, day)
        return (wall.astimezone() if self.zone is None else wall.replace(tzinfo=self.zone)).astimezone(UTC)

    def _is_day(self, local: datetime) -> bool:
        by_month = local.day in self.days.values
        by_week = local.isoweekday() % 7 in self.weekdays.values
        # One of them named: that one counts. Both: either will do.
        return by_month and by_week if self.days.star or self.weekdays.star else by_month or by_week


Schedule = Every | Calendar


@cache
def zone_of(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def parse(text: str, zone: str | None = None) -> Schedule:
    """`zone`: where the schedule itself names none."""
    if not text:
        raise ScheduleError("empty spec string")
    named = _ZONE.fullmatch(text)
    if named is not None and " " in text:
        zone, text = named[1], named[2]
        try:
            zone_of(zone)
        except ScheduleError as why:
            raise ScheduleError(f"provided bad location {zone}: {why}") from None
    if text.startswith("@every "):
        return _every(text.removeprefix("@every "))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    words = text.split()
    if len(words) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly {len(_BOUNDS)} fields, found {len(words)}: [{' '.join(words)}]")
    minutes, hours, days, months, weekdays = map(_field, words, _BOUNDS)
    return Calendar(minutes, hours, days, months, weekdays, None if zone is None else zone_of(zone))


def _every(text: str) -> Every:
    try:
        return Every(max(1, int(parse_go_duration(text).total_seconds())))
    except ValueError:
        why = f"time: invalid duration {quoted(text)}"
        raise ScheduleError(f"failed to parse duration @every {text}: {why}") from None


def _field(text: str, bounds: _Bounds) -> _Field:
    ranges = [_range(one, bounds) for one in text.split(",") if one]
    return _Field(frozenset().union(*(one.values for one in ranges)), any(one.star for one in ranges))


def _range(text: str, bounds: _Bounds) -> _Field:
    """`5`, `1-5`, `*/15`, `10-50/20`, `MON`; `5/15` goes on from 5 to the end."""
    limits, *steps = text.split("/")
    first, *others = limits.split("-")
    star = first in _STARS
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = _value(first, bounds)
        if len(others) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        high = _value(others[0], bounds) if others else low
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if steps and not others:
        high = bounds.high
    if low < bounds.low:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return _Field(frozenset(range(low, high + 1, step)), star and step == 1)


def _value(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.low + bounds.names.index(name) if name in bounds.names else _number(text)


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
