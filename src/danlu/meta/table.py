"""Tables: what `kubectl get` prints, made by the server so that every client shows the same columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from danlu.meta.kind import Object

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


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
