"""The way to the API: a limit on requests, counts of them, and one place that tells when it fails."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections import Counter, deque
from collections.abc import Mapping

from danlu import errors
from danlu.client.transport import MAX_WAIT_S, Query, Transport, TransportResponse, asks_for_a_stream
from danlu.operator.logs import Sparingly

log = logging.getLogger("danlu.operator")

PLACES = 16  # requests in flight; more would only wait in the server, and each connection costs it a handshake
BACKGROUND_PLACES = 12  # the rest is for what comes meanwhile and does not wait
CALM_S = 0.5  # a pod that has not begun to run so long after the last one waits for something else
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


class AccessGate:
    """Which requests go first when many want to.

    Most go in the order in which they come. Background requests, which say how long they may wait, leave places free
    and go once all pods run, or none has been made or begun to run for a moment: until then the cluster is busy with
    starting pods, which is what people wait for. None waits for others longer than it may.
    """

    def __init__(self, places: int = PLACES) -> None:
        self._free = places
        self._background = 0  # requests in flight that may wait
        self._calm_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        # A heap, by when they have waited long enough.
        self._background_waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._serial = 0
        self._timer: asyncio.TimerHandle | None = None

    def pods_are_starting(self) -> None:
        self._calm_at = asyncio.get_running_loop().time() + CALM_S

    def pod_began(self, still_starting: int) -> None:
        """A pod runs, ended or went; so many more of ours have yet to begin."""
        if still_starting:
            self.pods_are_starting()
            return
        self._calm_at = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._next()

    def is_calm(self) -> bool:
        return asyncio.get_running_loop().time() >= self._calm_at

    async def enter(self, max_wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        if not max_wait_s and self._free > 0 and not self._waiting:
            self._free -= 1
            return
        turn = loop.create_future()
        if max_wait_s:
            self._serial += 1
            heapq.heappush(self._background_waiting, (loop.time() + max_wait_s, self._serial, turn))
        else:
            self._waiting.append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(max_wait_s)  # its place was given to it already
            raise

    def leave(self, max_wait_s: float) -> None:
        self._free += 1
        self._background -= max_wait_s > 0
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
        while self._free > 0 and self._background_waiting:
            now = loop.time()
            ends, _, turn = self._background_waiting[0]
            if ends > now and (now < self._calm_at or self._background >= BACKGROUND_PLACES):
                if (
                    self._background < BACKGROUND_PLACES and self._timer is None
                ):  # else the next one to leave looks again
                    self._timer = loop.call_at(min(ends, self._calm_at), self._look_again)
                return
            heapq.heappop(self._background_waiting)
            if not turn.done():
                self._free -= 1
                self._background += 1
                turn.set_result(None)


class Access:
    """A `Transport` around another."""

    def __init__(self, transport: Transport, server: str, limit: Limit) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()  # by verb and status code
        self.reachable = False
        self._transport = transport
        self._server = server
        self._limit = limit
        self.gate = AccessGate()
        self._sparingly = Sparingly(log)

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        if asks_for_a_stream(query):
            return await self._send("watch", method, path, query, headers, body)
        if LEASES in path:  # a leader that waits in a queue of its own making is none for long
            return await self._send(VERBS.get(method, method.lower()), method, path, query, headers, body)
        max_wait_s = MAX_WAIT_S.get()
        if method == "POST" and path.endswith("/pods"):
            self.gate.pods_are_starting()
        await self.gate.enter(max_wait_s)
        try:
            await self._limit.wait()
            return await self._send(VERBS.get(method, method.lower()), method, path, query, headers, body)
        finally:
            self.gate.leave(max_wait_s)

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
