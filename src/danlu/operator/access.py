"""The way to the API: a limit on requests, counts of them, and one place that tells when it fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Mapping

from danlu import errors
from danlu.client.transport import Query, Transport, TransportResponse, asks_for_a_stream
from danlu.operator.logs import Sparingly

log = logging.getLogger("danlu.operator")

PLACES = 32  # requests in flight; more would only wait in the server, and each connection costs it a handshake
PATIENT_PLACES = 8
PATIENCE_S = 2.0
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
UNREACHABLE = "unreachable"
URGENT, USUAL, PATIENT = range(3)


class Limit:
    """A token bucket. Requests wait in the order in which they came."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._free_at = 0.0  # when the bucket would be full again, minus the whole burst

    async def wait(self) -> None:
        if self._qps <= 0:
            return
        now = time.monotonic()
        self._free_at = max(self._free_at, now - self._burst / self._qps) + 1 / self._qps
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


class Gate:
    """Which requests go first when many want to: what starts pods, then what tells of them, then the rest.

    Patient ones (events, services) go when nothing urgent is under way, a few at a time; none waits for longer than
    `PATIENCE_S` because of others.
    """

    def __init__(self, places: int = PLACES) -> None:
        self._free = places
        self._urgent = 0  # urgent requests in flight
        self._patient = 0
        self._waiting: dict[int, deque[tuple[float, asyncio.Future[None]]]] = {
            level: deque() for level in (URGENT, USUAL, PATIENT)
        }

    async def enter(self, level: int) -> None:
        if self._may_go(level) and not any(self._waiting[one] for one in range(level + 1)):
            self._take(level)
            return
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting[level].append((loop.time() + PATIENCE_S, turn))
        if level == PATIENT:
            loop.call_later(PATIENCE_S, self._next)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(level)  # its place was given to it already
            raise

    def leave(self, level: int) -> None:
        self._free += 1
        self._urgent -= level == URGENT
        self._patient -= level == PATIENT
        self._next()

    def _may_go(self, level: int) -> bool:
        if self._free <= 0:
            return False
        return level != PATIENT or (self._urgent == 0 and self._patient < PATIENT_PLACES)

    def _take(self, level: int) -> None:
        self._free -= 1
        self._urgent += level == URGENT
        self._patient += level == PATIENT

    def _next(self) -> None:
        while (level := self._chosen()) is not None:
            _, turn = self._waiting[level].popleft()
            if not turn.done():
                self._take(level)
                turn.set_result(None)

    def _chosen(self) -> int | None:
        if self._free <= 0:
            return None
        now = asyncio.get_running_loop().time()
        for level, queue in self._waiting.items():
            if queue and queue[0][0] <= now:
                return level
        return next((level for level, queue in self._waiting.items() if queue and self._may_go(level)), None)


def level_of(method: str, path: str) -> int:
    last = path.rpartition("/")[2]
    if method == "POST" and last == "pods":
        return URGENT
    if method in ("POST", "PATCH") and (last in ("events", "services") or "/events/" in path):
        return PATIENT
    return USUAL


class Access:
    """A `Transport` around another."""

    def __init__(self, transport: Transport, server: str, limit: Limit) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()  # by verb and status code
        self.reachable = False
        self._transport = transport
        self._server = server
        self._limit = limit
        self._gate = Gate()
        self._sparingly = Sparingly(log)

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        if asks_for_a_stream(query):
            return await self._send("watch", method, path, query, headers, body)
        level = level_of(method, path)
        await self._gate.enter(level)
        try:
            await self._limit.wait()
            return await self._send(VERBS.get(method, method.lower()), method, path, query, headers, body)
        finally:
            self._gate.leave(level)

    async def _send(
        self, verb: str, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        try:
            response = await self._transport.request(method, path, query, headers, body)
        except (errors.ServiceUnavailable, errors.Timeout) as error:
            self.requests[verb, "none"] += 1
            self.reachable = False
            self._sparingly.warning(UNREACHABLE, f"{error.message}; trying again until it can")
            raise
        self.requests[verb, str(response.status)] += 1
        if response.status == 403:
            self._tell_forbidden(verb, path, response)
        elif response.status == 401:
            text = f"{self._server} does not know us: the token or certificate in the kubeconfig is no longer good"
            self._sparingly.warning("unknown", text)
        self.reachable = True
        if self._sparingly.forget(UNREACHABLE):
            log.info("%s answers again", self._server)
        return response

    async def close(self) -> None:
        await self._transport.close()

    def _tell_forbidden(self, verb: str, path: str, response: TransportResponse) -> None:
        said = response.body.decode(errors="replace") if isinstance(response.body, bytes) else ""
        if "cannot " not in said:
            return  # a quota, or a rule of the cluster's: that is the object's own trouble
        resource = resource_of(path)
        what = f"{verb} {resource}"
        self._sparingly.warning(what, f"may not {what}: the operator's role lacks it; `danlu install` grants it")


def resource_of(path: str) -> str:
    """`pods`, `pytorchjobs.kubeflow.org/status`: what a path of the API is about."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    if not rest:
        return path
    named = f"{rest[0]}.{group}" if group else rest[0]
    return "/".join([named, *rest[2:]])
