"""`Informer`: the objects of one kind, kept current in memory by list + watch.

Invariants:
- The cache never goes back in time: an event older than what is cached is dropped. So the answer of a write may be put
  in at once (`record`), and the watch's own, later copy of it changes nothing.
- Every change is told to the handlers exactly once, in order, including those that a relist discovers.
- A name reused by a new object (another uid) is told as DELETED of the old and ADDED of the new.
- Objects in the cache are shared: nobody changes them.
- Of managedFields, half of an object's memory, they have what was applied: only `outcomewriter` reads them, for that.
- A `packed` cache keeps JSON, a fifth of an object's memory, and reads it anew each time: for a program that knows of
  many objects and looks at few.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any, cast

from danlu import errors
from danlu.client.client import Client
from danlu.client.indexer import Indexer, key_of
from danlu.meta import owners
from danlu.meta.kind import Kind, Object
from danlu.meta.objects import with_applied_fields_only

log = logging.getLogger(__name__)

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

Handler = Callable[[str, Object, Object | None], None]
"""(event type, object, what was cached before). For DELETED the object is its last state. Must not block."""

OwnerHandler = Callable[[str, Object, Object | None, str], None]
"""As `Handler`, with the name of the owner that controls the object."""

FIRST_BACKOFF_S = 0.2
LONGEST_BACKOFF_S = 30.0
WATCH_S = 300, 600  # until it is asked for again: a silently dead connection is noticed, and not all at once
PAGE = 500  # objects in one answer


class Informer(Indexer):
    def __init__(
        self,
        client: Client,
        kind: Kind,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        *,
        packed: bool = False,
    ) -> None:
        super().__init__(kind, packed=packed)
        self.client = client
        self.namespace = namespace
        self.labels = labels
        self.fields = fields
        self.resource_version = ""  # up to where the watch has been read
        self.forbidden = ""  # in the server's words, while it does not let us read this kind
        self._handlers: list[Handler] = []
        self._owner_handlers: dict[tuple[str, str], list[OwnerHandler]] = {}
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # -- set-up

    def add_handler(self, handler: Handler) -> None:
        """A handler that comes late is told of what is already known."""
        self._handlers.append(handler)
        for obj in self.list():
            self._tell(handler, ADDED, obj, None)

    def add_owner_handler(self, group: str, kind: str, handler: OwnerHandler) -> None:
        """Told only of what an object of this kind controls; a hundred kinds with children cost as much as one."""
        if not self._owner_handlers:
            self.add_handler(self._tell_owner)
        self._owner_handlers.setdefault((group, kind), []).append(handler)
        for obj in self.list():
            owner = _owner(obj)
            if owner is not None and owner[:2] == (group, kind):
                handler(ADDED, obj, None, owner[2])

    # -- running

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"informer {self.kind.resource}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def synced(self) -> None:
        """Returns when the first list is in the cache."""
        await self._synced.wait()

    @property
    def has_synced(self) -> bool:
        return self._synced.is_set()

    async def _run(self) -> None:
        backoff = FIRST_BACKOFF_S
        while True:
            try:
                if not self.resource_version:
                    await self._relist()
                if await self._follow():
                    backoff = FIRST_BACKOFF_S
            except errors.Expired:
                log.debug("watch of %s is too old, listing again", self.kind.resource)
                self.resource_version = ""
                await asyncio.sleep(FIRST_BACKOFF_S / 10)
                continue
            except (errors.ServiceUnavailable, errors.Timeout) as error:
                # A server that is not there yet, or went away: the cache stays as it was meanwhile.
                log.debug("watch of %s: %s; trying again in %.1f s", self.kind.resource, error, backoff)
            except Exception as error:
                self.forbidden = error.message if isinstance(error, errors.Forbidden) else ""
                log.info("watch of %s: %s; trying again in %.1f s", self.kind.resource, error, backoff)
            else:
                continue
            await asyncio.sleep(backoff * random.uniform(1.0, 1.3))
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)

    async def _relist(self) -> None:
        # A cache that is to be small is not filled from one huge answer.
        limit = PAGE if self.packed else 0
        pages = self.client.pages(self.kind, self.namespace, labels=self.labels, fields=self.fields, limit=limit)
        listed: set[tuple[str, str]] = set()
        version = ""
        async with aclosing(cast(Any, pages)) as found:
            async for page in found:
                self._allow()
                version = page.resource_version
                listed |= self._put_all(page.items)
        self._keep_only(listed, version)

    async def _follow(self) -> bool:
        """Reads one watch to its end. True when it brought anything."""
        heard = False
        stream = self.client.watch(
            self.kind,
            self.namespace,
            since=self.resource_version,
            labels=self.labels,
            fields=self.fields,
            timeout_s=random.randint(*WATCH_S),
            opened=self._allow,
        )
        async with aclosing(cast(Any, stream)) as events:
            async for event in events:
                heard = True
                obj = event.object
                if event.type == DELETED:
                    self._remove(obj)
                elif event.type != "BOOKMARK":
                    self._put(obj)
                self._advance(_version(obj))
        if not heard:
            await asyncio.sleep(FIRST_BACKOFF_S)  # a server that ends every watch at once must not make us spin
        return heard

    def _allow(self) -> None:
        self.forbidden = ""

    def _advance(self, version: str) -> None:
        """A deletion may carry the version of the object's last state: that is no reason to read on from there."""
        if not _newer(self.resource_version, version):
            self.resource_version = version

    # -- changing the cache

    def replace(self, items: Iterable[Object], resource_version: str) -> None:
        """The cache becomes this list; the differences are told as events. Newer own writes stay."""
        self._keep_only(self._put_all(items), resource_version)

    def _put_all(self, items: Iterable[Object]) -> set[tuple[str, str]]:
        listed = set()
        for obj in items:
            listed.add(key_of(obj))
            self._put(obj)
        return listed

    def _keep_only(self, listed: set[tuple[str, str]], resource_version: str) -> None:
        for key in self.keys():
            obj = self.get(*key) if key not in listed else None
            if obj is not None and not _newer(_version(obj), resource_version):
                self._drop(obj, obj)
        self.resource_version = resource_version
        self._synced.set()

    def record(self, obj: Object) -> None:
        """Takes in the answer of a write, so that the writer reads what it wrote before the watch brings it.

        Only for an informer without selectors: whether the object belongs into a selection is the server's to say.
        """
        if self.labels or self.fields or not self._synced.is_set():
            return
        if self.namespace and obj["metadata"].get("namespace") != self.namespace:
            return
        # If the watch is already past this version, whatever became of the object has been told.
        if _newer(_version(obj), self.resource_version):
            self._put(obj)

    def record_deletion(self, obj: Object) -> None:
        """Takes in that a delete was granted: the cached object counts as terminating until the watch removes it."""
        meta = obj["metadata"]
        if meta.get("deletionTimestamp") and meta.get("resourceVersion"):
            self.record(obj)
        cached = self.get(meta.get("namespace"), meta["name"])
        if cached is None or (meta.get("uid") and cached["metadata"].get("uid") != meta["uid"]):
            return
        if not cached["metadata"].get("deletionTimestamp"):
            marked = {**cached, "metadata": {**cached["metadata"], "deletionTimestamp": "1970-01-01T00:00:00Z"}}
            self._store(marked, cached)

    def _put(self, obj: Object) -> None:
        obj = with_applied_fields_only(obj)
        meta = obj["metadata"]
        cached = self.get(meta.get("namespace"), meta["name"])
        if cached is None:
            self._store(obj, None)
            self._tell_all(ADDED, obj, None)
            return
        if _version(cached) == _version(obj) or _newer(_version(cached), _version(obj)):
            return
        if cached["metadata"].get("uid") != meta.get("uid"):
            self._drop(cached, cached)
            self._put(obj)
            return
        self._store(obj, cached)
        self._tell_all(MODIFIED, obj, cached)

    def _remove(self, obj: Object) -> None:
        meta = obj["metadata"]
        cached = self.get(meta.get("namespace"), meta["name"])
        if cached is not None and cached["metadata"].get("uid") == meta.get("uid"):
            self._drop(cached, obj)

    def _drop(self, cached: Object, last: Object) -> None:
        self._forget(cached)
        self._tell_all(DELETED, last, cached)

    def _tell_all(self, event: str, obj: Object, old: Object | None) -> None:
        for handler in self._handlers:
            self._tell(handler, event, obj, old)

    def _tell(self, handler: Handler, event: str, obj: Object, old: Object | None) -> None:
        try:
            handler(event, obj, old)
        except Exception:  # one listener's bug is not the others' loss
            log.exception("a handler of %s failed on %s %s", self.kind.resource, event, key_of(obj))

    def _tell_owner(self, event: str, obj: Object, old: Object | None) -> None:
        owner, before = _owner(obj), _owner(old) if old is not None else None
        for one in (owner, before) if before != owner else (owner,):  # who it belonged to before must hear of it too
            if one is not None:
                for handler in self._owner_handlers.get(one[:2], ()):
                    handler(event, obj, old, one[2])


def _version(obj: Object) -> str:
    return obj["metadata"].get("resourceVersion") or ""


def _newer(one: str, other: str) -> bool:
    """Versions are one growing counter of the server; of what is not a number nothing is known."""
    try:
        return int(one) > int(other)
    except ValueError:
        return False


def _owner(obj: Object) -> tuple[str, str, str] | None:
    """Group, kind and name of the owner that controls it. Its version may differ from ours, its group may not."""
    found = owners.controller_of(obj)
    return (found["apiVersion"].rpartition("/")[0], found["kind"], found["name"]) if found is not None else None
