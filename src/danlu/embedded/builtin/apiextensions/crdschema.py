"""Is the schema of a CustomResourceDefinition structural? In apiextensions' words.

Structural: every field has a type outside of anyOf, allOf, oneOf and not, which may only narrow values. Only then can
the server prune, default and document objects without guessing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from danlu.meta import schema as schemas
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.goregex import PatternError, compile_go
from danlu.meta.schema import formats
from danlu.meta.schema.checks import MISSING, Check

Schema = Mapping[str, Any]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_AT_ROOT = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
    "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
    "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
_AT_ROOT_KEYS = {name[0].lower() + name[1:] for name in _AT_ROOT} | {
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}
_NOT_SUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NESTED_EMPTY = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def validate(schema: Schema, path: str, *, status: bool) -> list[FieldError]:
    """All that is wrong with the schema at `path`; `status`: the status subresource is on."""
    try:
        return _validate(schema, path, status=status)
    except RecursionError:
        return [invalid(path, "", "is nested too deeply")]


def _validate(schema: Schema, path: str, *, status: bool) -> list[FieldError]:
    errors = _root(schema, path, status=status)
    structural = sorted([*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)], key=_message)
    errors += structural
    if not structural:
        errors += _defaults(schema, path)
    open_api = list(_open_api(schema, path, root=True, inside_meta=False, no_default=""))
    errors += open_api
    if not errors:
        errors += _rules(schema, path)
    return errors


def unrecognized_formats(schema: Schema) -> set[str]:
    """Formats that no value will be checked against."""
    found: set[str] = set()
    form, kind = schema.get("format", ""), schema.get("type", "")
    if form:
        known = {"integer": form in ("int32", "int64"), "number": form in ("float", "double")}
        if not known.get(kind, kind in ("", "string") and formats.checker(form) is not None):
            found.add(form)
    for _, child, _ in _children(schema, ""):
        found |= unrecognized_formats(child)
    return found


def _message(error: FieldError) -> str:
    return error.message()


def _root(schema: Schema, path: str, *, status: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if status:
        if schema.get("type", "object") != "object":
            when = "at the root of the schema if the status subresource is enabled"
            detail = f'only "object" is allowed as the type {when}'
            errors.append(invalid(f"{path}.type", schema["type"], detail))
        elif any(key not in _AT_ROOT_KEYS for key in schema):
            allowed = f"[{' '.join(_AT_ROOT)}]"
            detail = f"only {allowed} fields are allowed at the root of the schema if the status subresource is enabled"
            errors.append(invalid(path, dict(schema), detail))
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors


def _children(schema: Schema, path: str) -> Iterator[tuple[str, Schema, str]]:
    """(level, schema, path) of the structural children."""
    if isinstance(schema.get("items"), dict):
        yield "item", schema["items"], f"{path}.items"
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):
            yield "field", child, f"{path}.properties[{name}]"
    if isinstance(schema.get("additionalProperties"), dict):
        yield "field", schema["additionalProperties"], f"{path}.additionalProperties"


def _invariants(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    for below, child, place in _children(schema, path):
        yield from _invariants(child, below, place)
    if level == "root" and "additionalProperties" in schema:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    either, preserve = schema.get("x-kubernetes-int-or-string"), schema.get("x-kubernetes-preserve-unknown-fields")
    embedded = schema.get("x-kubernetes-embedded-resource")
    for name, value in (("preserve-unknown-fields", preserve), ("embedded-resource", embedded)):
        if either and value:
            yield invalid(f"{path}.x-kubernetes-{name}", True, "must be false if x-kubernetes-int-or-string is true")
    yield from _values(schema, path)
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not either and not preserve:
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and "additionalProperties" in schema:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    if level == "root" or embedded:
        yield from _metadata(schema, level, path)
    if embedded and not preserve and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", detail)


def _metadata(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type", "") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    place = f"{path}.properties[metadata]"
    if metadata.get("type", "") != "object":
        yield invalid(f"{place}.type", metadata.get("type", ""), "must be object")
    named = set(metadata.get("properties") or {}) <= {"name", "generateName"}
    if level == "root" and (not named or set(metadata) - {"type", "properties", "default", "description"}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(place, detail)


def _values(schema: Schema, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    skip_any = skip_any or list(schema.get("anyOf") or ()) == _INT_OR_STRING
    all_of = list(schema.get("allOf") or ())
    first_any = bool(all_of) and list(all_of[0].get("anyOf") or ()) == _INT_OR_STRING
    if not skip_any:
        for index, one in enumerate(schema.get("anyOf") or ()):
            yield from _nested(one, f"{path}.anyOf[{index}]")
    for index, one in enumerate(all_of):
        yield from _nested(one, f"{path}.allOf[{index}]", skip_any=first_any and index == 0)
    for index, one in enumerate(schema.get("oneOf") or ()):
        yield from _nested(one, f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_go(pattern)
        except PatternError as reason:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {reason}")


def _nested(schema: Schema, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _values(schema, path, skip_any=skip_any)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    for name, child in (schema.get("properties") or {}).items():
        yield from _nested(child, f"{path}.properties[{name}]")
    for key, detail in _NESTED_EMPTY.items():
        if schema.get(key) or (key == "default" and key in schema):
            yield forbidden(f"{path}.{key}", detail)
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(nested: Schema, whole: Schema | None, place: str, path: str) -> Iterator[FieldError]:
    """What a junctor speaks of must be declared outside of it too."""
    for key in _JUNCTORS:
        for index, one in enumerate(nested.get(key) or ()):
            yield from _declared(one, whole, place, f"{path}.{key}[{index}]")
    if isinstance(nested.get("not"), dict):
        yield from _declared(nested["not"], whole, place, f"{path}.not")


def _declared(nested: Schema, whole: Schema | None, place: str, path: str) -> Iterator[FieldError]:
    if whole is None:
        yield required(place, f"because it is defined in {path}")
        return
    yield from _completeness(nested, whole, place, path)
    if isinstance(nested.get("items"), dict):
        yield from _declared(nested["items"], whole.get("items"), f"{place}.items", f"{path}.items")
    for name, child in (nested.get("properties") or {}).items():
        declared = (whole.get("properties") or {}).get(name)
        below = f"properties[{name}]"
        yield from _declared(child, declared, f"{place}.{below}", f"{path}.{below}")


def _defaults(schema: Schema, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if "default" in schema:
        default = schema["default"]
        check = Check(schema)
        found: list[FieldError] = []
        check(default, MISSING, "", found)
        for error in found:
            below = "" if error.field == "<nil>" else f".{error.field}"
            errors.append(FieldError(error.type, f"{path}.default{below}", error.value, error.detail))
        if isinstance(default, dict) and not found:
            wrapped = schemas.structural({"type": "object", "properties": {"default": dict(schema)}})
            if wrapped.unknown_fields({"default": default}):
                errors.append(invalid(f"{path}.default", default, "must not have unknown fields"))
    for _, child, place in _children(schema, path):
        errors += _defaults(child, place)
    return errors


def _open_api(schema: Schema, path: str, *, root: bool, inside_meta: bool, no_default: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind and kind not in TYPES:
        yield not_supported(f"{path}.type", kind, TYPES)
    if "default" in schema and no_default:
        yield forbidden(f"{path}.default", f"must not be set {no_default}")
    for key in _NOT_SUPPORTED:
        if schema.get(key):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if inside_meta and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    for level, child, place in _children(schema, path):
        name = place.rsplit("[", 1)[-1].rstrip("]") if level == "field" else ""
        meta = inside_meta or (
            name in ("metadata", "kind", "apiVersion")
            and (root or bool(schema.get("x-kubernetes-embedded-resource")))
            and place.endswith(f"properties[{name}]")
        )
        reason = f"in top-level {name}" if meta and root else no_default
        yield from _open_api(child, place, root=False, inside_meta=meta, no_default=reason)
    for key in _JUNCTORS:
        for index, one in enumerate(schema.get(key) or ()):
            place = f"{path}.{key}[{index}]"
            yield from _open_api(one, place, root=False, inside_meta=inside_meta, no_default=no_default)
    yield from _extensions(schema, path)
    yield from _list_keys(schema, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _rule_shape(rule, f"{path}.x-kubernetes-validations[{index}]")


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if map_type is not None and kind != "object":
        detail = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    if list_type is not None and kind != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif list_type == "set" and isinstance(schema.get("items"), dict):
        items = schema["items"]
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
            yield invalid(f"{path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], detail)
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), detail)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))


def _list_keys(schema: Schema, path: str) -> Iterator[FieldError]:
    keys, list_type = schema.get("x-kubernetes-list-map-keys") or [], schema.get("x-kubernetes-list-type")
    items = schema.get("items")
    if keys and list_type != "map":
        detail, place = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.x-kubernetes-list-type"
        yield invalid(place, list_type, detail) if list_type else required(place, detail)
    if list_type == "map":
        if not keys:
            detail = "must not be empty if x-kubernetes-list-type is map"
            yield required(f"{path}.x-kubernetes-list-map-keys", detail)
        if items is None:
            yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        elif isinstance(items, dict) and items.get("type") != "object":
            detail = "must be object if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.type", items.get("type", ""), detail)
        elif isinstance(items, dict):
            yield from _keys_of_map(items, keys, path)
    if list_type in ("set", "map") and isinstance(items, dict) and items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden(f"{path}.items.nullable", detail)


def _keys_of_map(items: Schema, keys: list[str], path: str) -> Iterator[FieldError]:
    place = f"{path}.x-kubernetes-list-map-keys"
    seen: set[str] = set()
    for key in keys:
        declared = (items.get("properties") or {}).get(key)
        below = f"{path}.items.properties[{key}]"
        if declared is None:
            yield invalid(place, keys, "entries must all be names of item properties")
        else:
            if declared.get("type") in ("array", "object"):
                detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                yield invalid(f"{below}.type", items.get("type"), detail)
            if key not in (items.get("required") or ()) and "default" not in declared:
                detail = (
                    "this property is in x-kubernetes-list-map-keys, "
                    "so it must have a default or be a required property"
                )
                yield required(f"{below}.default", detail)
            if declared.get("nullable"):
                detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
                yield forbidden(f"{below}.nullable", detail)
        if key in seen:
            yield invalid(place, keys, "must not contain duplicate entries")
        seen.add(key)


def _rule_shape(rule: Schema, path: str) -> Iterator[FieldError]:
    text, message, reason = rule.get("rule", ""), rule.get("message", ""), rule.get("reason")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif ("\n" in text.strip() or "\r" in text.strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reasons = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
    if reason is not None and reason not in reasons:
        yield not_supported(f"{path}.reason", reason, reasons)
    field_path = rule.get("fieldPath", "")
    if field_path and not field_path.strip():
        yield invalid(f"{path}.fieldPath", field_path, "must be non-empty if specified")
    if "\n" in field_path or "\r" in field_path:
        yield invalid(f"{path}.fieldPath", field_path, "must not contain line breaks")


def _rules(schema: Schema, path: str) -> list[FieldError]:
    """CEL rules that do not compile."""
    from danlu.meta.cel.rules import compile_errors

    return compile_errors(schema, path)
