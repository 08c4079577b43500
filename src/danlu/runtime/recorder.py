"""`EventRecorder`: core/v1 Events, cheap for the caller and gentle on the server, as client-go's recorder is.

- Recording never waits: events go into a bounded buffer and one task writes them; when it is full, new ones are lost.
- The same event again raises `count` and `lastTimestamp` of the first one.
- Ten different messages of one reason within ten minutes: from then on they are combined into one event.
- A source that says too much about one object (25 at once, then one each five minutes) is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import orjson

from danlu import errors
from danlu.client.client import Client
from danlu.client.transport import may_wait
from danlu.meta.clock import Clock, rfc3339, utc_now
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION, carried
from danlu.meta.wellknown import EVENT

log = logging.getLogger(__name__)

BUFFER = 1000
MEMORY = 4096  # entries of each memory below, as client-go has
SPAM_BURST = 25
SPAM_REFILL_PER_S = 1 / 300
SIMILAR_LIMIT = 10
SIMILAR_WINDOW_S = 600.0
ATTEMPTS = 3
BATCH = 16  # writes at a time
# An event tells of what has been done: it need not hold up what is to be done, and one that all is well not even the
# names of pods that run.
MAX_WAIT_S = {"Warning": 10.0, "Normal": 40.0}

Value = TypeVar("Value")


class _Memory(Generic[Value]):
    """The most recently used entries of a mapping."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str) -> Value | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: str, value: Value) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > MEMORY:
            self._entries.popitem(last=False)

    def drop(self, key: str) -> None:
        self._entries.pop(key, None)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    at: float = float("-inf")


@dataclass(slots=True)
class _Written:
    name: str
    count: int


class EventRecorder:
    def __init__(self, client: Client, component: str, host: str = "", *, clock: Clock = utc_now) -> None:
        self.client = client
        self.component = component
        self.host = host
        self._clock = clock
        self._buffer: deque[tuple[str, Object]] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._buckets: _Memory[_Bucket] = _Memory()
        self._similar: _Memory[_Similar] = _Memory()
        self._written: _Memory[_Written] = _Memory()
        self._serial = 0

    def normal(self, about: Object, reason: str, message: str) -> None:
        self.event(about, "Normal", reason, message)

    def warning(self, about: Object, reason: str, message: str) -> None:
        self.event(about, "Warning", reason, message)

    def event(self, about: Object, type: str, reason: str, message: str, *, field_path: str = "") -> None:
        """`about` is the object, or a reference to it (kind, namespace, name, uid at top level)."""
        involved, causes = reference(about, field_path), carried(message)
        source = f"{self.component}\0{self.host}\0{involved['kind']}\0{involved.get('namespace', '')}"
        subject = f"{source}\0{involved['name']}\0{involved.get('uid', '')}\0{type}"
        if self._is_spam(subject):
            return
        key = f"{subject}\0{field_path}\0{reason}\0{message}"
        if self._is_similar(f"{subject}\0{reason}", message):
            key, message = f"{subject}\0{reason}", f"(combined from similar events): {message}"
        if len(self._buffer) >= BUFFER:
            log.debug("event buffer is full: %s %s is lost", reason, message)
            return
        self._buffer.append((key, self._make(involved, type, reason, message, causes)))
        self._idle.clear()
        self._wake.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"events of {self.component}")

    async def stop(self) -> None:
        """Writes what is buffered, for at most two seconds."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await self._idle.wait()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    def _is_spam(self, subject: str) -> bool:
        now = time.monotonic()
        bucket = self._buckets.get(subject) or _Bucket(SPAM_BURST, now)
        tokens = min(SPAM_BURST, bucket.tokens + (now - bucket.at) * SPAM_REFILL_PER_S)
        spam = tokens < 1
        self._buckets.put(subject, _Bucket(tokens if spam else tokens - 1, now))
        return spam

    def _is_similar(self, group: str, message: str) -> bool:
        now = time.monotonic()
        similar = self._similar.get(group)
        if similar is None or now - similar.at > SIMILAR_WINDOW_S:
            similar = _Similar()
        similar.at = now
        similar.messages.add(message)
        self._similar.put(group, similar)
        if len(similar.messages) < SIMILAR_LIMIT:
            return False
        similar.messages.pop()
        return True

    def _make(self, involved: Object, type: str, reason: str, message: str, causes: list[Object]) -> Object:
        now = self._clock()
        # Two events of one object within a clock tick must not collide.
        self._serial += 1
        suffix = int(now.timestamp() * 1_000_000) * 1000 + self._serial % 1000
        source = {"component": self.component}
        if self.host:
            source["host"] = self.host
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{involved['name']}.{suffix:x}",
                "namespace": involved.get("namespace") or "default",
                **({"annotations": {ANNOTATION: orjson.dumps(causes).decode()}} if causes else {}),
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message[:1024],
            "source": source,
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
            "count": 1,
            "type": type,
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        }

    async def _run(self) -> None:
        while True:
            while self._buffer:
                batch = self._take_batch()
                await asyncio.gather(*(self._try_to_write(key, *entry) for key, entry in batch.items()))
            self._idle.set()
            self._wake.clear()
            await self._wake.wait()

    def _take_batch(self) -> dict[str, tuple[Object, int]]:
        """The next few different events (they share a sync to disk), each with how often it is in the batch."""
        batch: dict[str, tuple[Object, int]] = {}
        while self._buffer and len(batch) < BATCH:
            key, event = self._buffer.popleft()
            batch[key] = (event, batch[key][1] + 1 if key in batch else 1)
        return batch

    async def _try_to_write(self, key: str, event: Object, count: int) -> None:
        try:
            await self._write(key, event, count)
        except Exception as error:
            log.debug("event %s about %s is lost: %s", event["reason"], event["involvedObject"]["name"], error)

    async def _write(self, key: str, event: Object, count: int) -> None:
        for attempt in range(ATTEMPTS):
            written = self._written.get(key)
            try:
                if written is not None:
                    await self._raise(written, event, count)
                else:
                    event["count"] = count
                    with may_wait(MAX_WAIT_S[event["type"]]):
                        await self.client.post(EVENT, event, event["metadata"]["namespace"])
                    self._written.put(key, _Written(event["metadata"]["name"], count))
                return
            except errors.NotFound:
                if written is None:
                    raise  # the namespace is gone
                self._written.drop(key)  # the event has expired: begin anew
            except (errors.ServiceUnavailable, errors.Timeout, errors.TooManyRequests):
                await asyncio.sleep(0.5 * (attempt + 1))

    async def _raise(self, written: _Written, event: Object, count: int) -> None:
        body = {"count": written.count + count, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}
        if notes := event["metadata"].get("annotations"):
            body["metadata"] = {"annotations": notes}
        with may_wait(MAX_WAIT_S[event["type"]]):
            await self.client.patch(EVENT, written.name, event["metadata"]["namespace"], body)
        written.count += count


def reference(about: Object, field_path: str = "") -> Object:
    """The ObjectReference of an object; a reference is taken as it is."""
    meta = about.get("metadata")
    if meta is None:
        involved = dict(about)
    else:
        involved = {
            "apiVersion": about.get("apiVersion"),
            "kind": about.get("kind"),
            "namespace": meta.get("namespace"),
            "name": meta["name"],
            "uid": meta.get("uid"),
            "resourceVersion": meta.get("resourceVersion"),
        }
    if field_path:
        involved["fieldPath"] = field_path
    return {name: value for name, value in involved.items() if value}
