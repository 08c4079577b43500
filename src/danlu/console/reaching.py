"""How the console gets from an app's Service to its bytes.

- `Directly`: to the Service's address, which the embedded node keeps on this machine, or its name inside a cluster.
- `ThroughApi`: outside a cluster there is no such way, so the API server's own proxy is used, with the person's rights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from danlu.console import relaying
from danlu.console.appnames import AppName
from danlu.console.asgi import Header, Message, Receive, Scope, Send
from danlu.console.finding import Place
from danlu.console.kubeapi import KubeApi
from danlu.console.relaying import Rewrite
from danlu.console.sessions import Identity
from danlu.meta.wellknown import SERVICE

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class Visit:
    """Who goes to which app, where it is found, and what becomes of its answer's headers."""

    identity: Identity
    app: AppName
    place: Place
    rewrite: Rewrite


class Reach(Protocol):
    async def relay(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises relaying.NoAnswer when the app does not answer."""

    async def close(self) -> None: ...


class Directly:
    def __init__(self, *, by_name: bool) -> None:
        """`by_name`: the cluster's DNS knows Services; else their addresses are used."""
        self._by_name = by_name
        self._session: aiohttp.ClientSession | None = None

    async def relay(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        place, app = visit.place, visit.app
        host = f"{place.service}.{app.namespace}.svc" if self._by_name or not place.cluster_ip else place.cluster_ip
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        url = f"http://{f'[{host}]' if ':' in host else host}:{place.port}{path}{f'?{query}' if query else ''}"
        headers = list(scope["headers"])
        if place.token:
            # The person was let in by us and need not type it.
            headers.append((b"authorization", f"token {place.token}".encode()))
        await relaying.relay(self._open(), url, scope, receive, send, headers, visit.rewrite)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=False),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class ThroughApi:
    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def relay(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        place = visit.place
        prefix = SERVICE.path(visit.app.namespace, f"{place.service}:{place.port}", "proxy")
        query = scope["query_string"]
        if place.token:
            # The Authorization header is the API server's; Jupyter also reads its token from the address.
            query += (b"&" if query else b"") + f"token={quote(place.token)}".encode()
        # API servers write their own prefix into the links of a page, which has to be whole and plain to take it out.
        headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        inner = {
            **scope,
            "path": prefix + scope["path"],
            "raw_path": prefix.encode() + scope["raw_path"],
            "query_string": query,
            "headers": headers,
        }
        await self._api.serve(inner, receive, _Unprefixed(prefix, send, visit.rewrite).send, visit.identity)

    async def close(self) -> None:
        """The API is closed by whoever opened it."""


class _Unprefixed:
    """Takes the API server's prefix out of an answer again: of redirects, and of pages."""

    def __init__(self, prefix: str, send: Send, rewrite: Rewrite) -> None:
        self._prefix = prefix.encode()
        self._send = send
        self._rewrite = rewrite
        self._start: Message | None = None  # held back while a page is collected
        self._page = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[Header] = self._rewrite(
                message["status"], [self._header(*pair) for pair in message["headers"]]
            )
            message = {**message, "headers": headers}
            if any(name == b"content-type" and value.startswith(b"text/html") for name, value in headers):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._page += message.get("body", b"")
            if message.get("more_body"):
                return
            page = self._page.replace(self._prefix, b"")
            kept = [(name, value) for name, value in self._start["headers"] if name != b"content-length"]
            kept.append((b"content-length", str(len(page)).encode()))
            await self._send({**self._start, "headers": kept})
            message = {"type": "http.response.body", "body": page}
        await self._send(message)

    def _header(self, name: bytes, value: bytes) -> Header:
        return (name, value.replace(self._prefix, b"")) if name == b"location" else (name, value)
