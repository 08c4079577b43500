"""`Node`: what is known about one place in an object.

A compiled schema is a graph of nodes. Native definitions that refer to themselves (JSONSchemaProps) make cycles, so a
node is filled in after it is handed out; `fields` is shared by identity between a definition and the places that use
it, and is therefore never replaced. A finished node is not changed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What `decoder` does with a value at this place. Small ints, compared by identity on the hot path.
ANY, STRING, INT32, INT64, NUMBER, BOOL, STRUCT, MAP, LIST, QUANTITY, INT_OR_STRING, TIME, MICRO_TIME, BYTES, LOOSE = (
    range(15)
)

NO_DEFAULTS: Mapping[str, Any] = {}


class Node:
    __slots__ = (
        "code",
        "defaults",
        "fields",
        "go_struct",
        "go_type",
        "items",
        "list_type",
        "map_keys",
        "map_type",
        "merge_key",
        "preserve_unknown",
        "required",
        "schema",
        "strategies",
        "type",
        "values",
    )

    def __init__(self, type: str = "", code: int = ANY) -> None:
        self.type = type  # "object", "array", "string", "integer", "number", "boolean" or "" (anything)
        self.code = code
        self.fields: dict[str, Node] = {}
        self.items: Node | None = None
        self.values: Node | None = None  # additionalProperties
        self.list_type = ""  # "atomic", "set", "map"
        self.map_keys: tuple[str, ...] = ()
        self.map_type = ""  # "granular", "atomic"
        self.merge_key = ""  # x-kubernetes-patch-merge-key
        self.strategies: frozenset[str] = frozenset()  # of x-kubernetes-patch-strategy: merge, retainKeys, replace
        self.preserve_unknown = False
        self.defaults: Mapping[str, Any] = NO_DEFAULTS  # of this object's own fields, where an absent key has a value
        self.required: frozenset[str] = frozenset()
        self.go_type = ""  # as Go's decoder names it: "int32", "[]v1.Container", "map[string]string"
        self.go_struct = ""  # "PodSpec"
        self.schema: Mapping[str, Any] = NO_DEFAULTS  # structural schemas: the JSON schema at this place

    def __repr__(self) -> str:
        return f"<Node {self.go_type or self.type or 'any'} {sorted(self.fields)[:5]}>"

    def field(self, name: str) -> Node | None:
        """The node of one member: a declared field, else the values of a map."""
        return self.fields.get(name) or self.values

    def used_as(self) -> Node:
        """A copy for one place that uses a definition and adds something of its own; members stay shared."""
        copy = Node()
        for slot in Node.__slots__:
            setattr(copy, slot, getattr(self, slot))
        return copy
