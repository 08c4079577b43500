"""Reading and writing plain objects by dotted path, and the few names every object has."""

from __future__ import annotations

from typing import Any

import orjson

from danlu.meta.kind import Object


def get(obj: Any, path: str, default: Any = None) -> Any:
    """The value at `a.b.c`; `default` where a step is missing, null, or not a map."""
    for step in path.split("."):
        if not isinstance(obj, dict):
            return default
        obj = obj.get(step)
        if obj is None:
            return default
    return obj


def put(obj: Object, path: str, value: Any) -> None:
    """Set `a.b.c`, making the maps on the way."""
    *way, last = path.split(".")
    for step in way:
        below = obj.get(step)
        if not isinstance(below, dict):
            below = obj[step] = {}
        obj = below
    obj[last] = value


def remove(obj: Object, path: str) -> bool:
    """Drop `a.b.c`; whether it was there."""
    *way, last = path.split(".")
    for step in way:
        below = obj.get(step)
        if not isinstance(below, dict):
            return False
        obj = below
    return obj.pop(last, _MISSING) is not _MISSING


_MISSING = object()


def copy(value: Any) -> Any:
    """A deep copy of JSON data: by way of its text, which is ten times quicker than any walk in Python."""
    if type(value) not in _CONTAINERS:
        return value
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError:  # an integer of more than 64 bits, half a character: data that JSON has and orjson refuses
        return _copy_slowly(value)


def _copy_slowly(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copy_slowly(item) for key, item in value.items()}
    if type(value) is list:
        return [_copy_slowly(item) for item in value]
    return value


_CONTAINERS = (dict, list)


def metadata(obj: Object) -> Object:
    found = obj.get("metadata")
    if not isinstance(found, dict):
        found = obj["metadata"] = {}
    return found


def name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def namespace(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or "")


def uid(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")


def labels_of(obj: Object) -> dict[str, str]:
    """Not to be changed: an object without labels answers a map of nobody."""
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    """Not to be changed, as `labels_of`."""
    return (obj.get("metadata") or {}).get("annotations") or {}


def key(obj: Object) -> tuple[str, str]:
    return namespace(obj), name(obj)


def is_deleting(obj: Object) -> bool:
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def with_applied_fields_only(obj: Object) -> Object:
    """Without the managedFields that tell of more than applies: half an object, and only `outcomewriter` reads it."""
    meta = obj["metadata"]
    managed = meta.get("managedFields")
    if not managed:
        return obj
    applied = [entry for entry in managed if entry.get("operation") == "Apply"]
    if len(applied) == len(managed):
        return obj
    slim = {name: value for name, value in meta.items() if name != "managedFields"}
    if applied:  # never an empty list: sent back to a server it would mean that nobody owns anything
        slim["managedFields"] = applied
    return {**obj, "metadata": slim}
