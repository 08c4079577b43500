"""`Blocked`, reason `MissingRight`: an object says which right its controller lacks, as long as it does."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.meta import conditions
from danlu.meta.kind import Object

BLOCKED, REASON = "Blocked", "MissingRight"
REFUSED = "Refused"  # of an event: a change that the server did not take
OVER = ("Succeeded", "Failed", "Completed")  # conditions of a job that has ended: it waits for nobody
NO_RIGHT = " cannot "  # User "u" cannot list resource …: every other refusal is about the object, not about us


def is_over(present: Sequence[Object]) -> bool:
    return any(conditions.is_true(present, type) for type in OVER)


def is_told(present: Sequence[Object], message: str = "") -> bool:
    """Whether they say it; with a message: in these words."""
    found = conditions.get(present, BLOCKED)
    return found is not None and found.get("reason") == REASON and message in ("", found.get("message"))


def told(present: Sequence[Object], message: str, before: Sequence[Object], now: str) -> list[Object]:
    """The same and `Blocked`, first: of a job's conditions the last one is shown as its state."""
    said: Object = {"type": BLOCKED, "status": "True", "reason": REASON, "message": message}
    since = {"lastUpdateTime": now, "lastTransitionTime": now}
    found = conditions.get(before, BLOCKED) if is_told(before, message) else None
    return [found or {**said, **since}, *_without(present)]


def freed(present: Sequence[Object]) -> list[Object]:
    return _without(present) if is_told(present) else [*present]


def _without(present: Sequence[Object]) -> list[Object]:
    return [one for one in present if one["type"] != BLOCKED]
