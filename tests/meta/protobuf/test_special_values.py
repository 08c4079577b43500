"""Places of a message that are not what they look like: one thing or another, embedded JSON, times long past."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from danlu.meta import protobuf


def part(number: int, data: bytes) -> bytes:
    return bytes([*_varint(number << 3 | 2), *_varint(len(data))]) + data


def number(field: int, value: int) -> bytes:
    return bytes([*_varint(field << 3), *_varint(value)])


def _varint(value: int) -> list[int]:
    found = []
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return [*found, value]


def read(data: bytes, name: str = "apiextensions.JSONSchemaProps") -> Any:
    return protobuf._message(data, name, 0)


TEXT = part(5, b"string")


@pytest.mark.parametrize(
    ("data", "meant"),
    [
        (part(24, part(1, TEXT)), {"items": {"type": "string"}}),
        (part(24, part(2, TEXT) + part(2, TEXT)), {"items": [{"type": "string"}, {"type": "string"}]}),
        (part(30, number(1, 1)), {"additionalProperties": True}),
        (part(30, number(1, 0)), {"additionalProperties": False}),
        (part(30, number(1, 1) + part(2, TEXT)), {"additionalProperties": {"type": "string"}}),
        (part(32, part(1, b"a") + part(2, part(2, b"b"))), {"dependencies": {"a": ["b"]}}),
        (part(8, part(1, b'{"a": [1]}')), {"default": {"a": [1]}}),
        (part(20, part(1, b'"x"')) + part(20, part(1, b"null")), {"enum": ["x", None]}),
        (bytes([9 << 3 | 1]) + struct.pack("<d", 5.0), {"maximum": 5}),
        (bytes([9 << 3 | 1]) + struct.pack("<d", 0.5), {"maximum": 0.5}),
        (part(44, part(1, b"self > 0")), {"x-kubernetes-validations": [{"rule": "self > 0"}]}),
    ],
)
def test_schemas_of_custom_kinds(data: bytes, meant: Any) -> None:
    assert read(data) == meant


def test_the_years_before_1000_have_four_digits_too() -> None:
    """As a Lease has them that was made with Go's zero time and a little."""
    seconds = -62135596798  # 0001-01-01T00:00:02Z
    found = read(part(4, number(1, seconds + (1 << 64))), "coordination.LeaseSpec")
    assert found == {"renewTime": "0001-01-01T00:00:02.000000Z"}
