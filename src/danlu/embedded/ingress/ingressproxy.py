"""One request that came to an Ingress: to a pod behind the service that its host and path lead to."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from danlu.embedded.ingress.routes import RouteBackend, Routes
from danlu.net import reverseproxy
from danlu.net.reverseproxy import ONE_HOP, Header, NoAnswer, Upstream

if TYPE_CHECKING:
    import aiohttp
    from starlette.types import Receive, Scope, Send

CONNECT_S = 5.0
Connect = Callable[[str, str, int], Awaitable[socket.socket]]
"""To a pod behind a port of a service: (namespace, service, port). Raises OSError."""
PortOf = Callable[[RouteBackend], int | None]
_OURS = frozenset((b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-port"))


class IngressProxy:
    """An ASGI application. Whom a request is from is what the socket says: headers that claim it are replaced."""

    def __init__(self, connect: Connect, port_of: PortOf) -> None:
        self.routes = Routes()
        self._connect = connect
        self._port_of = port_of
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        host = next((value.decode("latin-1") for name, value in headers if name == b"host"), "")
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        backend = self.routes.find(name.lower(), unquote(raw))
        if backend is None:
            await _say(scope, send, 404, "no Ingress has a rule for this host and path")
            return
        port = self._port_of(backend)
        if port is None:
            await _say(scope, send, 503, f"service {backend.service} has no such port, or is not there")
            return
        query = scope["query_string"].decode("latin-1")
        at = f"{backend.service}.{backend.namespace}.svc:{port}"
        url = f"http://{at}{raw}{f'?{query}' if query else ''}"
        try:
            upstream = Upstream(url, [*_passed(headers), *_forwarded(scope, host)])
            await reverseproxy.relay(self._open(), upstream, scope, receive, send)
        except NoAnswer:
            await _say(scope, send, 503, f"no pod behind service {backend.service} answers")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            from danlu.net.dialer import Dialer

            self._session = aiohttp.ClientSession(
                connector=Dialer(self._dial, limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _dial(self, host: str, port: int) -> socket.socket:
        service, namespace, _ = host.split(".", 2)
        if not service or not namespace:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        return await self._connect(namespace, service, port)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _passed(headers: list[Header]) -> list[Header]:
    return [(name, value) for name, value in headers if name not in ONE_HOP and name not in _OURS]


def _forwarded(scope: Scope, host: str) -> list[Header]:
    client, server = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
    secure = scope["scheme"] in ("https", "wss")
    return [
        (b"x-forwarded-for", str(client[0]).encode()),
        (b"x-forwarded-host", host.encode("latin-1")),
        (b"x-forwarded-proto", b"https" if secure else b"http"),
        (b"x-forwarded-port", str(server[1]).encode()),
    ]


async def _say(scope: Scope, send: Send, status: int, text: str) -> None:
    before = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{before}.start", "status": status, "headers": headers})
    await send({"type": f"{before}.body", "body": body})
