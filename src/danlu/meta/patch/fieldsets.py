"""Sets of fields in the form that `metadata.managedFields` stores them (FieldsV1).

A set is a tree of dicts. Keys name a step: `f:name` a field, `k:{"name":"x"}` an item of a keyed list, `v:"x"` an item
of a set. An entry with no content is a member; an entry with content is a member where it has the key `.`, and else
only leads to members below. Sets are never changed in place: operations share what they can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

Set = dict[str, Any]

LEAF: Set = {}
"""Shared by every leaf, so never to be written to."""


def is_member(entry: Set) -> bool:
    return not entry or "." in entry


def union(left: Set, right: Set) -> Set:
    if not left or left is right:
        return right
    if not right:
        return left
    result = dict(left)
    for key, theirs in right.items():
        ours = result.get(key)
        result[key] = theirs if ours is None else _union_entry(ours, theirs)
    return result


def _union_entry(left: Set, right: Set) -> Set:
    if not left and not right:
        return LEAF
    member = is_member(left) or is_member(right)
    result = union(left, right)
    if member and "." not in result:
        result = {".": LEAF, **result}
    return result


def difference(left: Set, right: Set) -> Set:
    """Members of `left` that are not members of `right`."""
    result: Set = {}
    for key, ours in left.items():
        theirs = right.get(key)
        if theirs is None:
            result[key] = ours
            continue
        kept = _entry(is_member(ours) and not is_member(theirs), difference(_below(ours), theirs))
        if kept is not None:
            result[key] = kept
    return result


def intersection(left: Set, right: Set) -> Set:
    result: Set = {}
    for key, ours in left.items():
        theirs = right.get(key)
        if theirs is None or key == ".":
            continue
        kept = _entry(is_member(ours) and is_member(theirs), intersection(ours, theirs))
        if kept is not None:
            result[key] = kept
    return result


def _below(entry: Set) -> Set:
    return {key: value for key, value in entry.items() if key != "."} if "." in entry else entry


def _entry(member: bool, below: Set) -> Set | None:
    if not below:
        return LEAF if member else None
    return {".": LEAF, **below} if member else below


def paths(members: Set, prefix: str = "") -> Iterator[str]:
    """Every member as structured-merge-diff prints it: `.spec.containers[name="x"].image`."""
    for key in sorted(members):
        if key == ".":
            continue
        entry = members[key]
        path = prefix + step_text(key)
        if is_member(entry):
            yield path
        yield from paths(entry, path)


def step_text(key: str) -> str:
    if key.startswith("f:"):
        return f".{key[2:]}"
    if key.startswith("v:"):
        return f"[={key[2:]}]"
    if key.startswith("k:"):
        values = orjson.loads(key[2:])
        return "[" + ",".join(f"{name}={orjson.dumps(values[name]).decode()}" for name in sorted(values)) + "]"
    return f"[{key[2:]}]"


def is_valid(members: Any) -> bool:
    """Whether what a client sent as fieldsV1 can be worked with."""
    if not isinstance(members, dict):
        return False
    for key, entry in members.items():
        if key != "." and key[:2] not in ("f:", "k:", "v:", "i:"):
            return False
        if key.startswith("k:") and not _is_key(key[2:]):
            return False
        if not is_valid(entry):
            return False
    return True


def _is_key(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        return False
