"""watch: a stream of changes, one JSON object a line."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator

import orjson

from danlu.embedded.apiserver import encoding, tables
from danlu.embedded.apiserver.negotiation import Wanted
from danlu.embedded.apiserver.reading import LIST_OPTIONS, MATCH, check_version, parse_version
from danlu.embedded.apiserver.request import Call, StreamResponse
from danlu.embedded.apiserver.selecting import Matches, matcher
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


async def watch(call: Call) -> StreamResponse:
    served = call.served
    assert served is not None
    store = call.server.store
    matches = matcher(call, served)
    initial = _initial_events(call)
    encoding.wanted(call)
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
    lines = Lines(call, served, matches)
    seconds = asked_seconds or MIN_SECONDS * (1 + random.random())
    chunks = _follow(call, lines, subscription, snapshot, since, seconds, end_marked=_marks_end(call, initial))
    return StreamResponse(chunks, release=subscription.close)


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


class Lines:
    """Turns changes into the lines that one watcher gets."""

    def __init__(self, call: Call, served: ServedKind, matches: Matches | None) -> None:
        self.served = served
        self.matches = matches
        self.namespace = call.namespace
        self.wanted: Wanted = encoding.wanted(call)
        self.include = call.query.get("includeObject")
        self.plain = self.wanted.plain and served.from_stored is None

    def of(self, change: Change) -> bytes:
        stored, previous = change.stored, change.previous
        if self.namespace and stored.namespace != self.namespace:
            return b""
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
        if kind == change.type and self.plain:
            return change.line()
        return self.line(kind, stored) if kind else b""

    def line(self, kind: str, stored: Stored) -> bytes:
        if self.plain:
            return b'{"type":"' + kind.encode() + b'","object":' + stored.raw + b"}\n"
        obj = encoding.object_of(self.served, stored)
        if not self.wanted.plain:
            obj = tables.convert_one(self.wanted, self.served, obj, self.include)
        return orjson.dumps({"type": kind, "object": obj}) + b"\n"

    def bookmark(self, revision: int, initial_end: bool = False) -> bytes:
        meta: Object = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj: Object = {"kind": self.served.kind.kind, "apiVersion": self.served.kind.api_version, "metadata": meta}
        if not self.wanted.plain:
            obj = tables.convert_bookmark(self.wanted, self.served, obj)
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


async def _follow(
    call: Call,
    lines: Lines,
    subscription: Subscription,
    snapshot: list[Stored],
    since: int,
    seconds: float,
    *,
    end_marked: bool,
) -> AsyncIterator[bytes]:
    store = call.server.store
    bookmarks = call.query.flag("allowWatchBookmarks")
    ends_at = time.monotonic() + seconds
    try:
        for chunk in _pieces([lines.line("ADDED", s) for s in snapshot if lines.matches is None or lines.matches(s)]):
            yield chunk
        if end_marked:
            yield lines.bookmark(since, initial_end=True)
        while (left := ends_at - time.monotonic()) > 0:
            changes = await subscription.take(min(left, BOOKMARK_SECONDS))
            # Taken before the lines are made: everything up to here is either sent or does not concern this watcher.
            seen = store.revision
            for chunk in _pieces([line for change in changes if (line := lines.of(change))]):
                yield chunk
            if subscription.overflowed:
                return
            if not changes and bookmarks:
                yield lines.bookmark(seen)
    finally:
        subscription.close()


def _pieces(lines: list[bytes]) -> list[bytes]:
    """The lines joined into chunks of a sensible size."""
    if len(lines) <= 1:
        return lines
    pieces: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            pieces.append(b"".join(batch))
            batch, size = [], 0
    if batch:
        pieces.append(b"".join(batch))
    return pieces
