"""JSON merge patch: maps merge, null deletes, all else replaces."""

from __future__ import annotations

from typing import Any

from danlu.errors import BadRequest
from danlu.meta.kind import Object
from danlu.meta.objects import copy


def merge_patch(obj: Object, patch: Any) -> Object:
    if not isinstance(patch, dict):
        raise BadRequest("Invalid JSON Patch")
    return _merged(obj, patch)


def _merged(value: Any, patch: Object) -> Object:
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        elif isinstance(change, dict):
            result[key] = _merged(result.get(key), change)
        else:
            result[key] = copy(change)
    return result
