"""How the console gets from an app's Service to its bytes.

- `Directly`: by the Service's name, which inside a cluster its DNS knows. On the embedded one the node makes the
  connection, and verifies that the app's pod is what answers: any process of the machine could hold the address, and
  the first thing it would be sent is the app's token.
- `ThroughApi`: outside a cluster there is no such way, so the API server's own proxy is used, with the person's rights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from danlu.console.appfinder import AppNotReady, Place
from danlu.console.appnames import AppName
from danlu.console.asgi import Header, Message, Receive, Scope, Send
from danlu.console.kubeapi import APP_COOKIES, KubeApi
from danlu.console.sessions import Identity
from danlu.meta.nesting import parse_json
from danlu.meta.wellknown import SERVICE
from danlu.net import reverseproxy
from danlu.net.reverseproxy import Rewrite

if TYPE_CHECKING:
    import aiohttp

    from danlu.net.dialer import Dial

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
        """Raises reverseproxy.NoAnswer when the app does not answer."""

    async def close(self) -> None: ...


class Directly:
    def __init__(self, dial: Dial | None = None) -> None:
        """`dial` makes connections to Services by their DNS names; without it the system's own resolver knows them."""
        self._dial = dial
        self._session: aiohttp.ClientSession | None = None

    async def relay(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> None:
        place, app = visit.place, visit.app
        host = f"{place.service}.{app.namespace}.svc"
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        url = f"http://{host}:{place.port}{path}{f'?{query}' if query else ''}"
        headers = list(scope["headers"])
        if place.token:
            # The person was let in by us and need not type it.
            headers.append((b"authorization", f"token {place.token}".encode()))
        await reverseproxy.relay(self._open(), reverseproxy.Upstream(url, headers, visit.rewrite), scope, receive, send)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            from danlu.net.dialer import Dialer

            self._session = aiohttp.ClientSession(
                connector=Dialer(self._dial, limit=0) if self._dial else aiohttp.TCPConnector(limit=0, ssl=False),
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
        # The Authorization header is the API server's; Jupyter also reads its token from the address.
        token = f"token={quote(place.token)}".encode() if place.token else b""
        if token:
            query += (b"&" if query else b"") + token
        # API servers write their own prefix into the links of a page, which has to be whole and plain to take it out.
        headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        inner = {
            **scope,
            "path": prefix + scope["path"],
            "raw_path": prefix.encode() + scope["raw_path"],
            "query_string": query,
            "headers": headers,
            # Through the API server's proxy a WebSocket loses its query; Jupyter knows it by the cookie that it set.
            APP_COOKIES: [value for name, value in headers if name == b"cookie"],
        }
        answer = _Unprefixed(prefix, token, send, visit.rewrite)
        await self._api.serve(inner, receive, answer.send, visit.identity)
        if answer.unreached and not visit.app.through_api:
            raise _no_way(visit)
        if answer.unreached:
            raise reverseproxy.NoAnswer(answer.unreached)

    async def close(self) -> None:
        """The API is closed by whoever opened it."""


class _Unprefixed:
    """Takes the API server's prefix out of an answer again, of redirects and of pages, and the token that we added.

    What the API server itself says when it does not reach the app is no answer of the app's, and not passed on.
    """

    def __init__(self, prefix: str, token: bytes, send: Send, rewrite: Rewrite) -> None:
        self._prefix = prefix.encode()
        self._token = token
        self._send = send
        self._rewrite = rewrite
        self._start: Message | None = None  # held back while a page is collected
        self._page = b""
        self.unreached = ""  # why, in the API server's words

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[Header] = self._rewrite(
                message["status"], [self._header(*pair) for pair in message["headers"]]
            )
            message = {**message, "headers": headers}
            kind = next((value for name, value in headers if name == b"content-type"), b"")
            if kind.startswith(b"text/html") or (message["status"] == 503 and kind.startswith(b"application/json")):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._page += message.get("body", b"")
            if message.get("more_body"):
                return
            if self._start["status"] == 503 and (said := _status_message(self._page)):
                self.unreached = said
                return
            page = self._page.replace(self._prefix, b"")
            kept = [(name, value) for name, value in self._start["headers"] if name != b"content-length"]
            kept.append((b"content-length", str(len(page)).encode()))
            await self._send({**self._start, "headers": kept})
            message = {"type": "http.response.body", "body": page}
        await self._send(message)

    def _header(self, name: bytes, value: bytes) -> Header:
        if name != b"location":
            return name, value
        value = value.replace(self._prefix, b"")
        return name, value.replace(self._token, b"").rstrip(b"?&") if self._token else value


def _no_way(visit: Visit) -> AppNotReady:
    """A kind whose pages do not pass an API server's proxy says so (`WebApp.through_api`)."""
    place, app = visit.place, visit.app
    forward = f"kubectl -n {app.namespace} port-forward service/{place.service} {place.port}"
    return AppNotReady(
        "NotThroughTheAPIServer",
        f"its page does not pass an API server's proxy; `{forward}`, then "
        f"http://127.0.0.1:{place.port}{app.base}, or use the console inside the cluster",
        "",
    )


def _status_message(body: bytes) -> str:
    """Of a Kubernetes Status; "" of anything else."""
    try:
        found = parse_json(body)
    except ValueError:
        return ""
    is_status = isinstance(found, dict) and found.get("kind") == "Status" and found.get("apiVersion") == "v1"
    return str(found.get("message") or "no answer") if is_status else ""
