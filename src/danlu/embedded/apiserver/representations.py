"""Answers in another form than the objects themselves: Tables, metadata alone, YAML."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.embedded.apiserver.negotiation import Wanted, encode
from danlu.embedded.apiserver.request import Response
from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.errors import BadRequest
from danlu.meta import table
from danlu.meta.kind import Object

# What is shown of a kind that names no columns of its own.
PLAIN_COLUMNS: tuple[Column, ...] = (
    Column("Name", lambda obj: obj.get("metadata", {}).get("name", ""), format="name"),
    Column(
        "Created At",
        lambda obj: obj.get("metadata", {}).get("creationTimestamp"),
        type="date",
    ),
)
_INCLUDES = ("", "None", "Metadata", "Object")


def columns_of(served: ServedKind) -> Sequence[Column]:
    return served.columns or PLAIN_COLUMNS


def _check(include: str | None) -> str:
    include = include or ""
    if include not in _INCLUDES:
        raise BadRequest(f"unrecognized includeObject value: {include!r}".replace("'", '"'))
    return include


def convert_one(want: Wanted, served: ServedKind, obj: Object, include: str | None) -> Object:
    """One object in the form asked for; also what a watch sends for each event."""
    if want.kind == "table":
        meta = {"resourceVersion": obj.get("metadata", {}).get("resourceVersion", "")}
        return table.table(columns_of(served), [obj], meta, _check(include), want.version)
    if want.kind == "partial":
        return table.partial(obj, want.version)
    return obj


def convert_bookmark(want: Wanted, served: ServedKind, obj: Object) -> Object:
    """A bookmark says only how far the watch has come; the row that carries it has empty cells."""
    if want.kind == "table":
        meta = {"resourceVersion": obj.get("metadata", {}).get("resourceVersion", "")}
        converted = table.table(columns_of(served), [], meta, "", want.version)
        cells = ["" for _ in converted["columnDefinitions"]]
        return {**converted, "rows": [{"cells": cells, "object": table.partial(obj, want.version)}]}
    if want.kind == "partial":
        return table.partial(obj, want.version)
    return obj


def render_one(want: Wanted, served: ServedKind, obj: Object, include: str | None = "", status: int = 200) -> Response:
    return Response(status, encode(convert_one(want, served, obj, include), want), want.content_type)


def render_many(
    want: Wanted, served: ServedKind, objects: Sequence[Object], meta: Object, include: str | None = ""
) -> Response:
    if want.kind == "table":
        answer = table.table(columns_of(served), objects, meta, _check(include), want.version)
    elif want.kind == "partial":
        answer = table.partial_list(objects, meta, want.version)
    else:
        kind = served.kind
        answer = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta, "items": list(objects)}
    return Response(200, encode(answer, want), want.content_type)
