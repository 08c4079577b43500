"""Garbage collection by ownerReferences, over every kind the server has, as kube-controller-manager does it.

- An object whose owners are all gone is deleted. Absence is always confirmed by asking the server, never taken from
  the graph: watches of different kinds are not ordered among each other.
- An owner deleted in the *foreground* stays until its blocking dependents are gone; one deleted as *orphan* first
  takes its name off its dependents. The API server adds those finalizers, and only this controller removes them.

The graph holds metadata only, and of most objects only the uid (see `ownership`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from danlu import errors
from danlu.embedded.controllers._shared import discovery
from danlu.embedded.controllers._shared.ownership import FOREGROUND, ORPHAN, Graph, Owner, OwnershipEntry, read
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

log = logging.getLogger(__name__)
T = TypeVar("T")

NEEDED_VERBS = frozenset(("list", "watch", "delete"))
IGNORED = frozenset(("events", "events.events.k8s.io"))  # nothing owns events, and there are many
REDISCOVER_S = 0.05  # after a definition changed, the server needs a moment to serve it
RETRY_S = 1.0


def make(manager: Manager) -> Controller:
    return GarbageCollector(manager)


class GarbageCollector(Controller):
    def __init__(self, manager: Manager) -> None:
        super().__init__("garbage", self.reconcile)
        self.client = manager.client
        self._events = manager.recorder("garbage-collector-controller")
        self.graph = Graph()
        self._kinds: dict[tuple[str, str], Kind] = {}  # (group, kind) → kind
        self._watches: dict[Kind, asyncio.Task[None]] = {}
        self._seen: dict[Kind, set[str]] = {}
        self._synced = asyncio.Event()
        self._reported: set[tuple[str, str]] = set()
        self._discovering: asyncio.Task[None] | None = None
        manager.informer(CUSTOM_RESOURCE_DEFINITION).add_handler(lambda *_: self._rediscover())

    # -- watching everything

    def start(self) -> None:
        super().start()
        self._rediscover()

    async def stop(self) -> None:
        tasks = [*self._watches.values(), *([self._discovering] if self._discovering else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watches.clear()
        await super().stop()

    def _rediscover(self) -> None:
        if not self._tasks:
            return  # not started yet
        if self._discovering is not None and not self._discovering.done():
            self._discovering.cancel()
        self._discovering = asyncio.create_task(self._discover(), name="garbage discovery")

    async def _discover(self) -> None:
        if self._synced.is_set():
            await asyncio.sleep(REDISCOVER_S)
        while True:
            try:
                found = await discovery.resources(self.client)
                break
            except errors.ApiError as error:
                log.info("garbage: discovery failed: %s", error)
                await asyncio.sleep(RETRY_S)
        self._kinds = {(r.kind.group, r.kind.kind): r.kind for r in found}
        watched = {r.kind for r in found if r.verbs >= NEEDED_VERBS and r.kind.resource not in IGNORED}
        for kind in [kind for kind in self._watches if kind not in watched]:
            self._watches.pop(kind).cancel()
            for uid in self._seen.pop(kind, ()):
                self._gone(uid)
        first: list[asyncio.Event] = []
        for kind in watched - set(self._watches):
            listed = asyncio.Event()
            first.append(listed)
            self._watches[kind] = asyncio.create_task(self._follow(kind, listed), name=f"garbage {kind.resource}")
        await asyncio.gather(*(listed.wait() for listed in first))
        if not self._synced.is_set():
            self._synced.set()
            for entry in [*self.graph.entries.values()]:
                self._look_at(entry)

    async def _follow(self, kind: Kind, listed: asyncio.Event) -> None:
        since = ""
        while True:
            try:
                if not since:
                    # Whole objects: the server has their bytes ready, while metadata alone would be encoded anew.
                    found = await self.client.list(kind, limit=500)
                    self._replace(kind, found.items)
                    since = found.resource_version
                    listed.set()
                async for event in self.client.watch(kind, since=since):
                    since = event.object["metadata"]["resourceVersion"]
                    if event.type == "DELETED":
                        self._seen[kind].discard(event.object["metadata"]["uid"])
                        self._gone(event.object["metadata"]["uid"])
                    elif event.type != "BOOKMARK":
                        self._put(kind, event.object)
            except errors.NotFound:
                listed.set()
                self._replace(kind, [])
                since = ""
                await asyncio.sleep(RETRY_S)
            except errors.Expired:
                since = ""
            except Exception as error:
                log.info("garbage: watch of %s: %s", kind.resource, error)
                await asyncio.sleep(RETRY_S)

    def _replace(self, kind: Kind, items: Sequence[Object]) -> None:
        before = self._seen.get(kind, set())
        self._seen[kind] = set()
        for obj in items:
            self._put(kind, obj)
        for uid in before - self._seen[kind]:
            self._gone(uid)

    def _put(self, kind: Kind, obj: Object) -> None:
        entry = read(kind, obj)
        self._seen.setdefault(kind, set()).add(entry.uid)
        before = self.graph.put(entry)
        if before != entry and self._synced.is_set():
            self._look_at(entry)
            if before is not None:  # owners that waited for this one and need not any more
                blocks = {owner.uid for owner in entry.owners if owner.blocks}
                self._wake(owner.uid for owner in before.owners if owner.blocks and owner.uid not in blocks)
            if entry.deleting and not (before and before.deleting):
                # Dependents of an owner that now waits for them, and owners that wait for this one.
                self._wake(e.uid for e in self.graph.dependents(entry.uid))

    def _look_at(self, entry: OwnershipEntry) -> None:
        if entry.foreground or entry.orphaning:
            self._wake((entry.uid,))
        elif not entry.deleting and entry.owners:
            states = (self.graph.entries.get(owner.uid) for owner in entry.owners)
            absent = any(self.graph.alive.get(owner.uid) not in (entry.namespace, "") for owner in entry.owners)
            if absent or any(state is not None and state.foreground for state in states):
                self._wake((entry.uid,))

    def _gone(self, uid: str) -> None:
        dependents = [entry.uid for entry in self.graph.dependents(uid)]
        entry = self.graph.remove(uid)
        if self._synced.is_set():
            self._wake(dependents)
            self._wake(o.uid for o in (entry.owners if entry else ()) if o.uid in self.graph.entries)

    def _wake(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.queue.add(Request("", uid))

    # -- deciding

    async def reconcile(self, request: Request) -> Outcome | None:
        await self._synced.wait()
        entry = self.graph.entries.get(request.name)
        if entry is None:
            return None
        try:
            if entry.orphaning:
                await self._orphan_dependents(entry)
            elif entry.foreground:
                await self._finish_foreground(entry)
            elif not entry.deleting and entry.owners:
                await self._judge(entry)
        except errors.Conflict:
            return Outcome(requeue_after=RETRY_S)  # it was changed meanwhile, which is no news
        return None

    async def _judge(self, entry: OwnershipEntry) -> None:
        solid, absent, leaving = [], [], []
        for owner in entry.owners:
            if not await self._exists(owner, entry):
                absent.append(owner.uid)
            elif (state := self.graph.entries.get(owner.uid)) is not None and state.foreground:
                leaving.append(owner.uid)
            else:
                solid.append(owner.uid)
        if not absent and not leaving:
            return
        live = await self._live(entry)
        if live is None:
            return
        if solid:
            await self._drop_owners(entry, live, {*absent, *leaving})
            return
        finalizers = live["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers or (leaving and any(self.graph.dependents(entry.uid))):
            policy = "Foreground"
        else:
            policy = "Background"
        if {owner["uid"] for owner in live["metadata"].get("ownerReferences") or ()} != {o.uid for o in entry.owners}:
            return  # its owners changed meanwhile; the watch will say so
        version = live["metadata"]["resourceVersion"]
        if leaving and any(dependent.foreground for dependent in self.graph.dependents(entry.uid)):
            # A circle: each would wait for the next. This one does not hold its owners up any longer.
            owners = [{**owner, "blockOwnerDeletion": False} for owner in live["metadata"]["ownerReferences"]]
            freed = await self._patch(entry, live["metadata"], {"ownerReferences": owners})
            version = freed["metadata"]["resourceVersion"] if freed is not None else version
        await self._quietly(
            self.client.delete(
                entry.kind,
                entry.name,
                entry.namespace,
                uid=entry.uid,
                resource_version=version,
                propagation=policy,
            )
        )

    async def _exists(self, owner: Owner, entry: OwnershipEntry) -> bool:
        known = self.graph.alive.get(owner.uid)
        if known is not None and known in (entry.namespace, ""):
            return True
        group = owner.api_version.rpartition("/")[0]
        kind = self._kinds.get((group, owner.kind))
        if kind is None:
            if known is not None:
                self._report_namespace(owner, entry)
            raise errors.NotFound(f"the server does not serve {owner.api_version} {owner.kind}, an owner's kind")
        if kind.namespaced and not entry.namespace:
            self._report_namespace(owner, entry)
            return True  # a namespaced owner of a cluster-wide object cannot be looked up: leave it alone
        try:
            live = await self.client.get(kind, owner.name, entry.namespace if kind.namespaced else None)
        except errors.NotFound:
            live = None
        if live is not None and live["metadata"]["uid"] == owner.uid:
            return True
        if known is not None:
            self._report_namespace(owner, entry)
        return False

    def _report_namespace(self, owner: Owner, entry: OwnershipEntry) -> None:
        if (entry.uid, owner.uid) in self._reported:
            return
        self._reported.add((entry.uid, owner.uid))
        place = f"namespace: {entry.namespace}, name: {owner.name}, uid: {owner.uid}"
        shown = f"[{owner.api_version}/{owner.kind}, {place}]"
        about = {
            "apiVersion": entry.kind.api_version,
            "kind": entry.kind.kind,
            "namespace": entry.namespace,
            "name": entry.name,
            "uid": entry.uid,
        }
        message = f'ownerRef {shown} does not exist in namespace "{entry.namespace}"'
        self._events.warning(about, "OwnerRefInvalidNamespace", message)

    # -- acting

    async def _live(self, entry: OwnershipEntry) -> Object | None:
        try:
            live = await self.client.get(entry.kind, entry.name, entry.namespace or None)
        except errors.NotFound:
            return None
        return live if live["metadata"]["uid"] == entry.uid else None

    async def _finish_foreground(self, entry: OwnershipEntry) -> None:
        blocking = self.graph.blocking(entry.uid)
        if not blocking:
            await self._drop_finalizer(entry, FOREGROUND)
            return
        self._wake(dependent.uid for dependent in blocking if not dependent.deleting)

    async def _orphan_dependents(self, entry: OwnershipEntry) -> None:
        for dependent in [*self.graph.dependents(entry.uid)]:
            live = await self._live(dependent)
            if live is not None:
                await self._drop_owners(dependent, live, {entry.uid})
        await self._drop_finalizer(entry, ORPHAN)

    async def _drop_owners(self, entry: OwnershipEntry, live: Object, uids: set[str]) -> None:
        meta = live["metadata"]
        kept = [owner for owner in meta.get("ownerReferences") or () if owner["uid"] not in uids]
        await self._patch(entry, meta, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, entry: OwnershipEntry, finalizer: str) -> None:
        live = await self._live(entry)
        if live is None:
            return
        meta = live["metadata"]
        kept = [name for name in meta.get("finalizers") or () if name != finalizer]
        await self._patch(entry, meta, {"finalizers": kept or None})

    async def _patch(self, entry: OwnershipEntry, meta: Object, change: Object) -> Object | None:
        body = {"metadata": {"uid": entry.uid, "resourceVersion": meta["resourceVersion"], **change}}
        return await self._quietly(self.client.patch(entry.kind, entry.name, entry.namespace or None, body))

    async def _quietly(self, write: Awaitable[T]) -> T | None:
        """None: somebody else was quicker."""
        try:
            return await write
        except errors.NotFound:
            return None
