"""The graph of owners: who owns whom, by uid, with as little memory as that takes.

Whole entries are kept only for objects that have owners or are being deleted; of all others only the uid and the
namespace, to know that they are there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from danlu.meta.kind import Kind, Object

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Owner(NamedTuple):
    uid: str
    api_version: str
    kind: str
    name: str
    blocks: bool  # it may not go before this dependent does


class OwnershipEntry(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    uid: str
    owners: tuple[Owner, ...]
    deleting: bool
    foreground: bool  # waits for its dependents to go first
    orphaning: bool  # lets its dependents go their own way first


def read(kind: Kind, obj: Object) -> OwnershipEntry:
    meta = obj["metadata"]
    finalizers = meta.get("finalizers") or ()
    deleting = bool(meta.get("deletionTimestamp"))
    return OwnershipEntry(
        kind,
        sys.intern(meta.get("namespace") or ""),
        meta["name"],
        meta["uid"],
        tuple(
            Owner(o["uid"], o["apiVersion"], o["kind"], o["name"], bool(o.get("blockOwnerDeletion")))
            for o in meta.get("ownerReferences") or ()
        ),
        deleting,
        deleting and FOREGROUND in finalizers,
        deleting and ORPHAN in finalizers,
    )


class Graph:
    def __init__(self) -> None:
        self.alive: dict[str, str] = {}  # uid → namespace, of everything there is
        self.entries: dict[str, OwnershipEntry] = {}
        self._dependents: dict[str, set[str]] = {}  # owner's uid → uids

    def put(self, entry: OwnershipEntry) -> OwnershipEntry | None:
        """What was known before."""
        before = self.entries.get(entry.uid)
        self.alive[entry.uid] = entry.namespace
        old_owners = {owner.uid for owner in before.owners} if before else set()
        new_owners = {owner.uid for owner in entry.owners}
        for uid in old_owners - new_owners:
            self._unlink(uid, entry.uid)
        for uid in new_owners - old_owners:
            self._dependents.setdefault(uid, set()).add(entry.uid)
        if entry.owners or entry.deleting:
            self.entries[entry.uid] = entry
        else:
            self.entries.pop(entry.uid, None)
        return before

    def remove(self, uid: str) -> OwnershipEntry | None:
        self.alive.pop(uid, None)
        entry = self.entries.pop(uid, None)
        for owner in entry.owners if entry else ():
            self._unlink(owner.uid, uid)
        return entry

    def _unlink(self, owner: str, dependent: str) -> None:
        known = self._dependents.get(owner)
        if known is not None:
            known.discard(dependent)
            if not known:
                del self._dependents[owner]

    def dependents(self, uid: str) -> Iterator[OwnershipEntry]:
        for dependent in [*self._dependents.get(uid, ())]:
            entry = self.entries.get(dependent)
            if entry is not None:
                yield entry

    def blocking(self, uid: str) -> list[OwnershipEntry]:
        """Those that the owner waits for. Who only claims it from another namespace can hold nothing up there."""
        home = self.alive.get(uid) or ""
        return [
            e
            for e in self.dependents(uid)
            if home in ("", e.namespace) and any(o.uid == uid and o.blocks for o in e.owners)
        ]
