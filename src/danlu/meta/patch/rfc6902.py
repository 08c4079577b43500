"""JSON patch, as strict and as lenient as the API server's own library.

Lenient: `replace` makes a key that a map does not have; negative indexes count from the end.
Strict: a `test` compares types too (1 is not 1.0 and not true), `add` never makes the maps on the way.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from danlu.errors import BadRequest, Invalid, RequestTooLarge
from danlu.meta.kind import Object
from danlu.meta.nesting import TOO_DEEP, is_too_deep
from danlu.meta.objects import copy

MOST_OPERATIONS = 10_000
# Bytes by which all `copy` operations of a patch together may grow the object: each can double it. As Kubernetes.
MOST_COPIED = 3 * 1024 * 1024
REJECTED = "the server rejected our request due to an error in our request"

_INDEX = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class _Refused(Exception):
    pass


def json_patch(obj: Object, ops: Any) -> Object:
    """Raises BadRequest for what is no patch, Invalid for one that does not apply."""
    if not isinstance(ops, list):
        raise _undecodable(ops, "[]handlers.jsonPatchOp")
    for op in ops:
        if not isinstance(op, dict):
            raise _undecodable(op, "handlers.jsonPatchOp")
    if len(ops) > MOST_OPERATIONS:
        raise RequestTooLarge(f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(ops)}")
    document = copy(obj)
    copies = _Copies()
    try:
        for op in ops:
            document = _applied(document, op, copies)
        if is_too_deep(document):  # each value was not, but they were put into each other
            raise _Refused(TOO_DEEP)
    except _Refused as refused:
        raise Invalid(f"{REJECTED}: {refused}", {}) from None
    if not isinstance(document, dict):
        raise Invalid(f"{REJECTED}: the patched document is not an object")
    return document


class _Copies:
    """What the `copy` operations of one patch have added so far."""

    def __init__(self) -> None:
        self.size = 0

    def of(self, value: Any) -> Any:
        if type(value) not in (dict, list):
            self._count(len(value) if isinstance(value, str) else 8)
            return value
        if is_too_deep(value):
            raise _Refused(TOO_DEEP)
        try:
            encoded = orjson.dumps(value)
        except orjson.JSONEncodeError as error:
            raise _Refused(f"json: {error}") from None
        self._count(len(encoded))
        return orjson.loads(encoded)

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > MOST_COPIED:
            raise _Refused(
                f"Unable to complete the copy, the accumulated size increase of copy is {self.size}, "
                f"exceeding the limit {MOST_COPIED}"
            )


def _undecodable(value: Any, wanted: str) -> BadRequest:
    if isinstance(value, bool):
        kind = "bool"
    else:
        kind = {dict: "object", list: "array", str: "string", type(None): "null"}.get(type(value), "number")
    return BadRequest(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type {wanted}")


def _applied(document: Any, op: Object, copies: _Copies) -> Any:
    kind = op.get("op")
    if kind not in ("add", "remove", "replace", "move", "test", "copy"):
        raise _Refused(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
    path = _text(op, "path", kind)
    if path == "" and kind == "replace":
        if not isinstance(op.get("value"), dict | list):
            raise _Refused("replace operation value must be object or array")
        return copy(op["value"])
    if path == "" and kind == "test":
        if not _same(document, op.get("value")):
            raise _Refused(f"testing value {path} failed: test failed")
        return document
    if kind in ("move", "copy"):
        _move(document, _text(op, "from", kind), path, kind, copies)
        return document
    where = _find(document, path)
    if where is None:
        shown = path if kind in ("replace", "test") else f'"{path}"'
        missing = "is missing path" if kind == "test" else "doc is missing path"
        raise _Refused(f"{kind} operation does not apply: {missing}: {shown}: missing value")
    parent, key = where
    if kind == "add":
        _add(parent, key, copy(op.get("value")), path, "add")
    elif kind == "remove":
        _remove(parent, key, f"error in remove for path: '{path}'")
    elif kind == "replace":
        _replace(parent, key, copy(op.get("value")), path)
    else:
        _test(parent, key, op.get("value"), path)
    return document


def _text(op: Object, name: str, kind: str) -> str:
    found = op.get(name)
    if not isinstance(found, str):
        raise _Refused(f"{kind} operation failed to decode {name}: missing value")
    return found


def _find(document: Any, path: str) -> tuple[Any, str] | None:
    """The container that holds the last step, and that step; None where the way does not exist."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    if len(steps) < 2:
        return None
    here = document
    for step in steps[1:-1]:
        if isinstance(here, dict):
            here = here.get(step)
        else:
            index = _position(here, step, len(here))
            here = here[index] if index is not None else None
        if not isinstance(here, dict | list):
            return None
    return here, steps[-1]


def _position(items: list[Any], step: str, size: int) -> int | None:
    if not _INDEX.fullmatch(step):
        return None
    index = int(step)
    if index < 0:
        index += size
    return index if 0 <= index < size else None


def _at(items: list[Any], step: str, size: int, problem: str) -> int:
    index = _position(items, step, size)
    if index is None and _INDEX.fullmatch(step):
        raise _Refused(f"{problem}: Unable to access invalid index: {int(step)}: invalid index referenced")
    if index is None:
        raise _Refused(f"{problem}: value was not a proper array index: '{step}'")
    return index


def _add(parent: Any, key: str, value: Any, path: str, kind: str) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_at(parent, key, len(parent) + 1, f"error in {kind} for path: '{path}'"), value)


def _remove(parent: Any, key: str, problem: str) -> Any:
    if isinstance(parent, list):
        return parent.pop(_at(parent, key, len(parent), problem))
    if key not in parent:
        raise _Refused(f"{problem}: Unable to remove nonexistent key: {key}: missing value")
    return parent.pop(key)


def _replace(parent: Any, key: str, value: Any, path: str) -> None:
    if isinstance(parent, dict):
        parent[key] = value
        return
    index = _position(parent, key, len(parent))
    if index is None:
        raise _Refused(f"replace operation does not apply: doc is missing key: {path}: missing value")
    parent[index] = value


def _test(parent: Any, key: str, value: Any, path: str) -> None:
    if isinstance(parent, dict):
        found = parent.get(key)
    else:
        found = parent[_at(parent, key, len(parent), f"error in test for path: '{path}'")]
    if not _same(found, value):
        raise _Refused(f"testing value {path} failed: test failed")


def _move(document: Any, source: str, path: str, kind: str, copies: _Copies) -> None:
    where = _find(document, source)
    if where is None:
        raise _Refused(f"{kind} operation does not apply: doc is missing from path: {source}: missing value")
    parent, key = where
    if kind == "move":
        value = _remove(parent, key, f"error in move for path: '{key}'")
    elif isinstance(parent, dict):
        value = copies.of(parent.get(key))
    else:
        value = copies.of(parent[_at(parent, key, len(parent), f"error in copy for from: '{source}'")])
    where = _find(document, path)
    if where is None:
        raise _Refused(f"{kind} operation does not apply: doc is missing destination path: {path}: missing value")
    _add(*where, value, path, kind)


def _same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
