"""What the server tells the audit log, at which moment of a request."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from danlu.embedded.apiserver.audit.auditlog import Log
from danlu.embedded.apiserver.audit.auditpolicy import COMPLETE, NONE, RECEIVED, STARTED, AuditPolicy
from danlu.embedded.apiserver.audit.events import Record, Stage
from danlu.embedded.apiserver.request import Call, Query, Response, StreamResponse, User
from danlu.errors import ApiError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
NOBODY = User("")
SWITCHING = 101
DECISION, REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"
ROOM_SECONDS = 0.005  # between two looks whether the log has caught up
HEADER = "audit-id"


class Auditor:
    def __init__(self, policy: AuditPolicy, log: Log) -> None:
        self._policy = policy
        self._log = log

    async def begin(self, call: Call) -> Record | None:
        """None: nothing of this request is recorded. Waits while the log is behind."""
        record = self._record(call)
        if record is not None:
            while self._log.full:  # noqa: ASYNC110 (it is a thread that makes room)
                await asyncio.sleep(ROOM_SECONDS)
            self._stage(RECEIVED, record)
        return record

    def _record(self, call: Call) -> Record | None:
        user = call.user.impersonator or call.user
        recording = self._policy.of(user, call.target)
        if recording.level == NONE:
            return None
        return Record(
            str(uuid.uuid4()), recording, time.time_ns(), call.target, call.method, call.query, call.headers, user,
            call.user if call.user.impersonator is not None else None, call.peer, call.body,
        )  # fmt: skip

    def end(self, record: Record, call: Call, answer: Response | StreamResponse) -> None:
        self._annotate(record, call)
        answer.headers[HEADER] = record.id
        if isinstance(answer, StreamResponse):
            self._stage(STARTED, record, answer.status)
            self._complete_at_release(record, answer)
            return
        told = answer.body if answer.content_type == "application/json" else b""
        self._stage(COMPLETE, record, answer.status, told)

    def _complete_at_release(self, record: Record, answer: StreamResponse) -> None:
        release, done = answer.release, False

        def complete() -> None:
            nonlocal done
            release()
            if not done:
                done = True
                self._stage(COMPLETE, record, answer.status)

        answer.release = complete

    def accepted(self, record: Record, call: Call, send: Send) -> Send:
        """Of a WebSocket: says that it has begun, when it has."""
        self._annotate(record, call)

        async def recorded(message: MutableMapping[str, Any]) -> None:
            await send(message)
            if message["type"] == "websocket.accept":
                self._stage(STARTED, record, SWITCHING)

        return recorded

    def closed(self, record: Record, refusal: Response | None) -> None:
        """Of a WebSocket: it has ended, or it was refused."""
        if refusal is None:
            self._stage(COMPLETE, record, SWITCHING)
        else:
            self._stage(COMPLETE, record, refusal.status, refusal.body)

    def refused(self, call: Call | None, scope: MutableMapping[str, Any], answer: Response) -> None:
        """A request that was answered before it came to a handler: too many, too large, not whole.

        Without `call` it is not known who asks: credentials that do not hold, or somebody who may not act as another.
        """
        if call is None:
            call = _anonymous(scope)
        record = self._record(call)
        if record is not None:
            self._annotate(record, call)
            self._stage(COMPLETE, record, answer.status, answer.body)

    def close(self) -> None:
        self._log.close()

    def _annotate(self, record: Record, call: Call) -> None:
        if call.decision is not None:
            decision = "allow" if call.decision.allowed else "forbid"
            record.annotations = {DECISION: decision, REASON: call.decision.reason}

    def _stage(self, name: str, record: Record, code: int = 0, answer: bytes = b"") -> None:
        if name not in record.recording.omitted:
            self._log.put(Stage(name, time.time_ns(), record, code, answer))


def _anonymous(scope: MutableMapping[str, Any]) -> Call:
    """The request as far as it could be read."""
    path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    try:
        query = Query(scope["query_string"].decode("latin-1"))
    except ApiError:
        query = Query()
    client = scope.get("client")
    server: Any = None  # nobody will handle it
    method = scope.get("method", "GET")
    return Call(server, method, path, query, headers, b"", NOBODY, peer=client[0] if client else "")
