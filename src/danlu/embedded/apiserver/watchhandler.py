"""watch: a stream of changes, one JSON object a line."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast

import orjson

from danlu.embedded.apiserver import answerencoder, representations
from danlu.embedded.apiserver.listselectors import Matches, matcher
from danlu.embedded.apiserver.negotiation import Wanted
from danlu.embedded.apiserver.readhandler import LIST_OPTIONS, MATCH, check_version, parse_version
from danlu.embedded.apiserver.request import Call, StreamResponse
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Change, Stored, Subscription
from danlu.errors import ApiError, Expired
from danlu.meta.fields import FieldError, forbidden, invalid_error, not_supported
from danlu.meta.kind import Object

BOOKMARK_SECONDS = 60.0
# A watch without timeoutSeconds ends by itself after 30 to 60 minutes, as Kubernetes' do.
MIN_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# Lines are sent together up to about this size: fewer, larger writes.
CHUNK_BYTES = 256 * 1024
LINE = {kind: b'{"type":"%s","object":%%b}\n' % kind.encode() for kind in ("ADDED", "MODIFIED", "DELETED")}


async def watch(call: Call) -> StreamResponse:
    served = call.served
    assert served is not None
    store = call.server.store
    matches = matcher(call, served)
    initial = _initial_events(call)
    answerencoder.wanted(call)
    asked_seconds = call.query.integer("timeoutSeconds")
    version = parse_version(call.query.get("resourceVersion"))
    from_now = initial or version == 0
    if not from_now:
        check_version(call, store)
    since = store.revision if from_now else version
    snapshot = store.scan(served.key, call.namespace or None) if from_now else []
    try:
        subscription = store.subscribe(served.key, since)
    except Expired as error:
        # Kubernetes answers 200 and says so in the stream.
        return StreamResponse(_just(_error_line(error)))
    seconds = asked_seconds or MIN_SECONDS * (1 + random.random())
    rest = (subscription, snapshot, since, seconds)
    lines, end_marked = Lines(call, served, matches), _marks_end(call, initial)
    if call.in_process and lines.plain:
        events = _follow(call, Events(call, served, matches), *rest, end_marked=end_marked)
        return StreamResponse(_just(b""), events=events, release=subscription.close)
    chunks = _joined(_follow(call, lines, *rest, end_marked=end_marked))
    return StreamResponse(chunks, release=subscription.close, overdue=subscription.overflow)


def _initial_events(call: Call) -> bool:
    """Whether the stream begins with what is there, marked off from what comes; refuses options that contradict."""
    query = call.query
    match, asked = query.get(MATCH), "sendInitialEvents" in query
    errors: list[FieldError] = []
    if asked and match != "NotOlderThan":
        errors.append(forbidden(MATCH, f"sendInitialEvents requires setting {MATCH} to NotOlderThan"))
    if asked and match not in ("", "NotOlderThan"):
        errors.append(not_supported(MATCH, match, ["NotOlderThan"]))
    if match and not asked:
        errors.append(forbidden(MATCH, f"{MATCH} is forbidden for watch unless sendInitialEvents is provided"))
    if query.get("continue"):
        errors.append(forbidden(MATCH, f"{MATCH} is forbidden when continue is provided"))
    if errors:
        raise invalid_error(LIST_OPTIONS, "", errors)
    return asked and query.flag("sendInitialEvents")


def _marks_end(call: Call, initial: bool) -> bool:
    """The mark between the two is a bookmark, so who wants no bookmarks does not get it."""
    return initial and call.query.flag("allowWatchBookmarks")


async def _just(line: bytes) -> AsyncIterator[bytes]:
    yield line


def _error_line(error: ApiError) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": error.status()}) + b"\n"


Line = TypeVar("Line")


class Shape(Generic[Line]):
    """What one watcher gets of each change."""

    def __init__(self, call: Call, served: ServedKind, matches: Matches | None) -> None:
        self.served = served
        self.matches = matches
        self.namespace = call.namespace
        self.wanted: Wanted = answerencoder.wanted(call)
        self.include = call.query.get("includeObject")
        self.plain = self.wanted.plain and served.from_stored is None
        self.last_lines = call.server.last_lines

    def of(self, change: Change) -> Line | None:
        stored, previous = change.stored, change.previous
        if self.namespace and stored.namespace != self.namespace:
            return None
        if self.matches is None:
            kind = change.type
        else:
            # An object that begins to match appears as ADDED, one that ceases to as DELETED.
            now = self.matches(stored)
            if change.type == "DELETED":
                kind = "DELETED" if now or (previous is not None and self.matches(previous)) else ""
            else:
                before = previous is not None and self.matches(previous)
                kind = ("MODIFIED" if before else "ADDED") if now else ("DELETED" if before else "")
        return self.line(kind, stored) if kind else None

    def all_of(self, changes: list[Change]) -> list[Line]:
        return [line for change in changes if (line := self.of(change)) is not None]

    def line(self, kind: str, stored: Stored) -> Line:
        raise NotImplementedError

    def bookmark(self, revision: int, initial_end: bool = False) -> Line:
        raise NotImplementedError

    def bookmark_object(self, revision: int, initial_end: bool) -> Object:
        meta: Object = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        return {"kind": self.served.kind.kind, "apiVersion": self.served.kind.api_version, "metadata": meta}


class LastLines:
    """The lines that were made last. Watchers of one resource are told of the same changes one after the other, so all
    but the first find theirs here; and since it is only the last ones, what a slow watcher lags behind is not kept."""

    __slots__ = ("_key", "_lines")

    def __init__(self) -> None:
        self._key: tuple[int, int, str] | None = None
        self._lines = b""

    def of(self, changes: list[Change], namespace: str) -> bytes:
        # Watchers are given every change of their resource, so that the first and the last tell which ones they are.
        key = (changes[0].revision, changes[-1].revision, namespace)
        if key != self._key:
            seen = [one for one in changes if one.stored.namespace == namespace] if namespace else changes
            self._lines = b"".join([LINE[change.type] % change.stored.raw for change in seen])
            self._key = key
        return self._lines


class Lines(Shape[bytes]):
    """Lines of JSON: bytes around bytes that are there, so nothing is kept for them."""

    def all_of(self, changes: list[Change]) -> list[bytes]:
        if self.plain and self.matches is None:
            return [self.last_lines.of(changes, self.namespace)]
        return super().all_of(changes)

    def line(self, kind: str, stored: Stored) -> bytes:
        if self.plain:
            return LINE[kind] % stored.raw
        obj = answerencoder.object_of(self.served, stored)
        if not self.wanted.plain:
            obj = representations.convert_one(self.wanted, self.served, obj, self.include)
        return orjson.dumps({"type": kind, "object": obj}) + b"\n"

    def bookmark(self, revision: int, initial_end: bool = False) -> bytes:
        obj = self.bookmark_object(revision, initial_end)
        if not self.wanted.plain:
            obj = representations.convert_bookmark(self.wanted, self.served, obj)
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


class Events(Shape[tuple[str, Object]]):
    """Objects, for watchers in this process."""

    def __init__(self, call: Call, served: ServedKind, matches: Matches | None) -> None:
        super().__init__(call, served, matches)
        self._shared = call.server.store.shared

    def line(self, kind: str, stored: Stored) -> tuple[str, Object]:
        return kind, self._shared(stored)

    def bookmark(self, revision: int, initial_end: bool = False) -> tuple[str, Object]:
        return "BOOKMARK", self.bookmark_object(revision, initial_end)


async def _joined(batches: AsyncIterator[list[bytes]]) -> AsyncIterator[bytes]:
    async with aclosing(cast(Any, batches)) as stream:
        async for batch in stream:
            if joined := b"".join(batch):
                yield joined


async def _follow(
    call: Call,
    lines: Shape[Line],
    subscription: Subscription,
    snapshot: list[Stored],
    since: int,
    seconds: float,
    *,
    end_marked: bool,
) -> AsyncIterator[list[Line]]:
    store = call.server.store
    bookmarks = call.query.flag("allowWatchBookmarks")
    ends_at = time.monotonic() + seconds
    try:
        for part in _parts(snapshot, [len(stored.raw) for stored in snapshot]):
            yield [lines.line("ADDED", s) for s in part if lines.matches is None or lines.matches(s)]
        snapshot.clear()
        if end_marked:
            yield [lines.bookmark(since, initial_end=True)]
        while (left := ends_at - time.monotonic()) > 0:
            changes = await subscription.take(min(left, BOOKMARK_SECONDS))
            # Taken before the lines are made: everything up to here is either sent or does not concern this watcher.
            seen = store.revision
            idle = not changes
            for some in _parts(changes, [len(change.stored.raw) for change in changes]):
                yield lines.all_of(some)
                subscription.sent(some)
            changes.clear()
            if subscription.overflowed:
                return
            if idle and bookmarks:
                yield [lines.bookmark(seen)]
    finally:
        subscription.close()


Item = TypeVar("Item")


def _parts(items: list[Item], sizes: list[int]) -> Iterator[list[Item]]:
    """One after the other, each of a sensible size to be sent: a line is made when the one before it has gone out.

    A watcher that does not read then holds no more of its own than one part; the rest is what others have, too.
    """
    if sum(sizes) < CHUNK_BYTES:
        if items:
            yield items
        return
    part: list[Item] = []
    bytes_in_it = 0
    for item, size in zip(items, sizes, strict=True):
        part.append(item)
        bytes_in_it += size
        if bytes_in_it >= CHUNK_BYTES:
            yield part
            part, bytes_in_it = [], 0
    if part:
        yield part
