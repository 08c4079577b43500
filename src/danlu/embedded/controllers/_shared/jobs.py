"""What controllers ask of a Job that another one runs."""

from __future__ import annotations

from danlu.meta import conditions
from danlu.meta.kind import Object


def ended(job: Object) -> Object | None:
    """The condition that it has ended with, Complete or Failed; None as long as it has not."""
    held = (job.get("status") or {}).get("conditions")
    for type in ("Complete", "Failed"):
        if conditions.is_true(held, type):
            return conditions.get(held, type)
    return None
