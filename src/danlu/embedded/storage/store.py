"""Current objects in memory; every change goes through the journal before anyone sees it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from danlu.embedded.storage.records import MARK
from danlu.embedded.storage.space import Space
from danlu.embedded.storage.stored import NO_LABELS, Stored, Table
from danlu.embedded.storage.watchcache import Change, Subscription, WatchCache
from danlu.errors import RequestTooLarge, ServiceUnavailable
from danlu.meta.kind import Object
from danlu.meta.objects import with_applied_fields_only

log = logging.getLogger("danlu.storage")

Observer = Callable[[Change], None]

MOST_OBJECT_BYTES = 1536 * 1024  # of one object as it is stored; what etcd takes in one request
SHARED = 256  # decoded objects that are kept for those who read them at the same time


class Journal(Protocol):
    """Makes changes durable, in order, many at a time."""

    def load(self) -> Iterator[tuple[int, str, str, str, str, bytes]]:
        """(revision, change type, resource, namespace, name, raw), in the order of revisions; type MARK: a revision
        that is taken and changes nothing."""

    def held(self) -> dict[tuple[str, str, str], str]:
        """(resource, namespace, name) of objects in quarantine, and why."""

    def set_aside(self, stored: Stored, why: str) -> None:
        """Into quarantine."""

    def forgotten(self) -> int:
        """Changes up to this revision may be missing from `load`, where a newer one took their place."""

    def start(self, done: Callable[[list[Change], Exception | None], None]) -> None: ...

    def append(self, change: Change) -> None:
        """Queue; `done` is called in the loop's thread once it is durable."""

    def close(self) -> None: ...


class Store:
    def __init__(self, journal: Journal, space: Space | None = None) -> None:
        self._journal = journal
        self.space = space
        self._tables: dict[str, Table] = {}
        self.watch_cache = WatchCache()
        self._pending: dict[tuple[str, str, str], Stored | None] = {}  # None: a delete on its way
        self._waiting: dict[int, asyncio.Future[Stored]] = {}
        self._observers: list[tuple[str, Observer]] = []
        self._observers_of: dict[str, tuple[Observer, ...]] = {}  # by resource, as they were asked for
        self._shared: dict[int, Object] = {}
        self._last_revision = 1
        # In quarantine: neither there nor deleted. Whoever asks must not conclude that they are gone.
        self.held: dict[tuple[str, str, str], str] = {}
        self.revision = 1

    # -- life

    def start(self) -> None:
        forgotten = self._journal.forgotten()
        self.watch_cache.forgotten = forgotten
        for revision, kind, resource, namespace, name, raw in self._journal.load():
            self.revision = self._last_revision = revision
            if kind == MARK:
                continue
            stored = Stored(sys.intern(resource), sys.intern(namespace), name, revision, raw)
            change = Change(kind, stored, self._table(resource).objects.get((namespace, name)))
            self._make_visible(change)
            if revision > forgotten:
                self.watch_cache.remember(change)
        for key, why in self._journal.held().items():
            if self.get(*key) is None:
                self.held[key] = why
        self._journal.start(self._durable)

    async def flush(self) -> None:
        """Wait until everything submitted so far is durable (or has failed)."""
        if self._waiting:
            await asyncio.gather(*self._waiting.values(), return_exceptions=True)

    async def close(self) -> None:
        await self.flush()
        self._journal.close()

    # -- reading: durable state

    def get(self, resource: str, namespace: str, name: str) -> Stored | None:
        table = self._tables.get(resource)
        return table.objects.get((namespace, name)) if table else None

    def scan(self, resource: str, namespace: str | None = None) -> list[Stored]:
        table = self._tables.get(resource)
        return table.scan(namespace) if table else []

    def count(self, resource: str) -> int:
        table = self._tables.get(resource)
        return len(table.objects) if table else 0

    def resources(self) -> list[str]:
        return [name for name, table in self._tables.items() if table.objects]

    def shared(self, stored: Stored) -> Object:
        """The object decoded once for all who look at this version: watchers here are told of it together.

        Nobody changes it. It tells of managedFields what informers keep of them.
        """
        found = self._shared.get(stored.revision)
        if found is None:
            if len(self._shared) >= SHARED:
                del self._shared[next(iter(self._shared))]
            found = self._shared[stored.revision] = with_applied_fields_only(stored.obj)
        return found

    def why_held(self, resource: str, namespace: str, name: str) -> str:
        """Why this object is in quarantine; "" when it is not. `danlu repair` takes findings away while we run."""
        key = (resource, namespace, name)
        if key in self.held and key not in self._journal.held():
            del self.held[key]
        return self.held.get(key, "")

    def subscribe(self, resource: str, since: int) -> Subscription:
        """Raises Expired when changes after that revision are no longer known."""
        return self.watch_cache.follow(resource, since)

    # -- reading: what a write builds on

    def latest(self, resource: str, namespace: str, name: str) -> Stored | None:
        key = (resource, namespace, name)
        if key in self._pending:
            return self._pending[key]
        return self.get(resource, namespace, name)

    def scan_latest(self, resource: str, namespace: str | None = None) -> list[Stored]:
        result = self.scan(resource, namespace)
        pending = {
            (key[1], key[2]): stored
            for key, stored in self._pending.items()
            if key[0] == resource and (namespace is None or key[1] == namespace)
        }
        if pending:
            merged = {(stored.namespace, stored.name): stored for stored in result} | pending
            result = [stored for _, stored in sorted(merged.items()) if stored is not None]
        return result

    # -- writing

    def put(self, resource: str, obj: Object) -> asyncio.Future[Stored]:
        """Submit an object. Returns at once with its revision assigned; the future ends when it is durable."""
        revision = self._last_revision + 1
        meta: dict[str, Any] = obj["metadata"]
        meta["resourceVersion"] = str(revision)
        stored = Stored.of(resource, obj, revision)
        if len(stored.raw) > MOST_OBJECT_BYTES:
            raise RequestTooLarge(f"Request entity too large: limit is {MOST_OBJECT_BYTES}")
        self._last_revision = revision
        previous = self.latest(resource, stored.namespace, stored.name)
        change = Change("MODIFIED" if previous else "ADDED", stored, previous)
        if self.space is not None and self.space.alarm and (refusal := self.space.refusal(change)) is not None:
            return self._refused(refusal)
        self._pending[(resource, stored.namespace, stored.name)] = stored
        if self.held:
            self.held.pop((resource, stored.namespace, stored.name), None)
        return self._submit(change)

    def delete(self, resource: str, obj: Object) -> asyncio.Future[Stored]:
        """Remove an object; `obj` is its last state, which watchers are shown."""
        self._last_revision = revision = self._last_revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        stored = Stored.of(resource, obj, revision)
        change = Change("DELETED", stored, self.latest(resource, stored.namespace, stored.name))
        self._pending[(resource, stored.namespace, stored.name)] = None
        return self._submit(change)

    def load_each(self, resource: str, take: Callable[[Stored], None]) -> None:
        """At start: hands over each object; one that cannot be used must not keep the others from being served."""
        for stored in self.scan_latest(resource):
            try:
                take(stored)
            except Exception as error:
                log.exception("%s %s/%s cannot be used", resource, stored.namespace, stored.name)
                self.set_aside(stored, f"{type(error).__name__}: {error}")

    def set_aside(self, stored: Stored, why: str) -> None:
        """At start: what cannot be used goes into quarantine, and the server goes on without it."""
        self._journal.set_aside(stored, why)
        self._last_revision = revision = self._last_revision + 1
        gone = Stored(stored.resource, stored.namespace, stored.name, revision, stored.raw, NO_LABELS)
        key = (stored.resource, stored.namespace, stored.name)
        self.held[key] = why
        self._pending[key] = None
        future: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting[revision] = future
        self._journal.append(Change("DELETED", gone, stored))

    def observe(self, callback: Observer, resource: str = "") -> None:
        """Call back for every write (of that resource) at the moment it is submitted (before it is durable)."""
        self._observers.append((resource, callback))
        self._observers_of.clear()

    def _refused(self, refusal: Exception) -> asyncio.Future[Stored]:
        """Nothing was submitted; its revision is passed over."""
        future: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        future.set_exception(refusal)
        return future

    def _submit(self, change: Change) -> asyncio.Future[Stored]:
        future: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting[change.revision] = future
        self._tell_observers(change)
        self._journal.append(change)
        return future

    def _tell_observers(self, change: Change) -> None:
        """What one of them makes of an object it cannot read is its own affair: the write goes on, or would never end
        for whoever waits for it."""
        stored = change.stored
        observers = self._observers_of.get(stored.resource)
        if observers is None:
            observers = tuple(one for resource, one in self._observers if resource in ("", stored.resource))
            self._observers_of[stored.resource] = observers
        for callback in observers:
            try:
                callback(change)
            except Exception:
                log.exception("an observer of %s failed on %s/%s", stored.resource, stored.namespace, stored.name)

    def _durable(self, changes: list[Change], error: Exception | None) -> None:
        if error is not None:
            self._take_back(changes)
        published: dict[str, list[Change]] = {}
        for change in changes:
            stored = change.stored
            key = (stored.resource, stored.namespace, stored.name)
            future = self._waiting.pop(change.revision, None)
            if error is None:
                self._make_visible(change)
                published.setdefault(stored.resource, []).append(change)
            pending = self._pending.get(key, stored)
            if pending is stored or (pending is None and change.type == "DELETED"):
                self._pending.pop(key, None)
            if future is not None and not future.done():
                if error is None:
                    future.set_result(stored)
                else:
                    future.set_exception(self._problem(error))
        if published:
            self.revision = changes[-1].revision
        for resource, some in published.items():
            self.watch_cache.publish(resource, some)

    def _problem(self, error: Exception) -> Exception:
        if self.space is not None and self.space.is_full(error):
            return self.space.exceeded()
        return ServiceUnavailable(f"the change could not be stored: {error}")

    def _take_back(self, changes: list[Change]) -> None:
        """Tell the observers that these did not happen, newest first."""
        for change in reversed(changes):
            if change.previous is None:
                undone = Change("DELETED", change.stored, change.stored)
            else:
                undone = Change("ADDED" if change.type == "DELETED" else "MODIFIED", change.previous, change.stored)
            self._tell_observers(undone)

    def _make_visible(self, change: Change) -> None:
        stored = change.stored
        table = self._table(stored.resource)
        if change.type == "DELETED":
            table.remove((stored.namespace, stored.name))
        else:
            table.put((stored.namespace, stored.name), stored)

    def _table(self, resource: str) -> Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table()
        return table
