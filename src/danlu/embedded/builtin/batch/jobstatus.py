"""Which statuses of a Job are valid. Whoever manages the Job writes it, so the server holds it to the Job's promises:
counters that never fall, an end that is never taken back, finished only with nothing left to do.

Most rules look only at what this write changes, so that an old object which breaks one can still be written.
"""

from __future__ import annotations

from typing import Any

from danlu.embedded.builtin._shared.workloads import counter_errors
from danlu.embedded.builtin.batch.jobindexes import IndexesError, count_indexes, overlap
from danlu.meta import clock
from danlu.meta.conditions import get, is_true
from danlu.meta.fields import IMMUTABLE, OMITTED, FieldError, duplicate, invalid, required
from danlu.meta.kind import Object


class _Change:
    """One write of a status: what it is, what it was, and which of the fields differ."""

    def __init__(self, new: Object, old: Object) -> None:
        self.spec: Object = new.get("spec") or {}
        self.status: Object = new.get("status") or {}
        self.before: Object = old.get("status") or {}
        self.finished = self.holds("Complete") or self.holds("Failed")
        self.finish_changed = self.finished != (self.held("Complete") or self.held("Failed"))

    def holds(self, condition: str) -> bool:
        return is_true(self.status.get("conditions"), condition)

    def held(self, condition: str) -> bool:
        return is_true(self.before.get("conditions"), condition)

    def changed(self, *fields: str) -> bool:
        return any((self.status.get(field) or None) != (self.before.get(field) or None) for field in fields)

    def turned(self, *conditions: str) -> bool:
        return any(self.holds(condition) != self.held(condition) for condition in conditions)

    def resumes(self) -> bool:
        suspended = get(self.status.get("conditions"), "Suspended")
        return self.held("Suspended") and suspended is not None and suspended.get("status") == "False"


def validate_status(new: Object, old: Object) -> list[FieldError]:
    change = _Change(new, old)
    errors = counter_errors(change.status, "status", ("active", "succeeded", "failed", "ready", "terminating"))
    errors += _uncounted_errors(change.status)
    errors += _ending_errors(change)
    errors += _time_errors(change)
    errors += _reason_errors(change)
    errors += _finished_errors(change)
    errors += _index_errors(change)
    errors += _pod_errors(change)
    errors += _criteria_errors(change)
    return errors + _history_errors(change)


def _conditions(text: str) -> FieldError:
    return invalid("status.conditions", OMITTED, text)


def _uncounted_errors(status: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[Any] = set()
    uncounted = status.get("uncountedTerminatedPods") or {}
    for key in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(key) or ()):
            field = f"status.uncountedTerminatedPods.{key}[{index}]"
            if not uid:
                errors.append(invalid(field, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(field, uid))
            seen.add(uid)
    return errors


def _ending_errors(change: _Change) -> list[FieldError]:
    """A Job ends one way."""
    errors: list[FieldError] = []
    for other in ("Failed", "FailureTarget"):
        if change.turned("Complete", other) and change.holds("Complete") and change.holds(other):
            errors.append(_conditions(f"cannot set Complete=True and {other}=true conditions"))
    return errors


def _reason_errors(change: _Change) -> list[FieldError]:
    """It is first decided that the Job ends, then it ends."""
    errors: list[FieldError] = []
    complete, failed = change.holds("Complete"), change.holds("Failed")
    target, met = change.holds("FailureTarget"), change.holds("SuccessCriteriaMet")
    if (change.turned("Failed") or change.changed("failedIndexes")) and failed and not target:
        errors.append(_conditions("cannot set Failed=True condition without the FailureTarget=true condition"))
    if change.turned("Complete", "SuccessCriteriaMet") and complete and not met:
        errors.append(_conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"))
    return errors


def _criteria_errors(change: _Change) -> list[FieldError]:
    errors: list[FieldError] = []
    complete, met = change.holds("Complete"), change.holds("SuccessCriteriaMet")
    if met and change.holds("Failed"):
        errors.append(_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if met and change.holds("FailureTarget"):
        errors.append(_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if change.spec.get("successPolicy") is not None and not met and complete:
        text = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_conditions(text))
    return errors


def _finished_errors(change: _Change) -> list[FieldError]:
    errors: list[FieldError] = []
    if not change.finished:
        return errors
    status, ending, active = change.status, change.finish_changed, change.status.get("active") or 0
    if (ending or change.changed("active")) and active > 0:
        errors.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    nothing_to_do = change.spec.get("suspend") and change.spec.get("completions") == 0
    if (ending or change.changed("startTime")) and not status.get("startTime") and not nothing_to_do:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    if (ending or change.changed("uncountedTerminatedPods")) and any(uncounted.values()):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        errors.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return errors


def _pod_errors(change: _Change) -> list[FieldError]:
    errors: list[FieldError] = []
    active, terminating = change.status.get("active") or 0, change.status.get("terminating") or 0
    ready = change.status.get("ready")
    if change.finished and (change.finish_changed or change.changed("terminating")) and terminating > 0:
        errors.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    if ready is not None and change.changed("ready", "active") and ready > active:
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _time_errors(change: _Change) -> list[FieldError]:
    errors: list[FieldError] = []
    started, ended = change.status.get("startTime"), change.status.get("completionTime")
    complete, field = change.holds("Complete"), "status.completionTime"
    if change.turned("Complete") or change.changed("completionTime"):
        if ended and not complete:
            text = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid(field, ended, text))
        if complete and not ended:
            errors.append(required(field, "completionTime is required for Complete jobs"))
    if change.changed("startTime", "completionTime") and started and ended and _before(ended, started):
        errors.append(invalid(field, ended, "must be equal to or after `startTime`"))
    return errors


def _before(earlier: str, later: str) -> bool:
    return clock.parse_time(earlier) < clock.parse_time(later)


def _index_errors(change: _Change) -> list[FieldError]:
    errors: list[FieldError] = []
    completed, failed = change.status.get("completedIndexes") or "", change.status.get("failedIndexes")
    completions, per_index = change.spec.get("completions"), change.spec.get("backoffLimitPerIndex") is not None
    if change.changed("completedIndexes"):
        errors += _format_errors("completedIndexes", completed, completions)
        if completed and change.spec.get("completionMode") != "Indexed":
            text = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.append(invalid("status.completedIndexes", completed, text))
    if change.changed("failedIndexes") and failed is not None:
        if not per_index:
            text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.append(invalid("status.failedIndexes", failed, text))
        else:
            errors += _format_errors("failedIndexes", failed, completions)
    if change.changed("failedIndexes", "completedIndexes") and completions is not None:
        both = overlap(completed, failed or "", completions)
        if both is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {both}"
            errors.append(invalid("status.failedIndexes", failed, text))
    return errors


def _format_errors(field: str, indexes: str, completions: int | None) -> list[FieldError]:
    if completions is None:
        return []
    try:
        count_indexes(indexes, completions)
    except IndexesError as why:
        return [invalid(f"status.{field}", indexes, f"error parsing {field}: {why}")]
    return []


def _history_errors(change: _Change) -> list[FieldError]:
    errors: list[FieldError] = []
    status, before = change.status, change.before
    for condition in ("Failed", "Complete", "FailureTarget"):
        if change.held(condition) and not change.holds(condition):
            errors.append(_conditions(f"cannot disable the terminal {condition}=True condition"))
    scaled_in_step = change.spec.get("completions") == change.spec.get("parallelism")
    shrinks = change.spec.get("completionMode") == "Indexed" and scaled_in_step
    for key in ("failed", "succeeded"):
        value = status.get(key) or 0
        if value < (before.get(key) or 0) and not (key == "succeeded" and shrinks):
            errors.append(invalid(f"status.{key}", value, f"cannot decrease the {key} counter"))
    ended, had_ended = status.get("completionTime"), before.get("completionTime")
    if ended and had_ended and ended != had_ended:
        errors.append(invalid("status.completionTime", ended, IMMUTABLE))
    restarted = before.get("startTime") and change.changed("startTime") and not change.resumes()
    if restarted and not change.spec.get("suspend"):
        text = "field is immutable for unsuspended job once set"
        errors.append(invalid("status.startTime", status.get("startTime"), text))
    if change.held("SuccessCriteriaMet") and not change.holds("SuccessCriteriaMet"):
        errors.append(_conditions("cannot disable the SuccessCriteriaMet=True condition"))
    if change.held("Complete") and change.turned("SuccessCriteriaMet") and change.holds("SuccessCriteriaMet"):
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(_conditions(text))
    return errors
