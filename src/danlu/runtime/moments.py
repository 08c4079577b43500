"""The time of day, as something that can be handed in: tests own the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """As Kubernetes writes times: whole seconds, cut off and not rounded."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    return datetime.fromisoformat(text)


def seconds_since(text: str | None, now: datetime) -> float:
    """0 for a time that is not given."""
    return (now - parse(text)).total_seconds() if text else 0.0
