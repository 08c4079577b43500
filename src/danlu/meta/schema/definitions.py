"""Schemas of the built-in kinds, compiled from Kubernetes' own OpenAPI definitions.

`scripts/generate-schemas` writes the two files. What stays in memory is one small JSON text for each definition; it is
parsed and compiled when a kind that uses it is first served. Descriptions, five times as long as all else, are read
when a document is made that shows them.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from typing import Any

import orjson

from danlu.meta.schema.gonames import GO_NAMES
from danlu.meta.schema.schemanode import (
    ANY,
    BOOL,
    BYTES,
    INT32,
    INT64,
    INT_OR_STRING,
    LIST,
    LOOSE,
    MAP,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    STRING,
    STRUCT,
    TIME,
    Node,
)

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_FOLDER = Path(__file__).parent
_GZIP = 16 + zlib.MAX_WBITS

# Definitions that Go decodes by code of their own.
_SCALARS: dict[str, tuple[str, int, str]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("string", QUANTITY, "resource.Quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("string", INT_OR_STRING, "int32"),
    _META + "Time": ("string", TIME, "string"),
    _META + "MicroTime": ("string", MICRO_TIME, "string"),
}
_FREE = {
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    _META + "FieldsV1",
    _META + "Patch",
    _EXTENSIONS + "JSON",
    _EXTENSIONS + "JSONSchemaPropsOrStringArray",
}
_SCHEMA_OR_MORE = {_EXTENSIONS + "JSONSchemaPropsOrArray", _EXTENSIONS + "JSONSchemaPropsOrBool"}

# Values that an absent list-map key stands for; the definitions' file has lost its "default"s.
_KEY_DEFAULTS: dict[str, dict[str, Any]] = {
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
}
_INTEGERS = {"int32": INT32, "int64": INT64}


def _unpacked(name: str) -> bytes:
    return zlib.decompress((_FOLDER / name).read_bytes(), _GZIP)


@functools.cache
def _stored() -> tuple[str, dict[str, bytes]]:
    """The release of Kubernetes, and every definition as JSON without descriptions."""
    release, *lines = _unpacked("definitions.gz").split(b"\n")
    pairs = (line.partition(b" ") for line in lines)
    return release.decode(), {name.decode(): text for name, _, text in pairs}


def _bare() -> dict[str, bytes]:
    return _stored()[1]


def release() -> str:
    """Of Kubernetes, whose definitions these are: v1.36.0."""
    return _stored()[0]


def described_definitions() -> dict[str, dict[str, Any]]:
    """All of them, with descriptions. Large: take what is needed and let go of it."""
    every: dict[str, dict[str, Any]] = {name: orjson.loads(text) for name, text in _bare().items()}
    for name, texts in orjson.loads(_unpacked("descriptions.gz")).items():
        for field, text in texts.items():
            described = every[name]["properties"][field] if field else every[name]
            described["description"] = text
    return every


_nodes: dict[str, Node] = {}


def is_known(definition: str) -> bool:
    return definition in _bare()


def bare_definition(definition: str) -> dict[str, Any]:
    """One definition as it stands in Kubernetes' OpenAPI, without descriptions and with names as references; a copy of
    one's own."""
    found: dict[str, Any] = orjson.loads(_bare()[definition])
    return found


def kinds_by_definition() -> dict[str, list[dict[str, str]]]:
    """For each definition of a kind, the group, version and kind that it defines (one for each group it is used in)."""
    key = "x-kubernetes-group-version-kind"
    return {name: orjson.loads(text)[key] for name, text in _bare().items() if key.encode() in text}


def node_of(definition: str) -> Node:
    """The shared node of a definition. Given out before its fields are filled in when definitions form a cycle."""
    ready = _nodes.get(definition)
    if ready is not None:
        return ready
    if definition in _SCALARS:
        kind, code, go_type = _SCALARS[definition]
        node = _nodes[definition] = Node(kind, code)
        node.go_type = go_type
        return node
    if definition in _FREE:
        node = _nodes[definition] = Node("object" if definition != _EXTENSIONS + "JSON" else "", ANY)
        node.preserve_unknown = True
        return node
    if definition in _SCHEMA_OR_MORE:
        node = node_of(_EXTENSIONS + "JSONSchemaProps").used_as()
        node.code, node.type = LOOSE, ""
        node.go_type = "bool" if definition.endswith("OrBool") else "v1.JSONSchemaProps"
        return _nodes.setdefault(definition, node)
    schema = orjson.loads(_bare()[definition])
    version, name = definition.split(".")[-2:]
    node = _nodes[definition] = Node("object", STRUCT)
    node.go_struct, node.go_type = name, f"{version}.{name}"
    node.map_type = schema.get("x-kubernetes-map-type", "")
    node.required = frozenset(schema.get("required", ()))
    node.defaults = _KEY_DEFAULTS.get(definition, node.defaults)
    for field, child in schema.get("properties", {}).items():
        node.fields[field] = _named(_compile(child), GO_NAMES.get(f"{name}.{field}"))
    return node


def _named(node: Node, go_name: str | None) -> Node:
    """A field's node under Go's own name. Only nodes that belong to this one field are named."""
    if go_name is None or node.go_struct or node.code in (QUANTITY, TIME, MICRO_TIME):
        return node
    node.go_type = go_name
    if node.code == LIST and node.items is not None and node.items.code == STRING:
        node.items.go_type = go_name.removeprefix("[]")
    return node


def _compile(schema: dict[str, Any]) -> Node:
    reference = schema.get("$ref")
    if reference is not None:
        node = node_of(reference)
        if "x-kubernetes-patch-strategy" in schema or "x-kubernetes-map-type" in schema:
            node = node.used_as()
            _annotate(node, schema)
        return node
    kind = schema.get("type", "")
    node = Node(kind)
    _annotate(node, schema)
    if kind == "array":
        node.code, node.items = LIST, _compile(schema["items"])
        node.go_type = f"[]{node.items.go_type}"
    elif kind == "object":
        values = schema.get("additionalProperties")
        node.code, node.values = MAP, _compile(values) if values else Node()
        node.go_type = f"map[string]{node.values.go_type}"
    else:
        node.code, node.go_type = _scalar(kind, schema.get("format", ""))
    return node


def _scalar(kind: str, form: str) -> tuple[int, str]:
    if kind == "integer":
        return _INTEGERS.get(form, INT64), form or "int64"
    if kind == "number":
        return NUMBER, "float64"
    if kind == "boolean":
        return BOOL, "bool"
    if kind == "string":
        return (BYTES, "[]uint8") if form == "byte" else (STRING, "string")
    return ANY, ""


def _annotate(node: Node, schema: dict[str, Any]) -> None:
    node.list_type = schema.get("x-kubernetes-list-type", node.list_type)
    node.map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) or node.map_keys
    node.map_type = schema.get("x-kubernetes-map-type", node.map_type)
    node.merge_key = schema.get("x-kubernetes-patch-merge-key", node.merge_key)
    strategies = schema.get("x-kubernetes-patch-strategy")
    if strategies:
        node.strategies = frozenset(strategies.split(","))
