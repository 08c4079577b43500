"""Objects seen through their schema, as structured-merge-diff sees them: field sets, comparison, merge and removal.

A value is one leaf where it is a scalar, an empty container, or atomic by the schema. Where there is no schema, maps
go key by key and lists are atomic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from danlu.meta.patch.fieldsets import LEAF, Set, is_member

if TYPE_CHECKING:
    from danlu.meta.schema import Node

Skeleton = dict[str, Any]

# Structs and lists that Go always writes out, empty or not: they are there before anyone sets something in them, so
# nobody owns them. A list is None here, a text or a number its zero value.
NATIVE_SKELETON: Skeleton = {
    "metadata": {},
    "rules": None,
    "endpoints": None,
    "ports": None,
    "spec": {
        "containers": None,
        "template": {"metadata": {}, "spec": {"containers": None}},
        "serviceName": "",
        "strategy": {},
        "updateStrategy": {},
        "resources": {},
        "names": {},
    },
    "status": {
        "loadBalancer": {},
        "nodeInfo": {},
        "daemonEndpoints": {"kubeletEndpoint": {}},
        "acceptedNames": {},
    },
    "involvedObject": {},
    "regarding": {},
    "source": {},
    "deprecatedSource": {},
    "reportingComponent": "",
    "reportingInstance": "",
    "revision": 0,
    "value": 0,
}
NO_SKELETON: Skeleton = {"metadata": {}}


class Irregular(Exception):
    """A list that its schema calls a set or a map has items that cannot be told apart; the text says why."""


def keyed_by(node: Node | None) -> tuple[str, ...] | None:
    """How a list's items are told apart: None: not at all (atomic), (): by their value, else by these keys."""
    if node is None:
        return None
    if node.list_type == "map":
        return node.map_keys
    if node.list_type == "set":
        return ()
    if node.list_type == "" and "merge" in node.strategies:
        return (node.merge_key,) if node.merge_key else ()
    return None


def child_of(node: Node | None, key: str) -> Node | None:
    return None if node is None else node.fields.get(key) or node.values


def is_atomic_map(node: Node | None) -> bool:
    """By its word, or because it is Go's RawExtension: any JSON, of which a built-in kind knows nothing."""
    if node is None:
        return False
    return node.map_type == "atomic" or (node.preserve_unknown and not node.fields and not node.schema)


def item_step(item: Any, keys: tuple[str, ...], node: Node | None) -> str:
    if not keys:
        if isinstance(item, dict):
            raise Irregular("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise Irregular("not supported: associative list with lists as elements")
        if item is None:
            raise Irregular("associative list without keys has an element that's an explicit null")
        return "v:" + orjson.dumps(item).decode()
    if item is None:
        raise Irregular("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise Irregular("associative list with keys may not have non-map elements")
    found = {}
    for key in keys:
        value = item.get(key)
        if value is None and node is not None:
            value = _absent_key(node, key)
        if value is not None:
            found[key] = value
    if not found:
        names = " ".join(f'"{key}"' for key in keys)
        raise Irregular(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()


def _absent_key(node: Node, key: str) -> Any:
    """What a key that is not there stands for: its default, or the zero value that Go writes for a required field."""
    if key in node.defaults or not node.go_struct or key not in node.required:
        return node.defaults.get(key)
    field = node.fields.get(key)
    return {"string": "", "integer": 0}.get(field.type) if field is not None else None


def steps_of(items: list[Any], keys: tuple[str, ...], node: Node | None) -> list[str]:
    return [item_step(item, keys, node) for item in items]


def everything(value: Any, node: Node | None) -> Set:
    """The set of all that comes into being, or goes, with this value: each container on the way is a member too."""
    if type(value) is dict:
        if not value or is_atomic_map(node):
            return LEAF
        result: Set = {".": LEAF}
        if node is None:
            for key, item in value.items():
                if item is not None:
                    result[f"f:{key}"] = everything(item, None) if type(item) is dict else LEAF
            return result
        fields, values = node.fields, node.values
        for key, item in value.items():
            if type(item) is dict or type(item) is list:
                result[f"f:{key}"] = everything(item, fields.get(key) or values)
            elif item is not None:
                result[f"f:{key}"] = LEAF
        return result
    if type(value) is list and value:
        keys = keyed_by(node)
        if keys is None or node is None:
            return LEAF
        result = {".": LEAF}
        try:
            for item in value:
                step = item_step(item, keys, node.items)
                result[step] = LEAF if step in result else everything(item, node.items)
        except Irregular:
            return LEAF
        return result
    return LEAF


def compare(old: dict[str, Any], new: dict[str, Any], node: Node | None, skeleton: Skeleton) -> tuple[Set, Set]:
    """(what was added or modified, what was removed). A null is as good as a field that is not there."""
    changed: Set = {}
    removed: Set = {}
    for key, value in new.items():
        if value is None or key in skeleton:
            continue
        before = old.get(key)
        if before is None:
            changed[f"f:{key}"] = everything(value, child_of(node, key))
        elif before is not value and before != value:
            _compare_value(f"f:{key}", before, value, child_of(node, key), {}, changed, removed)
    for key, value in old.items():
        if value is not None and new.get(key) is None and key not in skeleton:
            removed[f"f:{key}"] = everything(value, child_of(node, key))
    for key in [*(key for key in new if key in skeleton), *(key for key in old if key in skeleton and key not in new)]:
        before, value, below = old.get(key), new.get(key), skeleton[key]
        if before == value:
            continue
        empty: Any = {} if isinstance(below, dict) else [] if below is None else below
        before = empty if before is None else before
        value = empty if value is None else value
        _compare_value(f"f:{key}", before, value, child_of(node, key), below or {}, changed, removed)
    return changed, removed


def _compare_value(
    step: str, old: Any, new: Any, node: Node | None, skeleton: Skeleton, changed: Set, removed: Set
) -> None:
    """Write into `changed` and `removed` under `step`; old and new are both there and differ."""
    if type(old) is dict and type(new) is dict and (old or new) and not is_atomic_map(node):
        below = compare(old, new, node, skeleton)
    elif type(old) is list and type(new) is list and (old or new) and node and keyed_by(node) is not None:
        try:
            below = _compare_items(old, new, node)
        except Irregular:
            below = (LEAF, LEAF)
            changed[step] = LEAF
    elif old != new:
        changed[step] = LEAF
        return
    else:
        return
    if below[0]:
        changed[step] = below[0]
    if below[1]:
        removed[step] = below[1]


def _compare_items(old: list[Any], new: list[Any], node: Node) -> tuple[Set, Set]:
    keys = keyed_by(node)
    assert keys is not None
    changed: Set = {}
    removed: Set = {}
    before = _grouped(old, keys, node.items)
    after = _grouped(new, keys, node.items)
    for step, values in after.items():
        olds = before.get(step)
        if olds is None:
            changed[step] = everything(values[0], node.items) if len(values) == 1 else LEAF
        elif len(olds) == 1 and len(values) == 1:
            if olds[0] != values[0]:
                _compare_value(step, olds[0], values[0], node.items, {}, changed, removed)
        elif olds != values:
            changed[step] = LEAF
    for step, olds in before.items():
        if step not in after:
            removed[step] = everything(olds[0], node.items) if len(olds) == 1 else LEAF
    return changed, removed


def _grouped(items: list[Any], keys: tuple[str, ...], node: Node | None) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(item_step(item, keys, node), []).append(item)
    return groups


def field_set(value: Any, node: Node | None) -> Set:
    """The set that an apply of this value owns: fields that the schema declares lead on without being owned."""
    result: Set = {}
    if type(value) is dict:
        for key, item in value.items():
            declared = node is not None and key in node.fields
            entry = _owned(item, child_of(node, key))
            if entry is None:
                continue
            if entry and "." not in entry and (not declared or item is None or item == {}):
                entry = {".": LEAF, **entry}
            result[f"f:{key}"] = entry
    elif type(value) is list:
        keys = keyed_by(node)
        if keys is None or node is None:
            return LEAF
        for item in value:
            step = item_step(item, keys, node.items)
            entry = LEAF if step in result else _owned(item, node.items)
            result[step] = {".": LEAF, **entry} if entry else LEAF
    return result


def _owned(value: Any, node: Node | None) -> Set | None:
    """None: an empty keyed list owns nothing."""
    if type(value) is dict and value and not is_atomic_map(node):
        return field_set(value, node) or None
    if type(value) is list and keyed_by(node) is not None:
        return field_set(value, node) or None
    return LEAF


def with_named_fields(members: Set, node: Node | None) -> Set:
    """Every declared field on the way to a member becomes a member, so that removing it removes the empty shell."""
    result: Set = {}
    for key, entry in members.items():
        if key == ".":
            result[key] = entry
            continue
        name = key[2:] if key.startswith("f:") else None
        child = child_of(node, name) if name is not None else (node.items if node is not None else None)
        below = with_named_fields(entry, child)
        if below and "." not in below and name is not None and node is not None and name in node.fields:
            below = {".": LEAF, **below}
        result[key] = below
    return result


def merge(old: Any, new: Any, node: Node | None) -> Any:
    """`new` laid over `old`; `old` is what the server has, `new` what is applied."""
    if type(old) is dict and type(new) is dict and not is_atomic_map(node):
        result = dict(old)
        for key, value in new.items():
            result[key] = merge(old[key], value, child_of(node, key)) if key in old else value
        return result
    if type(old) is list and type(new) is list and old and new:
        keys = keyed_by(node)
        if keys is not None and node is not None:
            return _merge_items(old, new, keys, node.items)
    if new is None and type(old) in (dict, list) and old and node is not None and not is_atomic_map(node):
        return old
    if type(new) is list and not new and type(old) is list and keyed_by(node) is not None:
        return old
    return new


def _merge_items(old: list[Any], new: list[Any], keys: tuple[str, ...], node: Node | None) -> list[Any]:
    """Applied items in their order; what only the server has stays where it stood among the shared ones."""
    theirs = dict(zip(steps_of(old, keys, node), old, strict=True))
    ours = dict(zip(steps_of(new, keys, node), new, strict=True))
    left, right = list(theirs), list(ours)
    shared = [step for step in right if step in theirs]
    result: list[Any] = []
    done: set[str] = set()
    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left):
            step = left[at_left]
            if step not in ours:
                result.append(theirs[step])
                at_left += 1
                continue
            if step in done or (shared and shared[0] != step and at_right < len(right)):
                at_left += 1
                continue
        if at_right < len(right):
            step = right[at_right]
            result.append(merge(theirs[step], ours[step], node) if step in theirs else ours[step])
            done.add(step)
            at_right += 1
            if shared and shared[0] == step:
                shared.pop(0)
    return result


def remove(value: Any, doomed: Set, node: Node | None) -> Any:
    """`value` without the members of `doomed`; None where nothing is left."""
    if type(value) is dict:
        result: dict[str, Any] = {}
        for key, item in value.items():
            entry = doomed.get(f"f:{key}")
            if entry is None:
                result[key] = item
            elif not is_member(entry):
                kept = remove(item, entry, child_of(node, key))
                if kept is not None:
                    result[key] = kept
        return result or None
    if type(value) is list:
        keys = keyed_by(node)
        if keys is None or node is None:
            return value
        items = []
        for item in value:
            entry = doomed.get(item_step(item, keys, node.items))
            if entry is None:
                items.append(item)
            elif not is_member(entry):
                items.append(remove(item, entry, node.items))
        return items or None
    return value
