"""`status.conditions`: one entry for each type; `lastTransitionTime` moves only when `status` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from danlu.meta.kind import Object
from danlu.meta.said import CAUSES, carried


def get(conditions: Sequence[Object] | None, type: str) -> Object | None:
    for condition in conditions or ():
        if condition.get("type") == type:
            return condition
    return None


def is_true(conditions: Sequence[Object] | None, type: str) -> bool:
    found = get(conditions, type)
    return found is not None and found.get("status") == "True"


def set(
    conditions: list[Object],
    type: str,
    status: str,
    reason: str = "",
    message: str = "",
    now: str = "",
    **more: Any,
) -> bool:
    """Put the condition in; whether anything changed. `more` are further fields (observedGeneration, lastProbeTime)."""
    found = get(conditions, type)
    wanted: Object = {"type": type, "status": status}
    if now:
        kept = found is not None and found.get("status") == status and found.get("lastTransitionTime")
        wanted["lastTransitionTime"] = kept or now
    if reason:
        wanted["reason"] = reason
    if message:
        wanted["message"] = message
    if causes := carried(message):
        wanted[CAUSES] = causes
    wanted.update(more)
    if found is None:
        conditions.append(wanted)
        return True
    if found == wanted:
        return False
    found.clear()
    found.update(wanted)
    return True


def remove(conditions: list[Object], type: str) -> bool:
    found = get(conditions, type)
    if found is None:
        return False
    conditions.remove(found)
    return True
