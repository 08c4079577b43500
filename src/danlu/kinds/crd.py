"""From a kind's typed classes to its CustomResourceDefinition.

msgspec writes JSON schema; Kubernetes wants the structural subset of OpenAPI v3: references are put in place, unions
with null become optional fields, pod templates get Kubernetes' own schema. Defaults of the classes are the
controller's, not the API's: the stored object stays as the user wrote it, unless a field asks (`stored_default`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from danlu.kinds.platform import PlatformKind, PrinterColumn, Rule
from danlu.meta.kind import Object
from danlu.meta.said import tailed
from danlu.meta.schema.definitions import bare_definition

DEFINITION = "x-danlu-definition"
STORED_DEFAULT = "x-danlu-default"


def _native(name: str) -> Meta:
    return Meta(extra_json_schema={DEFINITION: name})


PodTemplate = Annotated[dict[str, Any], _native("io.k8s.api.core.v1.PodTemplateSpec")]
ResourceRequirements = Annotated[dict[str, Any], _native("io.k8s.api.core.v1.ResourceRequirements")]
Quantities = Annotated[dict[str, Any], Meta(extra_json_schema={DEFINITION: "quantities"})]
Condition = Annotated[dict[str, Any], Meta(extra_json_schema={DEFINITION: "free"})]
FreeForm = Annotated[dict[str, Any], Meta(extra_json_schema={DEFINITION: "free"})]


def stored_default(value: Any) -> Meta:
    """The API server itself fills this in when the field is absent and its parent is there."""
    return Meta(extra_json_schema={STORED_DEFAULT: value})


def definition(platform: PlatformKind) -> Object:
    kind = platform.kind
    names: Object = {
        "plural": kind.plural,
        "singular": kind.singular_name,
        "kind": kind.kind,
        "listKind": kind.list_kind,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    subresources: Object = {"status": {}}
    if platform.scale is not None:
        subresources["scale"] = platform.scale
    version: Object = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": object_schema(platform)},
        "subresources": subresources,
        "additionalPrinterColumns": [_column(column) for column in platform.columns],
        **platform.extra,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": {"app.kubernetes.io/part-of": "danlu"}},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _column(column: PrinterColumn) -> Object:
    found: Object = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.priority:
        found["priority"] = column.priority
    if column.description:
        found["description"] = column.description
    return found


BELOW = {"*": "additionalProperties", "[]": "items"}
"""Steps of a rule's place that are no field: the values of a map, the elements of a list."""


def object_schema(platform: PlatformKind) -> Object:
    schema: Object = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(platform.spec),
            "status": structural(platform.status),
        },
        "required": ["spec"],
    }
    for rule in platform.rules:
        place = schema
        for step in filter(None, rule.at.split(".")):
            place = place[BELOW[step]] if step in BELOW else place["properties"][step]
        place.setdefault("x-kubernetes-validations", []).append(_rule(rule))
    return schema


def _rule(rule: Rule) -> Object:
    found: Object = {"rule": rule.rule}
    for key, value in (
        ("message", tailed(rule.message)),
        ("messageExpression", rule.message_expression),
        ("reason", rule.reason),
        ("fieldPath", rule.field_path),
    ):
        if value:
            found[key] = value
    return found


def structural(struct: type[msgspec.Struct]) -> Object:
    (top,), components = msgspec.json.schema_components((struct,), ref_template="{name}")
    return _structural(top, components)


KEPT = (
    "description", "type", "format", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "maxProperties", "pattern",
)  # fmt: skip


def _structural(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Object:
    if "$ref" in schema:
        return {**_structural(components[schema["$ref"]], components), **_own(schema)}
    if DEFINITION in schema:
        return {**_known(schema[DEFINITION]), **_own(schema)}
    if "anyOf" in schema:
        others = [one for one in schema["anyOf"] if one.get("type") != "null"]
        kinds = {one.get("type") for one in others}
        if kinds == {"integer", "string"}:
            return {"x-kubernetes-int-or-string": True, **_own(schema)}
        return {**_structural(others[0], components), **_own(schema)}
    found = _own(schema)
    if "enum" in found and "type" not in found:
        found["type"] = "string"
    if isinstance(found.get("type"), list):
        found["type"] = next(one for one in found["type"] if one != "null")
    if "properties" in schema:
        found["properties"] = {name: _structural(inner, components) for name, inner in schema["properties"].items()}
        if schema.get("required"):
            found["required"] = list(schema["required"])
    if "items" in schema and isinstance(schema["items"], Mapping):
        found["items"] = _structural(schema["items"], components)
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = _structural(schema["additionalProperties"], components)
    return found


def _own(schema: Mapping[str, Any]) -> Object:
    found = {key: schema[key] for key in KEPT if key in schema}
    if STORED_DEFAULT in schema:
        found["default"] = schema[STORED_DEFAULT]
    return found


# -- Kubernetes' own types, without their descriptions

QUANTITY: Object = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
}
SPECIAL: dict[str, Object] = {
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "quantities": {"type": "object", "additionalProperties": QUANTITY},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": {"type": "string", "format": "date-time"},
    # Of a template's metadata only these mean anything.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
        },
    },
}
LARGEST_INT32 = 2**31 - 1  # as seconds more than anybody waits for: 68 years
MOST_CONTAINERS = 64  # more than anybody has in one pod
LONGEST_LABEL = 63  # a container's name is a DNS label
LIST_KEYS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")


def _known(name: str) -> Object:
    if name in SPECIAL:
        return SPECIAL[name]
    return _from_kubernetes(bare_definition(name))


def _from_kubernetes(schema: Mapping[str, Any]) -> Object:
    if "$ref" in schema:
        return _known(schema["$ref"])
    found: Object = {"type": schema.get("type") or "object"}
    if "format" in schema and schema["format"] in ("int32", "int64", "double", "byte"):
        found["format"] = schema["format"]
    properties = schema.get("properties")
    if properties:
        found["properties"] = {name: _from_kubernetes(inner) for name, inner in properties.items()}
        _bound(found["properties"])
        if "protocol" in properties and "containerPort" in properties:
            found["properties"]["protocol"]["default"] = "TCP"  # part of the list's key, so it must never be absent
        if schema.get("required"):
            found["required"] = list(schema["required"])
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = _from_kubernetes(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = _from_kubernetes(schema["items"])
        for key in LIST_KEYS:
            if key in schema:
                found[key] = schema[key]
        _require_keys(found)
    if found["type"] == "object" and "properties" not in found and "additionalProperties" not in found:
        found["x-kubernetes-preserve-unknown-fields"] = True
    return found


def _bound(properties: Object) -> None:
    """How much there can be of what rules look at: a server refuses a CRD whose rules could take long to answer."""
    for name in ("containers", "initContainers"):
        if name in properties:
            properties[name]["maxItems"] = MOST_CONTAINERS
            properties[name]["items"]["properties"]["name"]["maxLength"] = LONGEST_LABEL


def _require_keys(found: Object) -> None:
    """A list-map's keys must be required or have a default; where the schema has neither, it is a plain list."""
    if found.get("x-kubernetes-list-type") != "map":
        return
    items = found["items"]
    for key in found["x-kubernetes-list-map-keys"]:
        inner = items.get("properties", {}).get(key, {})
        if key not in items.get("required", ()) and "default" not in inner:
            for name in LIST_KEYS:
                found.pop(name, None)
            return
