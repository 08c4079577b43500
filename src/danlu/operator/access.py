"""The way to the API: a limit on requests, counts of them, and one place that tells when it fails."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections import Counter, deque
from collections.abc import Mapping

from danlu import errors
from danlu.client.transport import PATIENCE, Query, Transport, TransportResponse, asks_for_a_stream
from danlu.operator.logs import Sparingly

log = logging.getLogger("danlu.operator")

PLACES = 16  # requests in flight; more would only wait in the server, and each connection costs it a handshake
PATIENT_PLACES = 8
CALM_S = 0.5
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
UNREACHABLE = "unreachable"
LEASES = "/apis/coordination.k8s.io/"


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
    """Which requests go first when many want to.

    Those that have no patience go in the order in which they come. Those that have some go a few at a time, once no
    pod has been made or begun to run for a moment: until then the cluster is busy with starting pods, which is what
    people wait for. None waits for others longer than its patience.
    """

    def __init__(self, places: int = PLACES) -> None:
        self._free = places
        self._patient = 0  # patient requests in flight
        self._calm_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._patient_waiting: list[tuple[float, int, asyncio.Future[None]]] = []  # a heap, by when patience ends
        self._serial = 0
        self._timer: asyncio.TimerHandle | None = None

    def pods_are_starting(self) -> None:
        self._calm_at = asyncio.get_running_loop().time() + CALM_S

    def is_calm(self) -> bool:
        return asyncio.get_running_loop().time() >= self._calm_at

    async def enter(self, patience_s: float) -> None:
        loop = asyncio.get_running_loop()
        if not patience_s and self._free > 0 and not self._waiting:
            self._free -= 1
            return
        turn = loop.create_future()
        if patience_s:
            self._serial += 1
            heapq.heappush(self._patient_waiting, (loop.time() + patience_s, self._serial, turn))
        else:
            self._waiting.append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(patience_s)  # its place was given to it already
            raise

    def leave(self, patience_s: float) -> None:
        self._free += 1
        self._patient -= patience_s > 0
        self._next()

    def _look_again(self) -> None:
        self._timer = None
        self._next()

    def _next(self) -> None:
        while self._free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._free -= 1
                turn.set_result(None)
        loop = asyncio.get_running_loop()
        while self._free > 0 and self._patient_waiting:
            now = loop.time()
            ends, _, turn = self._patient_waiting[0]
            if ends > now and (now < self._calm_at or self._patient >= PATIENT_PLACES):
                if self._patient < PATIENT_PLACES and self._timer is None:  # else the next one to leave looks again
                    self._timer = loop.call_at(min(ends, self._calm_at), self._look_again)
                return
            heapq.heappop(self._patient_waiting)
            if not turn.done():
                self._free -= 1
                self._patient += 1
                turn.set_result(None)


class Access:
    """A `Transport` around another."""

    def __init__(self, transport: Transport, server: str, limit: Limit) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()  # by verb and status code
        self.reachable = False
        self._transport = transport
        self._server = server
        self._limit = limit
        self.gate = Gate()
        self._sparingly = Sparingly(log)

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        if asks_for_a_stream(query):
            return await self._send("watch", method, path, query, headers, body)
        if LEASES in path:  # a leader that waits in a queue of its own making is none for long
            return await self._send(VERBS.get(method, method.lower()), method, path, query, headers, body)
        patience_s = PATIENCE.get()
        if method == "POST" and path.endswith("/pods"):
            self.gate.pods_are_starting()
        await self.gate.enter(patience_s)
        try:
            await self._limit.wait()
            return await self._send(VERBS.get(method, method.lower()), method, path, query, headers, body)
        finally:
            self.gate.leave(patience_s)

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
