"""Schedules: when they come next, and what is said of those that cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from danlu.meta import cron


def times(schedule: str, since: str, count: int, zone: str | None = "UTC") -> list[str]:
    moment: datetime | None = datetime.fromisoformat(since).replace(tzinfo=UTC)
    parsed, found = cron.parse(schedule, zone), []
    for _ in range(count):
        assert moment is not None
        moment = parsed.after(moment)
        assert moment is not None
        found.append(moment.strftime("%Y-%m-%dT%H:%M"))
    return found


@pytest.mark.parametrize(
    ("schedule", "since", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:00", ["2026-01-01T00:01", "2026-01-01T00:02"]),
        ("* * * * *", "2026-01-01T00:00:59", ["2026-01-01T00:01"]),
        ("*/15 * * * *", "2026-01-01T00:50", ["2026-01-01T01:00", "2026-01-01T01:15"]),
        ("5/20 * * * *", "2026-01-01T00:00", ["2026-01-01T00:05", "2026-01-01T00:25"]),
        ("10-50/20 * * * *", "2026-01-01T00:20", ["2026-01-01T00:30", "2026-01-01T00:50", "2026-01-01T01:10"]),
        ("0 9 * * MON-FRI", "2026-01-02T10:00", ["2026-01-05T09:00", "2026-01-06T09:00"]),  # the 2nd is a Friday
        ("0 0 1,15 * *", "2026-01-02T00:00", ["2026-01-15T00:00", "2026-02-01T00:00"]),
        ("0 0 29 feb ?", "2026-01-01T00:00", ["2028-02-29T00:00"]),
        ("0 0 13 * 5", "2026-01-01T00:00", ["2026-01-02T00:00", "2026-01-09T00:00", "2026-01-13T00:00"]),  # or
        ("0 0 */2 * 5", "2026-01-01T00:00", ["2026-01-02T00:00", "2026-01-03T00:00"]),  # a step is no star: or
        ("0 0 * 12 0", "2026-01-01T00:00", ["2026-12-06T00:00"]),
        ("@hourly", "2026-01-01T00:30", ["2026-01-01T01:00"]),
        ("@daily", "2026-12-31T00:30", ["2027-01-01T00:00"]),
        ("@weekly", "2026-01-01T00:00", ["2026-01-04T00:00"]),
        ("@monthly", "2026-01-01T00:00", ["2026-02-01T00:00"]),
        ("@yearly", "2026-01-01T00:00", ["2027-01-01T00:00"]),
        ("@every 90m", "2026-01-01T00:10", ["2026-01-01T01:40", "2026-01-01T03:10"]),
    ],
)  # fmt: skip
def test_the_next_times(schedule: str, since: str, expected: list[str]) -> None:
    assert times(schedule, since, len(expected)) == expected


def test_hours_are_those_of_the_time_zone() -> None:
    assert times("0 9 * * *", "2026-06-01T00:00", 2, "Asia/Shanghai") == ["2026-06-01T01:00", "2026-06-02T01:00"]
    assert times("CRON_TZ=Asia/Shanghai 0 9 * * *", "2026-06-01T00:00", 1, None) == ["2026-06-01T01:00"]
    assert times("TZ=UTC 0 9 * * *", "2026-06-01T00:00", 1, "Asia/Shanghai") == ["2026-06-01T09:00"]


def test_an_hour_that_is_skipped_has_no_runs_and_one_that_comes_twice_has_them_twice() -> None:
    # New York: 2026-03-08 02:00 becomes 03:00; 2026-11-01 02:00 becomes 01:00.
    assert times("30 2 * * *", "2026-03-07T12:00", 1, "America/New_York") == ["2026-03-09T06:30"]
    assert times("30 1 * * *", "2026-10-31T12:00", 3, "America/New_York") == [
        "2026-11-01T05:30", "2026-11-01T06:30", "2026-11-02T06:30",
    ]  # fmt: skip


def test_midnight_may_not_exist() -> None:
    # Beirut: 2026-03-29 00:00 becomes 01:00.
    assert times("0 1 29 3 *", "2026-03-27T12:00", 1, "Asia/Beirut") == ["2026-03-28T22:00"]
    assert times("0 0 * * *", "2026-03-28T00:00", 1, "Asia/Beirut") == ["2026-03-29T21:00"]


def test_a_day_that_no_month_has_never_comes() -> None:
    assert cron.parse("0 0 31 2 *", "UTC").after(datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(("text", "seconds"), [("1h30m", 5400), ("1.5s", 1), ("0s", 1), ("-5m", 1), ("500ms", 1)])
def test_every_is_at_least_a_second_and_whole(text: str, seconds: int) -> None:
    begin = datetime(2026, 1, 1, microsecond=7, tzinfo=UTC)
    assert cron.parse(f"@every {text}").after(begin) == begin.replace(microsecond=0) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("a b c d e", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/1/2 * * * *", "too many slashes: */1/2"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        (f"@every {'9' * 400}h", None),  # more than Go can count
        ("TZ=Nowhere/Land * * * * *", "provided bad location Nowhere/Land: unknown time zone Nowhere/Land"),
        (f"{'9' * 5000} * * * *", None),
    ],
)
def test_what_cannot_be_read_is_said(schedule: str, words: str | None) -> None:
    with pytest.raises(cron.ScheduleError) as raised:
        cron.parse(schedule)
    if words is not None:
        assert str(raised.value) == words
