"""From a request's body to an object that fits its schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from danlu.embedded.apiserver.negotiation import DuplicateKeys, decode_body, plain_json
from danlu.embedded.apiserver.request import Call
from danlu.embedded.apiserver.served import ServedKind
from danlu.errors import BadRequest, Invalid
from danlu.meta import objects
from danlu.meta.fields import invalid, invalid_error, quoted
from danlu.meta.kind import Kind, Object
from danlu.meta.patch import fieldsets, typed
from danlu.meta.schema import Decoded, Node, Schema


def field_validation(call: Call) -> str:
    """What to do about unknown and duplicate fields; `options.check` has refused other words."""
    return call.query.get("fieldValidation") or "Warn"


def read_object(call: Call, served: ServedKind) -> Object:
    """The object in the body of a create or an update."""
    return read_as(call, served.schema(), served.kind, custom=served.custom)


def read_as(call: Call, schema: Schema, kind: Kind, *, custom: bool = False) -> Object:
    """The body, where it is of this kind; one that does not say so is taken for it, unless it is `custom`."""
    content_type = call.headers.get("content-type", "")
    repeated: list[str] = []
    validation = field_validation(call)
    body = decode_body(content_type, call.body, DuplicateKeys(call.warnings, validation, repeated), kind=kind.kind)
    if custom:
        _require_type(kind, body, call.body)
    why = _not_this_kind(call, kind, body)
    if why:
        sent = body.get("kind") or kind.kind
        version = str(body.get("apiVersion") or kind.api_version).rpartition("/")[2]
        raise BadRequest(f"{sent} in version {quoted(version)} cannot be handled as a {kind.kind}: {why}")
    return fit_to(call, schema, kind, body, repeated, custom=custom)


def _require_type(expected: Kind, body: Object, raw: bytes) -> None:
    """An object of a custom kind must say of which kind and version it is."""
    name = body.get("kind")
    if not name:
        text = raw.decode(errors="replace")
        shown = f"{text[:30]} ..." if len(text) > 30 else text
        why = f"Object 'Kind' is missing in '{text}' ({shown})"
        raise BadRequest(f"the object provided is unrecognized (must be of type {expected.kind}): {why}")
    api_version = body.get("apiVersion") or ""
    if api_version != expected.api_version:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({expected.api_version})"
        )
    _require_same_type(expected, body)


def _require_same_type(expected: Kind, body: Object) -> None:
    errors = [
        invalid(field, body.get(field), f"must be {right}")
        for field, right in (("kind", expected.kind), ("apiVersion", expected.api_version))
        if body.get(field) != right
    ]
    if errors:
        meta = body.get("metadata")
        name = meta.get("name", "") if isinstance(meta, dict) else ""
        sent = Kind(expected.group, expected.version, str(body.get("kind")), expected.plural)
        raise invalid_error(sent, str(name), errors)


def _not_this_kind(call: Call, kind: Kind, body: Object) -> str:
    """Why the data is of another kind than the path; an object that says nothing is of the path's."""
    api_version, name = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if api_version == kind.api_version and name == kind.kind:
        return ""
    group, _, version = str(api_version).rpartition("/")
    if call.server.registry.by_kind(group, version, name) is None:
        shown = f"{quoted(str(name))} is registered for version {quoted(str(api_version))}"
        return f'no kind {shown} in scheme "pkg/runtime/scheme.go:111"'
    internal = kind.group.partition(".")[0] or "core"
    return f"converting ({version}.{name}) to ({internal}.{kind.kind}): unknown conversion"


def fit_to(
    call: Call, schema: Schema, kind: Kind, obj: Object, repeated: Sequence[str] = (), *, custom: bool = False
) -> Object:
    """Puts `obj` in the normal form of its schema, dropping fields that it does not have, loudly or quietly.

    `repeated`: what the reader of the body has to say already of fields that are there twice.
    """
    decoded = _decode(schema, obj)
    why = decoded.problem.message if decoded.problem is not None else _unknown(call, decoded.unknown, repeated, custom)
    if why:
        raise BadRequest(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')
    return _labelled(kind, obj)


def fit_patched(call: Call, schema: Schema, kind: Kind, obj: Object, *, custom: bool = False) -> Object:
    """As `fit_to`, for what a patch has made of an object: then it is the patch that is invalid."""
    why = ""
    if custom:
        _require_same_type(kind, obj)
    else:
        why = _not_this_kind(call, kind, obj)
    if not why:
        decoded = _decode(schema, obj)
        why = decoded.problem.message if decoded.problem is not None else _unknown(call, decoded.unknown)
    if why:
        error = invalid("patch", orjson.dumps(obj).decode(), why)
        raise Invalid(f' "" is invalid: {error.message()}', {"causes": [error.cause()]})
    return _labelled(kind, obj)


def _decode(schema: Schema, obj: Object) -> Decoded:
    """Decoding leaves out empty lists; but an empty managedFields is a wish: forget who owns what."""
    meta = obj.get("metadata")
    reset = isinstance(meta, dict) and meta.get("managedFields") == []
    decoded = schema.decode(obj)
    if reset and isinstance(meta, dict):
        meta["managedFields"] = []
    return decoded


def _unknown(call: Call, paths: list[str], repeated: Sequence[str] = (), custom: bool = False) -> str:
    """Fields that were dropped: the error where the client asked to be strict, else a warning or nothing."""
    if not paths and not repeated:
        return ""
    mode = field_validation(call)
    texts = [f'unknown field "{path}"' for path in paths]
    texts = [*repeated, *texts] if custom else [*texts, *repeated]  # custom kinds are read first and pruned afterwards
    if mode == "Strict":
        return "strict decoding error: " + ", ".join(texts)
    if mode == "Warn":
        call.warnings.extend(texts)
    return ""


def _labelled(kind: Kind, obj: Object) -> Object:
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return obj


# -- server-side apply


def read_applied(call: Call) -> Object:
    """The object in the body of a server-side apply."""
    plain = plain_json(call.body) if call.body.startswith(b"{") else None
    if plain is not None:
        read: Object = plain
        return read
    from danlu.meta import yamlreader

    try:
        body, repeated = yamlreader.load(call.body)
    except yamlreader.YamlError as error:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if body is not None and not isinstance(body, dict):
        name = {bool: "bool", str: "string", list: "array"}.get(type(body), "number")
        raise BadRequest(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
        )
    if repeated and field_validation(call) == "Strict":
        raise BadRequest(f"error strict decoding YAML: {', '.join(repeated)}")
    if repeated and field_validation(call) == "Warn":
        call.warnings.extend(repeated)
    return body or {}


def fit_applied(call: Call, served: ServedKind, obj: Object) -> Object:
    """As `fit_to`; but who applies a field that is not there would believe to own it, so that is always an error."""
    kind = served.kind
    decoded = _decode(served.schema(), obj)
    if decoded.problem is not None:
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {decoded.problem.message}'
        )
    if decoded.unknown:
        level = min(map(_depth, decoded.unknown))  # Kubernetes looks no deeper than the first that is wrong
        paths = [path for path in decoded.unknown if _depth(path) == level]
        texts = [f"{_keyed(path, obj, served)}: field not declared in schema" for path in paths]
        text = texts[0] if len(texts) == 1 else "\n  ".join(["errors:", *texts])
        where = f"{objects.namespace(obj)}/{objects.name(obj)}; {kind.group}/{kind.version}, Kind={kind.kind}"
        raise BadRequest(f"failed to create typed patch object ({where}): {text}")
    return _labelled(kind, obj)


_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")


def _depth(path: str) -> int:
    return len(_STEP.findall(path))


def _keyed(path: str, obj: Object, served: ServedKind) -> str:
    """`spec.containers[0].x` as server-side apply writes it: `.spec.containers[name="c"].x`."""
    shown = ""
    value: Any = obj
    node: Node | None = served.schema().root
    for found in _STEP.finditer(path):
        index, name = found.groups()
        if index is None:
            shown += f".{name}"
            value = value.get(name) if isinstance(value, dict) else None
            node = typed.child_of(node, name)
            continue
        keys = typed.keyed_by(node) if node is not None else None
        value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        node = node.items if node is not None else None
        try:
            shown += fieldsets.step_text(typed.item_step(value, keys, node)) if keys is not None else f"[{index}]"
        except typed.Irregular:
            shown += f"[{index}]"
    return shown
