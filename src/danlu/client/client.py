"""`Client`: the verbs of the Kubernetes API as coroutines on plain objects.

Every failure is one of `danlu.errors`; nothing is retried here, because only the caller knows whether it may be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import orjson

from danlu import errors
from danlu.client import watch as watching
from danlu.client.transport import Query, Transport, TransportResponse
from danlu.client.watch import WatchEvent
from danlu.meta.kind import Kind, Object

PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
Pairs: TypeAlias = list[tuple[str, str]]  # spelled here because `Client.list` hides the builtin inside the class
JSON = {"accept": "application/json", "content-type": "application/json"}


@dataclass(slots=True)
class ObjectList:
    items: list[Object] = field(default_factory=list)
    resource_version: str = ""


WriteObserver = Callable[[Kind, Object, bool], None]
"""Told of each write that succeeded: the kind, the object as the server answered it, whether it was a delete."""


class Client:
    def __init__(self, transport: Transport, *, manager: str = "", observer: WriteObserver | None = None) -> None:
        """`manager` names the writer in managedFields; empty leaves it to the server."""
        self.transport = transport
        self.manager = manager
        self._observer = observer

    def observed_by(self, observer: WriteObserver) -> Client:
        """The same client, with someone told of each write (a cache that must not lag behind its own writer)."""
        return Client(self.transport, manager=self.manager, observer=observer)

    def named(self, manager: str) -> Client:
        return Client(self.transport, manager=manager, observer=self._observer)

    async def close(self) -> None:
        await self.transport.close()

    # -- reading

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        return await self._json("GET", _path(kind, namespace, name), [])

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", limit: int = 0
    ) -> ObjectList:
        """All objects that match. `limit` is the size of a page: the pages are followed to the end."""
        found = ObjectList()
        async for page in self.pages(kind, namespace, labels=labels, fields=fields, limit=limit):
            found.items += page.items
            found.resource_version = page.resource_version
        return found

    async def pages(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", limit: int = 0
    ) -> AsyncIterator[ObjectList]:
        """As `list`, for whoever does not want to hold all of them at once."""
        query = _selectors(labels, fields)
        if limit:
            query.append(("limit", str(limit)))
        token = ""
        while True:
            page = await self._json("GET", _path(kind, namespace), [*query, ("continue", token)] if token else query)
            meta = page.get("metadata") or {}
            items = page.get("items") or []
            for item in items:
                # Servers leave these two out of the items of a typed list.
                if "kind" not in item:
                    item["apiVersion"] = kind.api_version
                    item["kind"] = kind.kind
            yield ObjectList(items, meta.get("resourceVersion", ""))
            token = meta.get("continue") or ""
            if not token:
                return
            await asyncio.sleep(0)  # a server in this process answers at once: others get their turn between pages

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        since: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = True,
        timeout_s: int = 0,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[WatchEvent]:
        """Events after `since`, until the server ends the stream. BOOKMARK events are passed on.

        `opened` is called when the server has let us in: the first event may be long in coming.
        """
        query = [*_selectors(labels, fields), ("watch", "true")]
        if since:
            query.append(("resourceVersion", since))
        if bookmarks:
            query.append(("allowWatchBookmarks", "true"))
        if timeout_s:
            query.append(("timeoutSeconds", str(timeout_s)))
        response = await self.request("GET", _path(kind, namespace), query)
        opened()
        if response.events is not None:
            async with aclosing(cast(Any, response.events)) as batches:
                async for batch in batches:
                    for type, obj in batch:
                        yield WatchEvent(type, obj)
            return
        body = response.body if not isinstance(response.body, bytes) else _once(response.body)
        try:
            async with aclosing(cast(Any, watching.events(body))) as stream:
                async for event in stream:
                    yield event
        finally:
            close = getattr(body, "aclose", None)
            if close is not None:
                await close()

    # -- writing

    async def create(self, kind: Kind, obj: Object, namespace: str | None = None, *, dry_run: bool = False) -> Object:
        query = self._write_query(dry_run)
        made = await self._json("POST", _path(kind, namespace or _namespace(kind, obj)), query, _typed(kind, obj))
        return made if dry_run else self._wrote(kind, made)

    async def post(self, kind: Kind, obj: Object, namespace: str | None) -> None:
        """`create` for who needs no answer (an event): it is not even read, and no observer is told."""
        path = _path(kind, namespace)
        await _whole(await self.request("POST", path, self._write_query(), orjson.dumps(_typed(kind, obj))))

    async def update(self, kind: Kind, obj: Object, *, subresource: str | None = None) -> Object:
        """managedFields stay the server's: what is sent is rarely all of them (informers keep a part), so none is."""
        path = _path(kind, _namespace(kind, obj), obj["metadata"]["name"], subresource)
        body = {**_typed(kind, obj), "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
        if subresource == "status":
            body.pop("spec", None)  # no server looks at it, and reading it is a tenth of what this costs
        return self._wrote(kind, await self._json("PUT", path, self._write_query(), body))

    async def update_status(self, kind: Kind, obj: Object) -> Object:
        return await self.update(kind, obj, subresource="status")

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        type: str = "merge",
        subresource: str | None = None,
        manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        query = self._write_query(dry_run, manager)
        if force:
            query.append(("force", "true"))
        path = _path(kind, namespace, name, subresource)
        headers = {"accept": "application/json", "content-type": PATCH_TYPES[type]}
        patched = await self._json("PATCH", path, query, body, headers)
        return patched if dry_run else self._wrote(kind, patched)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
        propagation: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        options = _delete_options(grace, propagation, uid, resource_version)
        left = await self._json("DELETE", _path(kind, namespace, name), [], options)
        if self._observer is not None:
            self._observer(kind, _deleted(kind, name, namespace, left), True)

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        grace: int | None = None,
        propagation: str | None = None,
    ) -> None:
        options = _delete_options(grace, propagation, None, None)
        await self._json("DELETE", _path(kind, namespace), _selectors(labels, fields), options)

    async def get_subresource(self, kind: Kind, name: str, namespace: str | None, subresource: str) -> Object:
        return await self._json("GET", _path(kind, namespace, name, subresource), [])

    async def create_subresource(
        self, kind: Kind, name: str, namespace: str | None, subresource: str, obj: Object
    ) -> Object:
        """`binding`, `eviction`, `token`."""
        return await self._json("POST", _path(kind, namespace, name, subresource), self._write_query(), obj)

    # -- the request itself

    async def request(
        self, method: str, path: str, query: Query = (), body: bytes = b"", headers: Mapping[str, str] = JSON
    ) -> TransportResponse:
        """The raw answer to any path; a refusal is raised. Streams (logs) are read from `body` by the caller."""
        response = await self.transport.request(method, path, query, headers, body)
        if response.status >= 400:
            raise await _refusal(response)
        return response

    async def _json(
        self, method: str, path: str, query: Query, body: Any = None, headers: Mapping[str, str] = JSON
    ) -> Object:
        response = await self.request(method, path, query, b"" if body is None else orjson.dumps(body), headers)
        return cast(Object, orjson.loads(await _whole(response)))

    def _write_query(self, dry_run: bool = False, manager: str | None = None) -> Pairs:
        # A server warns of unknown fields unless told not to. We read no warnings, and to look for them is a quarter of
        # what a pod's creation costs a kube-apiserver.
        query = [("fieldValidation", "Ignore")]
        if manager or self.manager:
            query.append(("fieldManager", manager or self.manager))
        if dry_run:
            query.append(("dryRun", "All"))
        return query

    def _wrote(self, kind: Kind, obj: Object) -> Object:
        if self._observer is not None and obj.get("kind") == kind.kind:
            self._observer(kind, obj, False)
        return obj


def _path(kind: Kind, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    return kind.path(namespace if kind.namespaced else None, quote(name, safe=":") if name else None, subresource)


def _typed(kind: Kind, obj: Object) -> Object:
    """Servers read the type of custom objects from the body, not from the path."""
    return obj if "kind" in obj else {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def _namespace(kind: Kind, obj: Object) -> str | None:
    return obj["metadata"].get("namespace") if kind.namespaced else None


def _selectors(labels: str, fields: str) -> list[tuple[str, str]]:
    query = []
    if labels:
        query.append(("labelSelector", labels))
    if fields:
        query.append(("fieldSelector", fields))
    return query


def _delete_options(
    grace: int | None, propagation: str | None, uid: str | None, resource_version: str | None
) -> Object:
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation:
        options["propagationPolicy"] = propagation
    preconditions = {}
    if uid:
        preconditions["uid"] = uid
    if resource_version:
        preconditions["resourceVersion"] = resource_version
    if preconditions:
        options["preconditions"] = preconditions
    return options


def _deleted(kind: Kind, name: str, namespace: str | None, left: Object) -> Object:
    """What a delete left behind: the object (finalizers or grace hold it), or only who it was."""
    if left.get("kind") == kind.kind:
        return left
    meta = {"name": name, "uid": (left.get("details") or {}).get("uid", "")}
    if namespace and kind.namespaced:
        meta["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _whole(response: TransportResponse) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    return b"".join([chunk async for chunk in response.body])


async def _refusal(response: TransportResponse) -> errors.ApiError:
    raw = await _whole(response)
    try:
        status = orjson.loads(raw)
        if not isinstance(status, dict):
            raise ValueError
    except ValueError:  # a proxy's page, or nothing
        status = {"message": raw.decode(errors="replace").strip()[:500]}
    return errors.from_status(response.status, status)
