"""The time of day, as something that can be handed in: tests own the clock. How times are written: `meta.clock`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from danlu.meta.clock import parse_time

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def seconds_since(text: str | None, now: datetime) -> float:
    """0 for a time that is not given."""
    return (now - parse_time(text)).total_seconds() if text else 0.0
