"""Events of the core group; also the form in which events.k8s.io stores its own (see `eventsevent.py`)."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.meta import clock, names, objects
from danlu.meta.fields import FieldError, invalid, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LONGEST, _LONGEST_MESSAGE = 128, 1024


def default(obj: Object) -> None:
    """What Kubernetes always writes out, empty or not."""
    for field in ("involvedObject", "source"):
        if not isinstance(obj.get(field), dict):
            obj[field] = {}
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(field, None)
    for field in ("reportingComponent", "reportingInstance"):
        if obj.get(field) is None:
            obj[field] = ""


def validate(obj: Object) -> list[FieldError]:
    return event_errors(obj, "reportingComponent")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


def event_errors(event: Object, reporter: str) -> list[FieldError]:
    """Rules of both groups, on the stored form. `reporter`: what the asked version calls the reporting component.

    An event without eventTime comes from an old client: only its namespace is checked.
    """
    errors: list[FieldError] = []
    namespace, about = objects.namespace(event), objects.get(event, "involvedObject.namespace", "")
    if not event.get("eventTime"):
        fits = about == namespace if about else namespace in ("", "default")
    else:
        fits = bool(about) or namespace in ("default", "kube-system")
        errors += _new_event_errors(event, reporter)
    if not fits:
        errors.insert(0, invalid("involvedObject.namespace", about, "does not match event.namespace"))
    return errors + [invalid("namespace", namespace, text) for text in names.dns_subdomain(namespace)]


def _new_event_errors(event: Object, reporter: str) -> list[FieldError]:
    errors: list[FieldError] = []
    component = event.get("reportingComponent") or ""
    if not component:
        errors.append(required(reporter))
    errors += [invalid(reporter, component, text) for text in names.qualified_name(component)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            errors.append(required(field))
        if len(value.encode()) > _LONGEST:
            errors.append(invalid(field, "", f"can have at most {_LONGEST} characters"))
    if len((event.get("message") or "").encode()) > _LONGEST_MESSAGE:
        errors.append(invalid("message", "", f"can have at most {_LONGEST_MESSAGE} characters"))
    return errors


def selectable(obj: Object) -> dict[str, str]:
    """From the stored form, under the names of both groups: what is computed once serves either."""
    involved = obj.get("involvedObject") or {}
    component = obj.get("reportingComponent") or ""
    fields = {
        "reason": obj.get("reason") or "",
        "reportingComponent": component,
        "reportingController": component,
        "source": (obj.get("source") or {}).get("component") or component,
        "type": obj.get("type") or "",
    }
    for field in _INVOLVED:
        value = str(involved.get(field) or "")
        fields[f"involvedObject.{field}"] = value
        fields[f"regarding.{field}"] = value
    return fields


SELECTABLE_NAMES = frozenset(
    {"reason", "reportingComponent", "source", "type"} | {f"involvedObject.{field}" for field in _INVOLVED}
)


# -- columns, of either form


def _either(obj: Object, core: str, events: str) -> object:
    return obj.get(core) or obj.get(events)


def _involved(obj: Object) -> Object:
    return obj.get("involvedObject") or obj.get("regarding") or {}


def _first_seen(obj: Object) -> str:
    first = _either(obj, "firstTimestamp", "deprecatedFirstTimestamp")
    return clock.age(str(first) if first else obj.get("eventTime"))


def _last_seen(obj: Object) -> str:
    series = obj.get("series")
    if series:
        return clock.age(series.get("lastObservedTime"))
    last = _either(obj, "lastTimestamp", "deprecatedLastTimestamp")
    return clock.age(str(last)) if last else _first_seen(obj)


def _object(obj: Object) -> str:
    involved = _involved(obj)
    kind, name = (involved.get("kind") or "").lower(), involved.get("name")
    return f"{kind}/{name}" if name else kind


def _source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or _either(obj, "reportingComponent", "reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else str(component)


def _message(obj: Object) -> str:
    return str(_either(obj, "message", "note") or "").strip()


def _count(obj: Object) -> int:
    series = obj.get("series")
    count = series.get("count") if series else _either(obj, "count", "deprecatedCount")
    return int(str(count or (0 if series else 1)))


COLUMNS = (
    Column("Last Seen", _last_seen, description="When this was last seen, as the time since then."),
    Column("Type", text_at("type"), description="Normal or Warning."),
    Column("Reason", text_at("reason"), description="Why this was reported, in one word."),
    Column("Object", _object, description="What this is about."),
    Column(
        "Subobject",
        lambda obj: _involved(obj).get("fieldPath") or "",
        priority=1,
        description="The part of the object that this is about.",
    ),
    Column("Source", _source, priority=1, description="Who reported this."),
    Column("Message", _message, description="What happened."),
    Column("First Seen", _first_seen, priority=1, description="When this was first seen, as the time since then."),
    Column("Count", _count, priority=1, description="How often this was seen."),
    Column("Name", objects.name, format="name", priority=1, description="The name of the event."),
)

SERVED = ServedKind(
    kind=EVENT,
    schema=schema_of("io.k8s.api.core.v1.Event"),
    name_errors=names.as_dns_subdomain,
    columns=COLUMNS,
    default=default,
    validate=validate,
    validate_update=validate_update,
    selectable=selectable,
    selectable_names=SELECTABLE_NAMES,
    create_on_update=True,
)
