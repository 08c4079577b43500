"""Schemas of custom kinds: pruning, defaults and validation from the `openAPIV3Schema` of a CRD version.

The object's own apiVersion, kind and metadata are never pruned by the schema; metadata is decoded as every kind's is.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from danlu.meta import fields, names
from danlu.meta.fields import FieldError
from danlu.meta.schema import Schema, decoder, definitions
from danlu.meta.schema.checks import MISSING, NOWHERE, Check
from danlu.meta.schema.decoder import MOST_REPORTED, Decoded, TypeProblem, Where, spell
from danlu.meta.schema.schemanode import ANY, INT64, INT_OR_STRING, LIST, MAP, NUMBER, STRING, STRUCT, Node

if TYPE_CHECKING:
    from danlu.meta.cel.rules import Rules

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_OWN = ("apiVersion", "kind", "metadata")
_CODES = {"string": STRING, "integer": INT64, "number": NUMBER, "array": LIST}
_BLOCKING = frozenset({"FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"})
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def compile_schema(schema: Mapping[str, Any], *, preserve_unknown: bool = False) -> StructuralSchema:
    root = _node(schema)
    root.fields.update({"apiVersion": Node("string", STRING), "kind": Node("string", STRING)})
    root.fields["metadata"] = definitions.node_of(_OBJECT_META)
    root.preserve_unknown = root.preserve_unknown or preserve_unknown
    return StructuralSchema(root)


def _node(schema: Mapping[str, Any]) -> Node:
    kind = schema.get("type", "")
    node = Node(kind, _CODES.get(kind, ANY))
    node.schema = schema
    node.preserve_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    node.list_type = schema.get("x-kubernetes-list-type", "")
    node.map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    node.map_type = schema.get("x-kubernetes-map-type", "")
    if schema.get("x-kubernetes-int-or-string"):
        node.code, node.type = INT_OR_STRING, "string"
    items, values = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        node.items = _node(items)
    if isinstance(values, dict):
        node.values = _node(values)
    elif values is True:
        node.values = Node()
        node.values.preserve_unknown = True
    if kind == "object":
        node.code = MAP if values else STRUCT
    for name, child in schema.get("properties", {}).items():
        node.fields[name] = _node(child)
    if schema.get("x-kubernetes-embedded-resource"):
        node.fields.setdefault("apiVersion", Node("string", STRING))
        node.fields.setdefault("kind", Node("string", STRING))
        node.fields["metadata"] = definitions.node_of(_OBJECT_META)
    defaults = {name: child["default"] for name, child in schema.get("properties", {}).items() if "default" in child}
    if defaults:
        node.defaults = defaults
    return node


class StructuralSchema(Schema):
    __slots__ = ("_check", "_has_defaults", "_has_embedded", "_has_list_types", "_has_rules", "_rules")

    def __init__(self, root: Node) -> None:
        super().__init__(root)
        self._check: Check | None = None
        self._rules: Rules | None = None
        self._has_defaults = _mentions(root.schema, "default")
        self._has_rules = _mentions(root.schema, "x-kubernetes-validations")
        self._has_embedded = _mentions(root.schema, "x-kubernetes-embedded-resource")
        self._has_list_types = _mentions(root.schema, "x-kubernetes-list-type")

    def decode(self, obj: dict[str, Any]) -> Decoded:
        unknown: list[str] = []
        metadata = obj.get("metadata")
        if "metadata" in obj and not isinstance(metadata, dict):
            if metadata is None:
                del obj["metadata"]
            else:
                shown = fields.invalid("metadata", metadata, f"must be an object, got {type(metadata).__name__}")
                return Decoded([], TypeProblem("metadata", shown.message()))
        elif metadata is not None:
            decoded = decoder.decode(metadata, definitions.node_of(_OBJECT_META))
            if decoded.problem:
                shown = fields.invalid("metadata", metadata, decoded.problem.message)
                return Decoded([], TypeProblem("metadata", shown.message()))
            unknown = [f"metadata.{path}" for path in decoded.unknown]
        found: list[str] = []
        _prune(obj, self.root, None, found, root=True)
        return Decoded(unknown + sorted(found), None)

    def default(self, obj: dict[str, Any]) -> None:
        if self._has_defaults:
            _default(obj, self.root, root=True)

    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        if self._check is None:
            self._check = Check(self.root.schema)
        errors: list[FieldError] = []
        before = MISSING if old is None else {k: v for k, v in old.items() if k not in _OWN}
        self._check(obj, before, "", errors)
        if self._has_embedded:
            _embedded(obj, self.root, "", errors, root=True)
        if self._has_list_types:
            _list_types(obj, self.root, "", errors)
        if not self._has_rules:
            return errors
        if any(error.type in _BLOCKING for error in errors):
            return [*errors, fields.invalid(NOWHERE, None, _UNCHECKED)]
        if self._rules is None:
            from danlu.meta.cel.rules import Rules

            self._rules = Rules(self.root)
        return errors + self._rules.validate(obj, old)


def _mentions(schema: Mapping[str, Any], word: str) -> bool:
    """Whether a keyword stands anywhere in the schema (not as the name of a property)."""
    if word in schema:
        return True
    below = list(schema.get("properties", {}).values())
    below += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    below += schema.get("allOf") or []
    return any(_mentions(child, word) for child in below if isinstance(child, dict))


def _prune(value: Any, node: Node, where: Where, unknown: list[str], *, root: bool = False) -> None:
    if value.__class__ is dict:
        dropped: list[str] = []
        for key, item in value.items():
            if root and key in _OWN:
                continue
            child = node.fields.get(key) or node.values
            if child is None:
                if not node.preserve_unknown:
                    dropped.append(key)
                continue
            if item is None:
                if child.schema and not child.schema.get("nullable") and "default" not in child.schema:
                    dropped.append(key)
            elif child.code is not STRING:
                _prune_known(item, child, (where, key), unknown)
        for key in dropped:
            if value[key] is not None or (key not in node.fields and node.values is None):
                _report(unknown, where, key)
            del value[key]
    elif value.__class__ is list and node.items is not None:
        for index, item in enumerate(value):
            _prune_known(item, node.items, (where, index), unknown)


def _prune_known(value: Any, node: Node, where: Where, unknown: list[str]) -> None:
    if node.go_struct and value.__class__ is dict:  # an embedded resource's metadata
        for path in decoder.decode(value, node).unknown:
            _report(unknown, where, path)
        return
    if node.code is ANY and node.preserve_unknown and not node.fields and node.values is None and node.items is None:
        return
    _prune(value, node, where, unknown)


def _report(unknown: list[str], where: Where, key: str) -> None:
    if len(unknown) < MOST_REPORTED:
        unknown.append(spell(where, key))


def _default(value: Any, node: Node, *, root: bool = False) -> None:
    if value.__class__ is dict:
        for key, default in node.defaults.items():
            if key not in value or (value[key] is None and not node.fields[key].schema.get("nullable")):
                value[key] = copy.deepcopy(default)
        for key, item in value.items():
            child = node.fields.get(key) or node.values
            if child is not None and not (root and key in _OWN):
                _default(item, child)
    elif value.__class__ is list and node.items is not None:
        for index, item in enumerate(value):
            schema = node.items.schema
            if item is None and not schema.get("nullable") and "default" in schema:
                value[index] = item = copy.deepcopy(schema["default"])
            _default(item, node.items)


def _list_types(value: Any, node: Node, path: str, errors: list[FieldError]) -> None:
    if value.__class__ is dict:
        for key, item in value.items():
            if item.__class__ is not dict and item.__class__ is not list:
                continue
            child = node.fields.get(key)
            if child is not None:
                if not child.go_struct:
                    _list_types(item, child, f"{path}.{key}" if path else key, errors)
            elif node.values is not None:
                _list_types(item, node.values, f"{path}[{key}]", errors)
    elif value.__class__ is list:
        if node.list_type == "set":
            _duplicates(value, value, path, errors)
        elif node.list_type == "map":
            for index, item in enumerate(value):
                if item is not None and not isinstance(item, dict):
                    detail = "must be an object for an array of list-type map"
                    errors.append(fields.invalid(f"{path}[{index}]", item, detail))
                    return
            keys = [{key: item[key] for key in node.map_keys if key in item} if item else {} for item in value]
            _duplicates(keys, keys, path, errors)
        if node.items is not None:
            for index, item in enumerate(value):
                _list_types(item, node.items, f"{path}[{index}]", errors)


def _duplicates(items: list[Any], shown: list[Any], path: str, errors: list[FieldError]) -> None:
    """Each repeated item is reported once, at its second appearance."""
    times: dict[str, int] = {}
    for index, item in enumerate(items):
        key = json.dumps(item, sort_keys=True)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            errors.append(fields.duplicate(f"{path}[{index}]", shown[index]))


def _embedded(value: Any, node: Node, path: str, errors: list[FieldError], *, root: bool = False) -> None:
    if value.__class__ is dict:
        if not root and node.schema.get("x-kubernetes-embedded-resource"):
            _type_meta(value, path, errors)
        for key, item in value.items():
            child = node.fields.get(key) or node.values
            if child is not None and not child.go_struct and item.__class__ in (dict, list):
                _embedded(item, child, f"{path}.{key}" if path else key, errors)
    elif value.__class__ is list and node.items is not None:
        for index, item in enumerate(value):
            _embedded(item, node.items, f"{path}[{index}]", errors)


def _type_meta(value: dict[str, Any], path: str, errors: list[FieldError]) -> None:
    for key in ("apiVersion", "kind"):
        place = f"{path}.{key}"
        if key not in value:
            errors.append(fields.required(place))
        elif not isinstance(value[key], str):
            errors.append(fields.invalid(place, value[key], "must be a string"))
        elif not value[key]:
            errors.append(fields.invalid(place, "", "must not be empty"))
        elif key == "kind" and (texts := names.dns1035_label(value[key].lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(texts)}"
            errors.append(fields.invalid(place, value[key], detail))
