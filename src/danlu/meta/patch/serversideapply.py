"""Server-side apply: lay what is applied over what is live, drop what the manager no longer applies, name conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from danlu.errors import BadRequest, Conflict
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.nesting import parse_json
from danlu.meta.patch import fieldsets, managed, typed
from danlu.meta.patch.fieldsets import Set
from danlu.meta.patch.managed import ManagedFieldsEntry

if TYPE_CHECKING:
    from danlu.meta.schema import Node, Schema

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"
_WITH_STATUS = ("apiVersion", "kind", "metadata", "status")


def apply(
    live: Object | None,
    applied: Object,
    manager: str,
    force: bool,
    schema: Schema | None,
    api_version: str,
    now: str,
    subresource: str = "",
) -> Object:
    """The object after the apply, managedFields included; raises Conflict where others own what would change.

    `live` None makes the object. Applied to the main resource of a custom kind that has a status subresource, `status`
    has been taken out by the caller; for built-in kinds, and for what is applied to `/status`, that is done here.
    """
    node = schema.root if schema is not None else None
    _check(applied, api_version, node)
    if subresource == "status":
        applied = {key: value for key, value in applied.items() if key in _WITH_STATUS}
    elif node is not None and node.go_struct:
        applied = {key: value for key, value in applied.items() if key != "status"}
    try:
        return _applied({} if live is None else live, applied, manager, force, node, api_version, now, subresource)
    except typed.Irregular as why:
        raise BadRequest(f"failed to create typed live object: {why}") from None


def _applied(
    live: Object,
    applied: Object,
    manager: str,
    force: bool,
    node: Node | None,
    api_version: str,
    now: str,
    subresource: str,
) -> Object:
    entries = managed.decode((live.get("metadata") or {}).get("managedFields")) or []
    bare = _without_managed(live)
    if not entries and objects.uid(live):
        changed, _ = typed.compare({}, bare, node, managed.skeleton_of(node))
        entries = [ManagedFieldsEntry(BEFORE_FIRST_APPLY, "Update", api_version, "", now, managed.stripped(changed))]
    mine = ManagedFieldsEntry(manager, "Apply", api_version, subresource, None, typed.field_set(applied, node))
    last = next((entry for entry in entries if entry.identity == mine.identity), None)
    others = [entry for entry in entries if entry is not last]
    result: Object = typed.merge(bare, applied, node)
    if last is not None:
        result = _pruned(result, last, [*others, mine], node)
    mine.fields = managed.stripped(mine.fields)  # only now: what names the object must survive the pruning
    changed, removed = typed.compare(bare, result, node, managed.skeleton_of(node))
    conflicts = [(entry, fieldsets.intersection(entry.fields, changed)) for entry in others]
    conflicts = [(entry, lost) for entry, lost in conflicts if lost]
    if conflicts and not force:
        _refuse(_not_allowed(conflicts, manager, bare, api_version, node))
    for entry, lost in conflicts:
        entry.fields = fieldsets.difference(entry.fields, lost)
    for entry in others:
        entry.fields = fieldsets.difference(entry.fields, removed)
    if result != bare:
        mine.time = now
    elif last is not None:
        mine.time = last.time
    result = objects.copy(result)
    if manager == "kubectl" and objects.annotations_of(result).get(LAST_APPLIED):
        result["metadata"]["annotations"][LAST_APPLIED] = _last_applied(applied)
    managed.encode(result, [*others, mine])
    return result


def _check(applied: Object, api_version: str, node: Node | None) -> None:
    if applied.get("apiVersion", api_version) != api_version:
        raise BadRequest(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {applied['apiVersion']}, expected: {api_version}"
        )
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    problems = list(_irregularities(applied, node, ""))
    if problems:
        group, _, version = api_version.rpartition("/")
        kind = f"{group}/{version}, Kind={applied.get('kind', '')}"
        where = f"{objects.namespace(applied)}/{objects.name(applied)}; {kind}"
        text = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise BadRequest(f"failed to create typed patch object ({where}): {text}")


def _irregularities(value: Any, node: Node | None, path: str) -> list[str]:
    """Lists whose items cannot be told apart by their keys."""
    found: list[str] = []
    if type(value) is dict and not typed.is_atomic_map(node):
        for key, item in value.items():
            if type(item) in (dict, list):
                found += _irregularities(item, typed.child_of(node, key), f"{path}.{key}")
    elif type(value) is list and node is not None:
        keys = typed.keyed_by(node)
        if keys is None:
            return found
        seen: set[str] = set()
        for index, item in enumerate(value):
            try:
                step = typed.item_step(item, keys, node.items)
            except typed.Irregular as why:
                found.append(f"{path}: element {index}: {why}")
                continue
            if step in seen:
                found.append(f"{path}: duplicate entries for key {fieldsets.step_text(step)}")
            seen.add(step)
            found += _irregularities(item, node.items, f"{path}{fieldsets.step_text(step)}")
    return found


def _without_managed(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _pruned(merged: Object, last: ManagedFieldsEntry, owners: list[ManagedFieldsEntry], node: Node | None) -> Object:
    """Without what the manager applied last time and does not now, unless someone else owns it."""
    before = typed.with_named_fields(last.fields, node)
    pruned = typed.remove(merged, before, node) or {}
    owned: Set = {}
    for entry in owners:
        owned = fieldsets.union(owned, entry.fields)
    all_fields = typed.with_named_fields(typed.field_set(merged, node), node)
    kept = typed.with_named_fields(typed.field_set(pruned, node), node)
    kept = fieldsets.union(kept, typed.with_named_fields(owned, node))
    pruned = typed.remove(merged, fieldsets.difference(all_fields, kept), node) or {}
    left = typed.with_named_fields(typed.field_set(pruned, node), node)
    gone = fieldsets.intersection(fieldsets.difference(all_fields, left), before)
    result: Object = typed.remove(merged, gone, node) or {}
    return result


def _not_allowed(
    conflicts: list[tuple[ManagedFieldsEntry, Set]], manager: str, live: Object, api_version: str, node: Node | None
) -> list[tuple[ManagedFieldsEntry, Set]]:
    """kubectl may take back what its own client-side apply set and nobody has changed since."""
    annotation = objects.annotations_of(live).get(LAST_APPLIED)
    if manager != "kubectl" or not annotation:
        return conflicts
    try:
        before = parse_json(annotation)
    except ValueError:
        return conflicts
    if not isinstance(before, dict) or before.get("apiVersion") != api_version:
        return conflicts
    try:
        allowed = typed.field_set(before, node)
    except typed.Irregular:
        return conflicts
    for difference in typed.compare(before, live, node, managed.skeleton_of(node)):
        allowed = fieldsets.difference(allowed, difference)
    left = [(entry, fieldsets.difference(lost, allowed)) for entry, lost in conflicts]
    return [(entry, lost) for entry, lost in left if lost]


def _refuse(conflicts: list[tuple[ManagedFieldsEntry, Set]]) -> None:
    found = [(entry, path) for entry, lost in conflicts for path in fieldsets.paths(lost)]
    if not found:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {entry.shown()}", "field": path}
        for entry, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0].shown()}: {found[0][1]}"
    else:
        by_manager: dict[str, list[str]] = {}
        for entry, path in found:
            by_manager.setdefault(entry.shown(), []).append(f"- {path}")
        lines: list[str] = []
        for shown in sorted(by_manager):
            lines += [f"conflicts with {shown}:", *by_manager[shown]]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    raise Conflict(message, {"causes": causes})


def _last_applied(applied: Object) -> str:
    configuration = objects.copy(applied)
    annotations = objects.metadata(configuration).get("annotations")
    if annotations:
        annotations.pop(LAST_APPLIED, None)
    return orjson.dumps(configuration, option=orjson.OPT_SORT_KEYS).decode() + "\n"
