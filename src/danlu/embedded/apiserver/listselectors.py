"""Label and field selectors of lists and watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from danlu.embedded.apiserver.request import Call
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest
from danlu.meta.fields import quoted
from danlu.meta.fieldselector import FieldSelector, FieldSelectorError
from danlu.meta.fieldselector import parse as parse_fields
from danlu.meta.labels import Selector, SelectorError, parse_selector

Matches = Callable[[Stored], bool]
ALWAYS_SELECTABLE = frozenset({"metadata.name", "metadata.namespace"})


def fields_of(served: ServedKind, stored: Stored) -> Mapping[str, str]:
    """Computed when a selector first asks, then kept with the stored version: watchers ask many times."""
    if stored.fields is None:
        stored.fields = {
            "metadata.name": stored.name,
            "metadata.namespace": stored.namespace,
            **served.selectable(stored.obj),
        }
    return stored.fields


def selectors(call: Call, served: ServedKind) -> tuple[Selector, FieldSelector]:
    try:
        labels = parse_selector(call.query.get("labelSelector"))
        fields = parse_fields(call.query.get("fieldSelector"))
    except (SelectorError, FieldSelectorError) as error:
        raise BadRequest(str(error)) from None
    for name in fields.names:
        if name not in ALWAYS_SELECTABLE and name not in served.selectable_names:
            raise BadRequest(_unselectable(served, name))
    return labels, fields


def _not_selectable(served: ServedKind, name: str) -> str:
    """Kinds with fields of their own refuse in other words than those that have only the common two."""
    if served.kind.resource == "jobs.batch":
        return f'field label "{name}" not supported for Job'
    if served.selectable_names:
        return f"field label not supported: {name}"
    return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _unselectable(served: ServedKind, name: str) -> str:
    if served.unselectable:
        return served.unselectable.format(quoted(name))
    if served.selectable_names:
        return f"field label not supported: {name}"
    return f'{quoted(name)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def matcher(call: Call, served: ServedKind) -> Matches | None:
    """None when everything matches, which is the common case and costs nothing then."""
    if "labelSelector" not in call.query and "fieldSelector" not in call.query and not call.name:
        return None
    labels, fields = selectors(call, served)
    name = call.name
    if labels.empty and fields.empty and not name:
        return None
    common_only = fields.names <= ALWAYS_SELECTABLE  # for those nothing need be decoded

    def matches(stored: Stored) -> bool:
        if name and stored.name != name:
            return False
        if not labels.empty and not labels.matches(stored.labels):
            return False
        if fields.empty:
            return True
        if common_only:
            return fields.matches({"metadata.name": stored.name, "metadata.namespace": stored.namespace})
        return fields.matches(fields_of(served, stored))

    return matches
