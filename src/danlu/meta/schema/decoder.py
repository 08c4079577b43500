"""One walk over an object of a native kind: types checked, unknown fields reported and dropped, values in normal form.

It does what Go's decoder and encoder do together: null is absence; an empty list or map of an optional field is not
written; times and quantities are written in one way. The first value of a wrong type ends the walk, as Go reports the
first one only. Runs on every write, so the common case (right types) costs one dict look-up and one comparison a field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from danlu.meta.schema import leaves
from danlu.meta.schema.gonames import taken_in
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

MOST_REPORTED = 100  # unknown fields; Go's decoder stops counting there
_DROP = object()

Where = tuple[Any, Any] | None  # (the place of the parent, key or index)


class TypeProblem(NamedTuple):
    path: str  # spec.containers[0].ports
    message: str  # as Go words it


class Decoded(NamedTuple):
    unknown: list[str]  # paths, in document order
    problem: TypeProblem | None


class _MapKey(str):
    """A key of a map: part of the path, but no field name to Go's decoder."""

    __slots__ = ()


class _Wrong(Exception):
    """`place` is given where the message has a gap for Go's path to it."""

    def __init__(self, path: str, message: str, place: Where = None) -> None:
        self.path, self.message, self.place = path, message, place


def decode(obj: dict[str, Any], root: Node) -> Decoded:
    """Prunes and normalises `obj` in place."""
    unknown: list[str] = []
    try:
        _struct(obj, root, None, unknown)
    except _Wrong as wrong:
        message = wrong.message if wrong.place is None else wrong.message.replace("%s", _go_path(wrong.place, root), 1)
        return Decoded(unknown, TypeProblem(wrong.path, message))
    except RecursionError:
        return Decoded(unknown, TypeProblem("", "exceeded max depth"))
    return Decoded(unknown, None)


def spell(where: Where, key: Any = None) -> str:
    """`spec.containers[0].name` from the linked places."""
    parts: list[str] = []
    if key is not None:
        where = (where, key)
    while where is not None:
        where, step = where
        parts.append(f"[{step}]" if step.__class__ is int else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")


def _struct(obj: dict[str, Any], node: Node, where: Where, unknown: list[str]) -> None:
    fields = node.fields
    changed: list[tuple[str, Any]] | None = None
    for key, value in obj.items():
        child = fields.get(key)
        if child is None:
            if node.preserve_unknown:
                continue
            if len(unknown) < MOST_REPORTED:
                unknown.append(spell(where, key))
            result: Any = _DROP
        else:
            code = child.code
            if code is STRING and value.__class__ is str:
                continue
            if value is None:
                result = _DROP
            elif code is STRUCT and value.__class__ is dict:
                if value:
                    _struct(value, child, (where, key), unknown)
                continue
            else:
                result = _value(value, child, where, key, node, unknown)
                if result is value:
                    if (code is LIST or code is MAP) and not value and key not in node.required:
                        result = _DROP
                    else:
                        continue
        if changed is None:
            changed = []
        changed.append((key, result))
    if changed:
        for key, result in changed:
            if result is _DROP:
                del obj[key]
            else:
                obj[key] = result


def _value(value: Any, node: Node, where: Where, key: Any, owner: Node, unknown: list[str]) -> Any:
    """The value in normal form: the same object where nothing changed."""
    code = node.code
    kind = value.__class__
    if code is STRING:
        if kind is str:
            return value
    elif code is LIST:
        if kind is list:
            _list(value, node.items or _FREE, (where, key), owner, unknown)
            return value
    elif code is MAP:
        if kind is dict:
            _map(value, node.values or _FREE, (where, key), owner, unknown)
            return value
    elif code is STRUCT:
        if kind is dict:
            _struct(value, node, (where, key), unknown)
            return value
    elif code is BOOL:
        if kind is bool:
            return value
    elif code is INT32 or code is INT64:
        if kind is int and _fits(value, code):
            return value
    elif code is ANY:
        return value
    else:
        return _special(value, node, where, key, owner)
    raise _wrong(value, node, where, key, owner)


def _list(values: list[Any], node: Node, where: Where, owner: Node, unknown: list[str]) -> None:
    code = node.code
    for index, value in enumerate(values):
        if code is STRING and value.__class__ is str:
            continue
        if value is None:
            values[index] = _zero(code)
        elif code is STRUCT and value.__class__ is dict:
            _struct(value, node, (where, index), unknown)
        else:
            values[index] = _value(value, node, where, index, owner, unknown)


def _map(values: dict[str, Any], node: Node, where: Where, owner: Node, unknown: list[str]) -> None:
    code = node.code
    changed: list[tuple[str, Any]] = []
    for key, value in values.items():
        if code is STRING and value.__class__ is str:
            continue
        result = _zero(code) if value is None else _value(value, node, where, _MapKey(key), owner, unknown)
        if result is not value:
            changed.append((key, result))
    values.update(changed)


def _zero(code: int) -> Any:
    if code in (STRING, BYTES):
        return ""
    if code in (INT32, INT64, NUMBER, INT_OR_STRING):
        return 0
    return {STRUCT: {}, MAP: {}, BOOL: False, QUANTITY: "0"}.get(code)


def _fits(value: int, code: int) -> bool:
    if code is INT32:
        return -0x80000000 <= value <= 0x7FFFFFFF
    return -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF


def _special(value: Any, node: Node, where: Where, key: Any, owner: Node) -> Any:
    code, kind = node.code, value.__class__
    try:
        if code is QUANTITY:
            return _quantity(value)
        if code is TIME and kind is str:
            return leaves.time(value)
        if code is MICRO_TIME and kind is str:
            return leaves.micro_time(value)
        if code is BYTES and kind is str:
            leaves.check_base64(value)
            return value
    except ValueError as reason:
        raise _Wrong(spell(where, key), str(reason)) from None
    if code is INT_OR_STRING and (kind is str or (kind is int and _fits(value, INT32))):
        return value
    if code is NUMBER and (kind is int or kind is float):
        return value
    if code is LOOSE:
        return _schema_or_more(value, node, where, key)
    raise _wrong(value, node, where, key, owner)


def _schema_or_more(value: Any, node: Node, where: Where, key: Any) -> Any:
    """A JSON schema, or a boolean or list in its place. Go drops what it does not know there without a word."""
    if value.__class__ is dict:
        _struct(value, node, (where, key), [])
        return value
    if node.go_type == "bool":
        if value.__class__ is bool:
            return value
        raise _Wrong(spell(where, key), "boolean or JSON schema expected")
    schemas = value if value.__class__ is list else []
    for index, schema in enumerate(schemas):
        if schema.__class__ is not dict:
            raise _wrong(schema, node, where, key, node)
        _struct(schema, node, ((where, key), index), [])
    return schemas


def _quantity(value: Any) -> str:
    from danlu.meta import quantity

    if value.__class__ is str:
        return str(quantity.parse(value))
    if value.__class__ is int or value.__class__ is float:
        return str(quantity.parse(repr(value)))
    shown = {True: "true", False: "false"}.get(value) if value.__class__ is bool else "{"
    return str(quantity.parse(shown or "{"))


def _wrong(value: Any, node: Node, where: Where, key: Any, owner: Node) -> _Wrong:
    kind = value.__class__
    if kind is bool:
        shown = "bool"
    elif kind is int or kind is float:
        numeric = node.code in (INT32, INT64, INT_OR_STRING)
        shown = f"number {value!r}" if numeric else "number"
    else:
        shown = {str: "string", list: "array", dict: "object"}.get(kind, "null")
    text = f"json: cannot unmarshal {shown} into Go struct field {owner.go_struct}.%s of type {node.go_type}"
    return _Wrong(spell(where, key), text, (where, key))


def _go_path(place: Where, root: Node) -> str:
    """The fields on the way to a place as Go's decoder counts them: no indexes, no map keys, embedded structs named."""
    steps: list[Any] = []
    while place is not None:
        place, step = place
        steps.append(step)
    names: list[str] = []
    node: Node | None = root
    for step in reversed(steps):
        if step.__class__ is not str:
            node = node and (node.items if step.__class__ is int else node.values)
            continue
        embedded = taken_in(node.go_struct, step) if node is not None else None
        names += [embedded, step] if embedded else [step]
        node = node and node.fields.get(step)
    return ".".join(names)


_FREE = Node()
