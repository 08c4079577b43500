"""Kubernetes' protobuf form of the built-in kinds, read into plain objects.

kubectl sends it for kinds it knows by heart (`kubectl create secret …`); answers stay JSON, which every client that
sends protobuf accepts as well. Field numbers lie in messages.json, made by scripts/generate-protobuf.

Protobuf writes a Go struct field that is not a pointer even when it is zero, where JSON would leave it out; so zero
values are dropped unless the field is a pointer, for which being there means something (`replicas: 0`).
"""

from __future__ import annotations

import base64
import functools
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from danlu.meta.kind import Object
from danlu.meta.nesting import TOO_DEEP, is_too_deep, parse_json

MAGIC = b"k8s\0"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_DEPTH = 64  # of messages in messages; a message is up to two levels of data
MOST_FIELDS = 100_000  # of one message: an empty item takes two bytes on the wire and a hundred in memory

GROUPS = {
    "": "core", "rbac.authorization.k8s.io": "rbac", "storage.k8s.io": "storage", "scheduling.k8s.io": "scheduling",
    "coordination.k8s.io": "coordination", "discovery.k8s.io": "discovery", "events.k8s.io": "events",
    "authentication.k8s.io": "authentication", "authorization.k8s.io": "authorization",
    "certificates.k8s.io": "certificates", "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "admissionregistration.k8s.io": "admissionregistration", "apiextensions.k8s.io": "apiextensions",
    "networking.k8s.io": "networking", "node.k8s.io": "node",
}  # fmt: skip
LATER_VERSIONS = {"autoscaling/v2": "autoscalingv2"}  # of groups that have several with other fields


class ProtobufError(ValueError):
    """The bytes are not a message of that kind; the text says where they end to make sense."""


@functools.cache
def _messages() -> dict[str, dict[str, list[str]]]:
    table: dict[str, dict[str, list[str]]] = orjson.loads((Path(__file__).parent / "messages.json").read_bytes())
    return table


def decode(data: bytes) -> Object | None:
    """The object in an enveloped message; None when its kind is not one that we have the fields of."""
    if not data.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix 'k8s'")
    api_version = kind = ""
    raw = b""
    for number, wire, value in _fields(data[4:]):
        if number == 1 and wire == BYTES:
            for inner, _, text in _fields(value):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2 and wire == BYTES:
            raw = value
    name = message_name(api_version, kind)
    if name not in _messages():
        return None
    found = {"apiVersion": api_version, "kind": kind, **_message(raw, name, 0)}
    if is_too_deep(found):  # JSON lies in some messages, which brings a depth of its own
        raise ProtobufError(TOO_DEEP)
    return found


def message_name(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        return "meta.DeleteOptions"
    group = api_version.rpartition("/")[0]
    return f"{LATER_VERSIONS.get(api_version) or GROUPS.get(group, group)}.{kind}"


def _fields(data: bytes) -> list[tuple[int, int, Any]]:
    """(number, wire type, value) in order. Values of length-delimited fields are bytes."""
    found: list[tuple[int, int, Any]] = []
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == VARINT:
            value, position = _varint(data, position)
        elif wire == BYTES:
            length, position = _varint(data, position)
            value = data[position : position + length]
            if len(value) != length:
                raise ProtobufError("unexpected EOF")
            position += length
        elif wire in (FIXED64, FIXED32):
            width = 8 if wire == FIXED64 else 4
            value = data[position : position + width]
            if len(value) != width:
                raise ProtobufError("unexpected EOF")
            position += width
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        found.append((number, wire, value))
        if len(found) > MOST_FIELDS:
            raise ProtobufError(f"a message has more than {MOST_FIELDS} fields")
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift >= 70:
            raise ProtobufError("proto: integer overflow")


def _message(data: bytes, name: str, depth: int) -> Object:
    if depth > MAX_DEPTH:
        raise ProtobufError(TOO_DEEP)
    fields = _messages()[name]
    obj: Object = {}
    for number, _, value in _fields(data):
        known = fields.get(str(number))
        if known is None:
            continue
        json_name, code = known
        pointer = code.startswith("*")
        code = code.lstrip("*")
        if code.startswith("[]"):
            obj.setdefault(json_name, []).append(_value(value, code[2:], depth))
        elif code.startswith("{}"):
            key, item = _entry(value, code[2:], depth)
            obj.setdefault(json_name, {})[key] = item
        else:
            decoded = _value(value, code, depth)
            if not json_name:
                obj.update(decoded)
            elif pointer or decoded not in ("", 0, False, None, {}):
                obj[json_name] = decoded
    return obj


def _entry(data: bytes, code: str, depth: int) -> tuple[str, Any]:
    key, item = "", _zero(code)
    for number, _, value in _fields(data):
        if number == 1:
            key = _text(value)
        elif number == 2:
            item = _value(value, code, depth)
    return key, item


def _zero(code: str) -> Any:
    return {"string": "", "bytes": "", "int": 0, "bool": False, "bool_or_schema": False}.get(
        code, [] if code.startswith("items:") else {}
    )


def _value(value: Any, code: str, depth: int) -> Any:
    reader = LEAVES.get(code)
    if reader is not None:
        try:
            return reader(value)
        except (TypeError, AttributeError, struct.error) as error:
            raise ProtobufError(f"proto: wrong wireType for a {code}") from error
    if not isinstance(value, bytes):
        raise ProtobufError(f"proto: wrong wireType for a {code}")
    if code in ("bool_or_schema", "schema_or_list", "schema_or_names"):
        return _either(value, code, depth)
    if code.startswith("items:"):
        return [_value(item, code.removeprefix("items:[]"), depth) for number, _, item in _fields(value) if number == 1]
    return _message(value, code, depth + 1)


SCHEMA = "apiextensions.JSONSchemaProps"


def _either(value: bytes, code: str, depth: int) -> Any:
    """Places in a CustomResourceDefinition's schema that hold one of two things; JSON has whichever it is."""
    parts = _fields(value)
    if code == "bool_or_schema":
        schemas = [item for number, _, item in parts if number == 2]
        return _value(schemas[0], SCHEMA, depth) if schemas else any(item for number, _, item in parts if number == 1)
    for number, _, item in parts:
        if number == 1:
            return _value(item, SCHEMA, depth)
    return [_value(item, SCHEMA if code == "schema_or_list" else "string", depth) for _, _, item in parts]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ProtobufError("a string is not valid UTF-8") from None


def _integer(value: int) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value - (1 << 64) if value >= 1 << 63 else value


def _double(value: bytes) -> float | int:
    number: float = struct.unpack("<d", value)[0]
    return int(number) if number.is_integer() else number  # as Go writes it in JSON


def _numbers(value: bytes) -> dict[int, Any]:
    return {number: item for number, _, item in _fields(value)}


def _time(value: bytes, micro: bool = False) -> str | None:
    parts = _numbers(value)
    if not parts:
        return None  # Go's zero time, which JSON writes as null
    try:
        moment = EPOCH + timedelta(
            seconds=_integer(parts.get(1, 0)), microseconds=_integer(parts.get(2, 0)) // 1000 if micro else 0
        )
    except OverflowError:
        raise ProtobufError("a time is out of range") from None
    # Not %Y, which does not fill up the years before 1000.
    return f"{moment.year:04}-" + moment.strftime("%m-%dT%H:%M:%S.%fZ" if micro else "%m-%dT%H:%M:%SZ")


def _quantity(value: bytes) -> str:
    return _text(_numbers(value).get(1, b""))


def _int_or_string(value: bytes) -> int | str:
    parts = _numbers(value)
    return _text(parts.get(3, b"")) if parts.get(1) else _integer(parts.get(2, 0))


def _raw(value: bytes) -> Any:
    try:
        return parse_json(_numbers(value).get(1, b"null"))
    except (ValueError, TypeError):
        raise ProtobufError("an embedded object is not JSON") from None


LEAVES: dict[str, Any] = {
    "string": _text,
    "bytes": lambda value: base64.b64encode(value).decode(),
    "int": _integer,
    "bool": lambda value: bool(_integer(value)),
    "double": _double,
    "time": _time,
    "microtime": lambda value: _time(value, micro=True),
    "duration": lambda value: f"{_integer(_numbers(value).get(1, 0))}ns",
    "quantity": _quantity,
    "intstr": _int_or_string,
    "raw": _raw,
}
