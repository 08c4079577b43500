"""Tables: what `kubectl get` prints, made by the server so that every client shows the same columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from danlu.meta.kind import Object

NAME_DESCRIPTION = "The object's name, unique among its kind in a namespace."
CREATED_DESCRIPTION = "When the server made the object, in UTC."


class ColumnLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def description(self) -> str: ...
    def value(self, obj: Object, /) -> Any: ...


def definition(column: ColumnLike) -> Object:
    description = column.description
    if not description and column.format == "name":
        description = NAME_DESCRIPTION
    elif not description and column.name in ("Age", "Created At"):
        description = CREATED_DESCRIPTION
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    }


def partial(obj: Object, version: str = "v1", *, with_type: bool = True) -> Object:
    """The object's metadata alone."""
    metadata = obj.get("metadata", {})
    if not with_type:
        return {"metadata": metadata}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def partial_list(objects: Iterable[Object], meta: Object, version: str = "v1") -> Object:
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "items": [partial(obj, version) for obj in objects],
    }


def table(
    columns: Sequence[ColumnLike], objects: Iterable[Object], meta: Object, include: str = "", version: str = "v1"
) -> Object:
    """`include`: which part of the object each row carries: Metadata (the default), Object or None."""
    rows = []
    for obj in objects:
        row: Object = {"cells": [column.value(obj) for column in columns]}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = partial(obj, version)
        else:
            row["object"] = None
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": [definition(column) for column in columns],
        "rows": rows,
    }
