"""CreateOptions, UpdateOptions, PatchOptions and DeleteOptions: what a write may ask for besides the object."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.embedded.apiserver.request import Call
from danlu.meta.fields import FieldError, invalid_error, not_supported
from danlu.meta.kind import Kind
from danlu.meta.metadata import validate_field_manager

CREATE, UPDATE, PATCH, DELETE = (
    Kind("meta.k8s.io", "v1", f"{verb}Options", f"{verb.lower()}options")
    for verb in ("Create", "Update", "Patch", "Delete")
)
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")


def check(call: Call, kind: Kind, errors: Sequence[FieldError] = ()) -> None:
    """Raises Invalid for the first, before anything is decoded or done. `errors`: what the caller found already."""
    query = call.query
    if not query and not errors:
        return
    found = [*errors, *validate_field_manager(query.get("fieldManager")), *dry_run_errors(query.getall("dryRun"))]
    asked = query.get("fieldValidation")
    if asked not in FIELD_VALIDATION:
        found.append(not_supported("fieldValidation", asked, FIELD_VALIDATION))
    if found:
        raise invalid_error(kind, "", found)


def dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ["All"])]


def manager(call: Call) -> str:
    """Who this change is put down to in managedFields: the name given, or the program's."""
    return call.query.get("fieldManager") or call.headers.get("user-agent", "").split("/")[0] or "unknown"
