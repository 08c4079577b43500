"""Strategic merge patch: lists merge by their key where the schema says so; `$…` keys in the patch direct it.

`$patch: delete|replace` on a map or a list item, `$retainKeys` for unions, `$deleteFromPrimitiveList/x` for lists of
scalars, `$setElementOrder/x` for the order of a merged list (kubectl sends it with every list it touches).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from danlu.errors import ApiError, BadRequest, Invalid
from danlu.meta.fields import go_json, go_text
from danlu.meta.kind import Object
from danlu.meta.objects import copy
from danlu.meta.patch.rfc6902 import REJECTED

if TYPE_CHECKING:
    from danlu.meta.schema import Node, Schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"

_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_PRIMITIVE = "invalid patch format of primitive list"
_BAD_RETAIN = "invalid patch format of retainKeys"


def strategic_merge_patch(obj: Object, patch: Any, schema: Schema | None, *, use_up: bool = False) -> Object:
    """`use_up`: the answer may be made of the object's own parts, which the caller does not need any more."""
    if schema is None:
        raise BadRequest("strategic merge patch format is not supported")
    if not isinstance(patch, dict):
        raise BadRequest("invalid JSON document")
    return _merge_map(obj if use_up else copy(obj), copy(patch), schema.root)


def _merge_map(original: Object, patch: Object, node: Node | None) -> Object:
    """Works on private copies: both arguments are used up."""
    if _PATCH in patch:
        if patch[_PATCH] == "replace":
            del patch[_PATCH]
            return patch
        if patch[_PATCH] == "delete":
            return {}
        raise BadRequest(f"unknown patch type: {patch[_PATCH]} in map: {go_text(patch)}")
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _merge_ordered(original, patch, key, node)
    for key, change in patch.items():
        if key.startswith(_DELETE_FROM):
            _delete_scalars(original, key, change)
            continue
        if change is None:
            original.pop(key, None)
            continue
        found = original.get(key)
        child = _child(node, key)
        if isinstance(found, dict) and isinstance(change, dict):
            original[key] = change if _replaces(child) else _merge_map(found, change, child)
        elif isinstance(found, list) and isinstance(change, list) and _merges(child):
            original[key] = _merge_list(found, change, child)
        else:
            _set_clean(original, key, change)
    return original


def _child(node: Node | None, key: str) -> Node | None:
    return None if node is None else node.fields.get(key) or node.values


def _merges(node: Node | None) -> bool:
    return node is not None and "merge" in node.strategies


def _replaces(node: Node | None) -> bool:
    return node is not None and "replace" in node.strategies


def _set_clean(original: Object, key: str, change: Any) -> None:
    keep, value = _without_directives(change)
    if keep:
        original[key] = value
    else:
        original.pop(key, None)


def _without_directives(value: Any) -> tuple[bool, Any]:
    """A value that meets nothing to merge with: nulls and directives in it have done their work."""
    if isinstance(value, dict):
        if _PATCH in value:
            return False, None
        cleaned = {}
        for key, item in value.items():
            if item is None or key == _RETAIN or key.startswith((_DELETE_FROM, _ORDER)):
                continue
            keep, item = _without_directives(item)
            if keep:
                cleaned[key] = item
        return True, cleaned
    if isinstance(value, list):
        return True, [item for keep, item in map(_without_directives, value) if keep]
    return True, value


def _retain_keys(original: Object, patch: Object) -> None:
    if _RETAIN not in patch:
        return
    retained = patch.pop(_RETAIN)
    if not isinstance(retained, list) or not all(isinstance(key, str) for key in retained):
        raise BadRequest(_BAD_RETAIN)
    retained = set(retained)
    for key, value in patch.items():
        if value is not None and key not in retained and not key.startswith((_DELETE_FROM, _ORDER)):
            raise BadRequest(_BAD_RETAIN)
    for key in [key for key in original if key not in retained]:
        del original[key]


def _named(key: str, prefix: str, problem: str) -> str:
    before, slash, name = key.partition("/")
    if before != prefix or not slash:
        raise BadRequest(problem)
    return name


def _delete_scalars(original: Object, key: str, doomed: Any) -> None:
    name = _named(key, _DELETE_FROM, _BAD_PRIMITIVE)
    if not isinstance(doomed, list):
        raise BadRequest(_BAD_PRIMITIVE)
    if isinstance(original.get(name), list):
        gone = _Places(doomed, "")
        original[name] = [item for item in original[name] if gone.of(item) < 0]


def _merge_ordered(original: Object, patch: Object, key: str, node: Node | None) -> None:
    """One list under `$setElementOrder`: merge, then order what the patch names as it says."""
    order = patch.pop(key)
    name = _named(key, _ORDER, _BAD_ORDER)
    found, change = original.get(name), patch.get(name)
    if not isinstance(order, list):
        raise BadRequest(_BAD_ORDER)
    for value in (found, change):
        if value is not None and not isinstance(value, list):
            raise BadRequest(f"expected a []interface {{}}, but received a {type(value).__name__}")
    child = _child(node, name)
    merge_key = child.merge_key if child is not None else ""
    if change and order:
        _check_order(change, order, merge_key)
    if found is None and change is None:
        return
    if change is None:
        merged = found or []
    elif found is None:
        merged = _without_directives(change)[1]
    else:
        merged = _merge_list(found, change, child) if _merges(child) else change
    original[name] = _interleave(merged, _Places(order, merge_key), _Places(found or [], merge_key))
    patch.pop(name, None)


def _check_order(change: list[Any], order: list[Any], merge_key: str) -> None:
    wanted = iter(order)
    for item in change:
        if isinstance(item, dict) and _PATCH in item:
            continue
        value = _key_of(item, merge_key)
        if not any(_key_of(candidate, merge_key) == value for candidate in wanted):
            lists = f"{go_text(change)}\n doesn't match {_ORDER} list:\n{go_text(order)}\n"
            raise BadRequest(f"The order in patch list:\n{lists}")


def _key_of(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise BadRequest("expected a map[string]interface {}, but received another type")
    if merge_key not in item:
        raise _no_merge_key(item, merge_key)
    return item[merge_key]


def _no_merge_key(item: Object, merge_key: str) -> ApiError:
    return BadRequest(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")


def _merge_list(original: list[Any], change: list[Any], node: Node | None) -> list[Any]:
    if not original and not change:
        return original
    kinds = {type(item) for item in (*original, *change)}
    if list in kinds:
        raise Invalid(f"{REJECTED}: lists of lists are not supported")
    if len(kinds - {int, float}) > 1 or (dict in kinds and len(kinds) > 1):
        raise BadRequest(f"list element types are not identical: {go_text([original, change])}")
    merge_key = node.merge_key if node is not None else ""
    if dict not in kinds:
        merge_key = ""
        merged, known = list(original), _Places(original, "")
        merged += [item for item in change if known.add(item)]
    else:
        if not merge_key:
            raise BadRequest("cannot merge lists without merge key")
        original, change = _special_items(original, change, merge_key)
        merged = _merge_items(original, change, merge_key, node.items if node is not None else None)
    return _interleave(merged, _Places(change, merge_key), _Places(original, merge_key))


def _special_items(original: list[Any], change: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Do what the `$patch` items of a list say; the rest is merged."""
    plain, replace, doomed = [], False, _Places((), merge_key)
    for item in change:
        directive = item.get(_PATCH)
        if directive is None:
            plain.append(item)
        elif directive == "delete":
            if merge_key not in item:
                raise _no_merge_key(item, merge_key)
            doomed.add(item)
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise BadRequest("merging lists cannot yet be specified in the patch")
        else:
            raise BadRequest(f"unknown patch type: {directive} in map: {go_text(item)}")
    if replace:
        return plain, []
    return [kept for kept in original if doomed.of(kept) < 0], plain


def _merge_items(original: list[Any], change: list[Any], merge_key: str, node: Node | None) -> list[Any]:
    merged, places = list(original), _Places(original, merge_key)
    for item in change:
        if merge_key not in item:
            raise _no_merge_key(item, merge_key)
        index = places.of(item)
        if index >= 0:
            # The patch's item also says where it stands in the list, so its key must survive the merge.
            merged[index] = _merge_map(merged[index], dict(item), node)
        else:
            merged.append(_without_directives(item)[1])
            places.add(item)
    return merged


class _Places:
    """Where items first stand in a list, by their merge key; lists without one are told apart by the items themselves.

    Looked up, not searched for: a list as long as a body can be would be searched as often as it is long.
    """

    def __init__(self, items: Iterable[Any], merge_key: str) -> None:
        self._merge_key = merge_key
        self._places: dict[Any, int] = {}
        self._count = 0
        for item in items:
            self.add(item)

    def add(self, item: Any) -> bool:
        """At the end; whether it was not there yet (else it keeps the place that it has)."""
        key = self._key(item)
        new = key not in self._places
        if new:
            self._places[key] = self._count
        self._count += 1
        return new

    def of(self, item: Any) -> int:
        return self._places.get(self._key(item), -1)

    def _key(self, item: Any) -> Any:
        value = item.get(self._merge_key) if self._merge_key and isinstance(item, dict) else item
        return go_json(value) if isinstance(value, dict | list) else value


def _interleave(merged: list[Any], order: _Places, server_order: _Places) -> list[Any]:
    """What the patch names stands in its order; what only the server has keeps its place before what followed it."""
    named = sorted((item for item in merged if order.of(item) >= 0), key=order.of)
    others = [item for item in merged if order.of(item) < 0]
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(named):
        before, after = server_order.of(others[left]), server_order.of(named[right])
        if 0 <= before < after:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return result + others[left:] + named[right:]
