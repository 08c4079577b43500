"""Definitions for the OpenAPI documents, v2 and v3: Kubernetes' own, and those of custom kinds."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from danlu.embedded.apiserver.served import ServedKind
from danlu.meta.kind import Kind
from danlu.meta.schema import definitions

Document = dict[str, Any]

V2 = "#/definitions/"
V3 = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SPECIAL: dict[tuple[str, str], Document] = {
    (_QUANTITY, V2): {"type": "string"},
    (_QUANTITY, V3): {"oneOf": [{"type": "string"}, {"type": "number"}]},
    (_INT_OR_STRING, V2): {"format": "int-or-string", "type": "string"},
    (_INT_OR_STRING, V3): {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
}


@functools.cache
def by_kind() -> dict[tuple[str, str, str], str]:
    """(group, version, kind) -> the name of its definition."""
    return {
        (kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"]): name
        for name, kinds in definitions.kinds_by_definition().items()
        if len(kinds) == 1
    }


def name_of(kind: Kind) -> str:
    """The definition's name: Kubernetes' own, or the reversed group for a custom kind."""
    known = by_kind().get((kind.group, kind.version, kind.kind))
    if known is not None:
        return known
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def is_native(kind: Kind) -> bool:
    return (kind.group, kind.version, kind.kind) in by_kind()


def published(name: str, definition: Mapping[str, Any], prefix: str) -> Document:
    special = _SPECIAL.get((name, prefix))
    if special is not None:
        return {"description": definition["description"], **special} if "description" in definition else dict(special)
    return _published(definition, prefix)


def _published(schema: Mapping[str, Any], prefix: str) -> Document:
    shown: Document = {}
    for key, value in schema.items():
        if key == "properties":
            shown["properties"] = {name: _published(child, prefix) for name, child in value.items()}
        elif key in ("items", "additionalProperties"):
            shown[key] = _published(value, prefix)
        elif key == "$ref":
            shown[key] = prefix + value
        else:
            shown[key] = value
    if prefix == V3 and "$ref" in shown and len(shown) > 1:  # a reference has no siblings in OpenAPI v3
        shown["allOf"] = [{"$ref": shown.pop("$ref")}]
    return shown


def references(schema: Any) -> Iterator[str]:
    """Names of the definitions that a published schema refers to."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str):
                yield reference.rsplit("/", 1)[-1]
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def closure(names: Iterable[str], known: Mapping[str, Document], prefix: str, given: dict[str, Document]) -> None:
    """Adds the named definitions to `given` with all that they refer to."""
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in given or name not in known:
            continue
        given[name] = published(name, known[name], prefix)
        pending.extend(references(given[name]))


def custom(served: ServedKind, prefix: str) -> dict[str, Document]:
    """The definitions of a custom kind and of its list."""
    kind = served.kind
    name = name_of(kind)
    identity = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
    schema = dict(served.schema().root.schema)
    free = prefix == V2 and bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if prefix == V2:
        schema = _for_v2(schema)
    properties = {
        **schema.get("properties", {}),
        **_identity(),
        "metadata": _described(f"{META}ObjectMeta", "Standard object's metadata.", prefix),
    }
    one = {**schema, "type": "object", "properties": properties, "x-kubernetes-group-version-kind": identity}
    if free:  # kubectl would refuse whatever is not among the properties
        one = {"type": "object", "x-kubernetes-group-version-kind": identity}
    many = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": properties["apiVersion"],
            "items": {"description": f"List of {kind.plural}.", "type": "array", "items": {"$ref": prefix + name}},
            "kind": properties["kind"],
            "metadata": _described(f"{META}ListMeta", "Standard list metadata.", prefix),
        },
        "x-kubernetes-group-version-kind": [{**identity[0], "kind": kind.list_kind}],
    }
    return {name: one, f"{name}List": many}


@functools.cache
def _identity() -> dict[str, Document]:
    """apiVersion and kind, described as they are in every kind of Kubernetes' own."""
    known = definitions.described_definitions()["io.k8s.api.core.v1.Namespace"]["properties"]
    return {name: {"type": "string", "description": known[name]["description"]} for name in ("apiVersion", "kind")}


def _described(name: str, description: str, prefix: str) -> Document:
    reference = {"$ref": prefix + name}
    return {"description": description, **({"allOf": [reference]} if prefix == V3 else reference)}


_ONLY_V3 = ("oneOf", "anyOf", "allOf", "not", "nullable", "default", "x-kubernetes-validations")


def _for_v2(schema: Mapping[str, Any]) -> Document:
    """Swagger cannot say all that a structural schema can; what is left describes the fields."""
    shown = {key: value for key, value in schema.items() if key not in _ONLY_V3}
    if shown.get("x-kubernetes-preserve-unknown-fields") and not shown.get("properties"):
        shown.pop("items", None)
    if shown.get("x-kubernetes-int-or-string"):
        shown.pop("type", None)
    if "properties" in shown:
        shown["properties"] = {name: _for_v2(child) for name, child in shown["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(shown.get(key), dict):
            shown[key] = _for_v2(shown[key])
    return shown
