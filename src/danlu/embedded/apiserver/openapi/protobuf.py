"""The OpenAPI v2 document as protobuf: the only form in which client-go asks for it.

The messages are gnostic's OpenAPIv2; only what our document holds is written. Values of vendor extensions travel as
YAML text, and JSON is YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

_TEXT, _FLAG, _NUMBER, _INTEGER = "text", "flag", "number", "integer"

# JSON name -> (field number, form), of the plain fields of each message.
_SCHEMA = {
    "$ref": (1, _TEXT), "format": (2, _TEXT), "title": (3, _TEXT), "description": (4, _TEXT),
    "multipleOf": (6, _NUMBER), "maximum": (7, _NUMBER), "exclusiveMaximum": (8, _FLAG), "minimum": (9, _NUMBER),
    "exclusiveMinimum": (10, _FLAG), "maxLength": (11, _INTEGER), "minLength": (12, _INTEGER), "pattern": (13, _TEXT),
    "maxItems": (14, _INTEGER), "minItems": (15, _INTEGER), "uniqueItems": (16, _FLAG), "maxProperties": (17, _INTEGER),
    "minProperties": (18, _INTEGER), "discriminator": (26, _TEXT), "readOnly": (27, _FLAG),
}  # fmt: skip
_QUERY = {
    "required": (1, _FLAG), "in": (2, _TEXT), "description": (3, _TEXT), "name": (4, _TEXT), "type": (6, _TEXT),
    "format": (7, _TEXT), "uniqueItems": (20, _FLAG),
}  # fmt: skip
_PATH = {**_QUERY, "type": (5, _TEXT), "format": (6, _TEXT), "uniqueItems": (19, _FLAG)}
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _texts(field: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(field, value) for value in values)


def _plain(source: Mapping[str, Any], fields: Mapping[str, tuple[int, str]]) -> bytes:
    out = []
    for name, (field, form) in fields.items():
        value = source.get(name)
        if not value or isinstance(value, list | dict):
            continue
        if form == _TEXT:
            out.append(_text(field, value))
        elif form == _NUMBER:
            out.append(_varint(field << 3 | 1) + struct.pack("<d", value))
        else:
            out.append(_varint(field << 3) + _varint(int(value)))
    return b"".join(out)


def _any(value: Any) -> bytes:
    return _text(2, orjson.dumps(value).decode() + "\n")


def _extensions(field: int, source: Mapping[str, Any]) -> bytes:
    named = [(name, value) for name, value in source.items() if name.startswith("x-")]
    return b"".join(_bytes(field, _text(1, name) + _bytes(2, _any(value))) for name, value in named)


def _schema(source: Mapping[str, Any]) -> bytes:
    out = [_plain(source, _SCHEMA), _texts(19, source.get("required", ()))]
    if "default" in source:
        out.append(_bytes(5, _any(source["default"])))
    out += [_bytes(20, _any(value)) for value in source.get("enum", ())]
    additional = source.get("additionalProperties")
    if isinstance(additional, bool):
        out.append(_bytes(21, _varint(2 << 3) + _varint(int(additional))))
    elif additional is not None:
        out.append(_bytes(21, _bytes(1, _schema(additional))))
    if source.get("type"):
        out.append(_bytes(22, _text(1, source["type"])))
    if isinstance(source.get("items"), dict):
        out.append(_bytes(23, _bytes(1, _schema(source["items"]))))
    properties = source.get("properties")
    if properties:
        out.append(_bytes(25, b"".join(_bytes(1, _named_schema(*item)) for item in properties.items())))
    out.append(_extensions(31, source))
    return b"".join(out)


def _named_schema(name: str, source: Mapping[str, Any]) -> bytes:
    return _text(1, name) + _bytes(2, _schema(source))


def _parameter(source: Mapping[str, Any]) -> bytes:
    if source["in"] == "body":
        body = _text(2, source["name"]) + _text(3, "body") + _bytes(5, _schema(source["schema"]))
        if source.get("required"):
            body += _varint(4 << 3) + _varint(1)
        return _bytes(1, _bytes(1, body))
    if source["in"] == "path":
        return _bytes(1, _bytes(2, _bytes(4, _plain(source, _PATH))))
    return _bytes(1, _bytes(2, _bytes(3, _plain(source, _QUERY))))


def _response(source: Mapping[str, Any]) -> bytes:
    body = _text(1, source["description"])
    if "schema" in source:
        body += _bytes(2, _bytes(1, _schema(source["schema"])))
    return _bytes(1, body)


def _operation(source: Mapping[str, Any]) -> bytes:
    responses = b"".join(
        _bytes(1, _text(1, code) + _bytes(2, _response(value))) for code, value in source["responses"].items()
    )
    return b"".join(
        [
            _texts(1, source["tags"]),
            _text(3, source["description"]),
            _text(5, source["operationId"]),
            _texts(6, source["produces"]),
            _texts(7, source["consumes"]),
            *(_bytes(8, _parameter(parameter)) for parameter in source["parameters"]),
            _bytes(9, responses),
            _texts(10, source["schemes"]),
            _extensions(13, source),
        ]
    )


def _path_item(source: Mapping[str, Any]) -> bytes:
    out = [_bytes(field, _operation(source[method])) for method, field in _METHODS.items() if method in source]
    out += [_bytes(9, _parameter(parameter)) for parameter in source.get("parameters", ())]
    return b"".join(out)


def encode_v2(document: Mapping[str, Any]) -> bytes:
    paths = b"".join(
        _bytes(2, _text(1, path) + _bytes(2, _path_item(item))) for path, item in document["paths"].items()
    )
    schemas = b"".join(_bytes(1, _named_schema(*item)) for item in document["definitions"].items())
    return b"".join(
        [
            _text(1, document["swagger"]),
            _bytes(2, _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])),
            _bytes(8, paths),
            _bytes(9, schemas),
        ]
    )
