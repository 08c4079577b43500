"""`metadata.managedFields`: who set which field, kept on every write.

Each entry is one manager at one operation, version and subresource. A field that someone changes moves to them; a
field that goes is nobody's. Without a change an entry, its time included, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from danlu.meta.kind import Object
from danlu.meta.patch import fieldsets
from danlu.meta.patch.fieldsets import Set
from danlu.meta.patch.typed import NATIVE_SKELETON, NO_SKELETON, Skeleton, compare

if TYPE_CHECKING:
    from danlu.meta.schema import Node, Schema

MOST_UPDATE_MANAGERS = 10
OLD_UPDATES = "ancient-changes"

_STRIPPED_ROOT = ("f:apiVersion", "f:kind")
_STRIPPED_METADATA = (
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:clusterName",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
)

Identity = tuple[str, str, str, str]  # manager, operation, apiVersion ("" for Apply), subresource


class ManagedFieldsEntry:
    """One manager's fields; `time` is the last change that gave it one."""

    __slots__ = ("api_version", "fields", "manager", "operation", "subresource", "time")

    def __init__(
        self, manager: str, operation: str, api_version: str, subresource: str, time: str | None, fields: Set
    ) -> None:
        self.manager = manager
        self.operation = operation
        self.api_version = api_version
        self.subresource = subresource
        self.time = time
        self.fields = fields

    @property
    def identity(self) -> Identity:
        version = "" if self.operation == "Apply" else self.api_version
        return self.manager, self.operation, version, self.subresource

    def encoded(self) -> Object:
        result: Object = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time is not None:
            result["time"] = self.time
        result["fieldsType"] = "FieldsV1"
        result["fieldsV1"] = self.fields
        if self.subresource:
            result["subresource"] = self.subresource
        return result

    def shown(self) -> str:
        """As conflicts name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


def decode(entries: Any) -> list[ManagedFieldsEntry] | None:
    """None where what was stored or sent cannot be understood."""
    found: list[ManagedFieldsEntry] = []
    for entry in entries or ():
        operation, fields = entry.get("operation"), entry.get("fieldsV1", {})
        if operation not in ("Apply", "Update") or not entry.get("apiVersion"):
            return None
        if entry.get("fieldsType") != "FieldsV1" or not fieldsets.is_valid(fields):
            return None
        found.append(
            ManagedFieldsEntry(
                entry.get("manager") or "",
                operation,
                entry["apiVersion"],
                entry.get("subresource") or "",
                entry.get("time"),
                fields,
            )
        )
    return found


def encode(obj: Object, entries: Iterable[ManagedFieldsEntry]) -> None:
    kept = sorted(
        (entry for entry in entries if entry.fields),
        key=lambda entry: (entry.operation, entry.time or "", entry.manager, entry.api_version, entry.subresource),
    )
    metadata = obj.setdefault("metadata", {})
    if kept:
        metadata["managedFields"] = [entry.encoded() for entry in kept]
    else:
        metadata.pop("managedFields", None)


def stripped(members: Set) -> Set:
    """Without what names the object rather than says something about it."""
    metadata = members.get("f:metadata")
    result = {key: value for key, value in members.items() if key not in _STRIPPED_ROOT and key != "f:metadata"}
    if metadata:
        below = {key: value for key, value in metadata.items() if key not in _STRIPPED_METADATA and key != "."}
        if below:
            result["f:metadata"] = below
    return result


def skeleton_of(node: Node | None) -> Skeleton:
    return NATIVE_SKELETON if node is not None and node.go_struct else NO_SKELETON


def track_update(
    new: Object,
    old: Object | None,
    manager: str,
    api_version: str,
    schema: Schema | None,
    now: str,
    subresource: str = "",
    operation: str = "Update",
) -> None:
    """Write `new["metadata"]["managedFields"]` for a create (`old` is None), an update or a patch by `manager`."""
    node = schema.root if schema is not None else None
    metadata = new["metadata"]
    manager = manager or "unknown"
    sent = metadata.pop("managedFields", None)
    if old is None:
        changed, _ = compare({}, new, node, skeleton_of(node))
        changed = stripped(changed)
        if node is not None and node.go_struct:
            changed.pop("f:status", None)  # the first status is the server's own
        entries = [] if sent == [] or sent == [{}] or not sent else decode(sent) or []
        if not entries:
            if changed:
                entry = ManagedFieldsEntry(manager, operation, api_version, subresource, now, changed)
                metadata["managedFields"] = [entry.encoded()]
            return
        _given_to(entries, changed, {}, ManagedFieldsEntry(manager, operation, api_version, subresource, now, changed))
        encode(new, _capped(entries))
        return
    stored = old["metadata"].get("managedFields")
    base = _base(sent, stored, subresource)
    if base is None:
        return
    changed, removed = compare(old, new, node, skeleton_of(node))
    changed, removed = stripped(changed), stripped(removed)
    if not changed and not removed and base is stored:
        metadata["managedFields"] = stored
        return
    entries = decode(base) or []
    _given_to(entries, changed, removed, ManagedFieldsEntry(manager, operation, api_version, subresource, now, changed))
    encode(new, _capped(entries))


def _base(sent: Any, stored: Any, subresource: str) -> Any:
    """The entries to build on; None where the object is not tracked (its managedFields were reset)."""
    if not subresource and (sent == [] or sent == [{}]):
        return None
    if subresource or not sent or sent == stored:
        return stored or None
    return sent if decode(sent) else stored or None


def _given_to(entries: list[ManagedFieldsEntry], changed: Set, removed: Set, taker: ManagedFieldsEntry) -> None:
    """In place: take `changed` and `removed` from everyone, then give `changed` to the taker."""
    for entry in entries:
        if changed:
            entry.fields = fieldsets.difference(entry.fields, fieldsets.intersection(entry.fields, changed))
        if removed:
            entry.fields = fieldsets.difference(entry.fields, removed)
    if not changed:
        return
    for entry in entries:
        if entry.identity == taker.identity:
            entry.fields = fieldsets.union(changed, entry.fields)
            entry.time = taker.time
            return
    entries.append(taker)


def _capped(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """At most ten that update: the oldest ones of one version become one entry, `ancient-changes`."""
    updaters = sorted(
        (entry for entry in entries if entry.operation == "Update" and entry.fields),
        key=lambda entry: (entry.time or "", entry.manager, entry.api_version, entry.subresource),
    )
    excess = len(updaters) - MOST_UPDATE_MANAGERS
    if excess <= 0:
        return entries
    buckets: dict[str, ManagedFieldsEntry] = {}
    gone: set[int] = set()
    for entry in updaters:
        if excess <= 0:
            break
        bucket = buckets.get(entry.api_version)
        if bucket is None:
            buckets[entry.api_version] = entry
            continue
        bucket.manager, bucket.subresource = OLD_UPDATES, ""
        bucket.fields = fieldsets.union(entry.fields, bucket.fields)
        bucket.time = entry.time
        gone.add(id(entry))
        excess -= 1
    return [entry for entry in entries if id(entry) not in gone]
