"""The way to the API: a limit on requests, counts of them, and one place that tells when it fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping

from danlu import errors
from danlu.client.transport import Query, Transport, TransportResponse, asks_for_a_stream
from danlu.operator.logs import Sparingly

log = logging.getLogger("danlu.operator")

VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
UNREACHABLE = "unreachable"


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


class Access:
    """A `Transport` around another."""

    def __init__(self, transport: Transport, server: str, limit: Limit) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()  # by verb and status code
        self.reachable = False
        self._transport = transport
        self._server = server
        self._limit = limit
        self._sparingly = Sparingly(log)

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        await self._limit.wait()
        verb = "watch" if asks_for_a_stream(query) else VERBS.get(method, method.lower())
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
