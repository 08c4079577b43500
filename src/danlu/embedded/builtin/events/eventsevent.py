"""Events of the group events.k8s.io: the same stored objects as the core group's, in other words.

Rules are checked on the stored form, so errors name its fields, as Kubernetes does.
"""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.embedded.builtin.core.event import COLUMNS, SELECTABLE_NAMES, event_errors, selectable
from danlu.meta import names
from danlu.meta.fields import FieldError, immutable, invalid, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT, EVENTS_EVENT

_STORED_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_SERVED_NAMES = {stored: served for served, stored in _STORED_NAMES.items()}
_FROZEN = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def to_stored(event: Object) -> Object:
    stored = {_STORED_NAMES.get(key, key): value for key, value in event.items()}
    stored["apiVersion"] = EVENT.api_version
    stored.setdefault("involvedObject", {})
    stored.setdefault("source", {})
    stored.setdefault("reportingComponent", "")
    stored.setdefault("reportingInstance", "")
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        stored.setdefault(field, None)
    return stored


def from_stored(stored: Object) -> Object:
    event = {_SERVED_NAMES.get(key, key): value for key, value in stored.items()}
    event["apiVersion"] = EVENTS_EVENT.api_version
    for field in ("reportingController", "reportingInstance"):
        if not event.get(field):
            event.pop(field, None)
    return event


def default(obj: Object) -> None:
    for field in ("regarding", "deprecatedSource"):
        if not isinstance(obj.get(field), dict):
            obj[field] = {}
    for field in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"):
        obj.setdefault(field, None)


def validate(obj: Object) -> list[FieldError]:
    event = to_stored(obj)
    errors = event_errors(event, "reportingController") + _series_errors(event)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            errors.append(invalid(field, "", "needs to be unset"))
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        errors.append(invalid("source", "", "needs to be unset"))
    return errors


def _series_errors(event: Object) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors: list[FieldError] = []
    if (series.get("count") or 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    event, before = to_stored(new), to_stored(old)
    errors = event_errors(event, "reportingController")
    if event.get("series") != before.get("series"):
        errors += _series_errors(event)
    for field in _FROZEN:
        shown = "reportingController" if field == "reportingComponent" else field
        if (event.get(field) or None) != (before.get(field) or None):
            errors += immutable(shown, event.get(field), before.get(field))
    return errors


SERVED = ServedKind(
    kind=EVENTS_EVENT,
    schema=schema_of("io.k8s.api.events.v1.Event"),
    name_errors=names.as_dns_subdomain,
    columns=COLUMNS,
    default=default,
    validate=validate,
    validate_update=validate_update,
    selectable=selectable,
    selectable_names=frozenset(
        {name.replace("involvedObject.", "regarding.") for name in SELECTABLE_NAMES} - {"source", "reportingComponent"}
        | {"reportingController"}
    ),
    create_on_update=True,
    storage_version=False,
    stored_as=EVENT.resource,
    to_stored=to_stored,
    from_stored=from_stored,
)
