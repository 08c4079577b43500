"""The Kubernetes API as the console reaches it: an ASGI application, with the identity of who is asking put in.

`InThisProcess` hands requests to the embedded API server without a socket; `OverHttp` sends them to any other. Both
authenticate for real: the API server is told a token or a certificate and decides by itself who that is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import orjson

from danlu.client.config import Config
from danlu.client.http import CONNECT_TIMEOUT_S, tls_context
from danlu.console import proof
from danlu.console.asgi import (
    ASGIApp,
    Header,
    HTTPConnection,
    Message,
    Receive,
    Scope,
    Send,
    StatusResponse,
    path_of,
    query_of,
)
from danlu.console.sessions import Identity
from danlu.errors import ServiceUnavailable, Unauthorized
from danlu.net import reverseproxy

if TYPE_CHECKING:
    import aiohttp

# Who is asking is decided by us alone: nothing of this may come from a browser. The rest is for one hop only.
NOT_PASSED_ON = reverseproxy.ONE_HOP | {
    b"authorization",
    b"cookie",
    b"host",
    b"origin",
    b"referer",
    proof.HEADER.encode(),
}
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."


class KubeApi(Protocol):
    async def serve(self, scope: Scope, receive: Receive, send: Send, identity: Identity) -> None:
        """An HTTP request or a WebSocket; the scope's path is the API's own."""

    async def close(self) -> None: ...


ABORT = "abort"
APP_COOKIES = "danlu.app_cookies"
"""Of a scope: cookies for a program behind the API server's proxy, which none of ours are among."""


def passed_on(scope: Scope) -> list[Header]:
    """The request's headers without those that say who is asking. Impersonation is for the API's own clients."""
    return [
        *(
            (name, value)
            for name, value in scope["headers"]
            if name not in NOT_PASSED_ON and not name.startswith((b"impersonate-", b"x-remote-", b"x-forwarded-"))
        ),
        *((b"cookie", cookies) for cookies in scope.get(APP_COOKIES) or ()),
    ]


def _offered(scope: Scope) -> list[str]:
    """A WebSocket's protocols; a token can hide among them, too, and our own proof does."""
    offered = scope.get("subprotocols") or ()
    return [name for name in offered if not name.startswith(_WEBSOCKET_TOKEN) and not proof.is_proof(name)]


class InThisProcess:
    def __init__(self, app: ASGIApp, owner_certificate: bytes) -> None:
        """`owner_certificate`, DER: whom the token link stands for."""
        self._app = app
        self._owner = owner_certificate

    async def serve(self, scope: Scope, receive: Receive, send: Send, identity: Identity) -> None:
        headers = passed_on(scope)
        # Not who is asking: only how to cut off one who does not read.
        state: dict[str, Any] = {name: value for name, value in (scope.get("state") or {}).items() if name == ABORT}
        if identity.owner:
            state["peer_certificate"] = self._owner
        elif identity.token:
            headers.append((b"authorization", f"Bearer {identity.token}".encode()))
        await self._app({**scope, "headers": headers, "state": state, "subprotocols": _offered(scope)}, receive, send)

    async def close(self) -> None:
        """Nothing is held open between requests."""


class OverHttp:
    def __init__(self, config: Config) -> None:
        """Only where the server is and how to know it are read from the configuration: never its credentials."""
        self._server = config.server
        self._config = Config(
            config.server, ca=config.ca, insecure=config.insecure, tls_server_name=config.tls_server_name
        )
        self._session: aiohttp.ClientSession | None = None

    async def serve(self, scope: Scope, receive: Receive, send: Send, identity: Identity) -> None:
        if identity.owner or not identity.token:
            await StatusResponse(Unauthorized("sign in with a bearer token"))(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        query = query_of(asked)
        headers = [*passed_on(scope), (b"authorization", f"Bearer {identity.token}".encode())]
        url = self._server + path_of(asked) + (f"?{query}" if query else "")
        try:
            offered = {**scope, "subprotocols": _offered(scope)}
            await reverseproxy.relay(self._open(), reverseproxy.Upstream(url, headers), offered, receive, send)
        except reverseproxy.NoAnswer as error:
            problem = ServiceUnavailable(f"the cluster at {self._server} cannot be reached: {error}")
            await StatusResponse(problem)(scope, receive, send)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            secure = self._server.startswith("https")
            connector = aiohttp.TCPConnector(limit=0, ssl=tls_context(self._config) if secure else False)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
            # Bytes are passed on as they come, compressed or not.
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class ApiAnswer:
    """A whole answer, for the console's own questions."""

    def __init__(self) -> None:
        self.status = 500
        self.body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    def json(self) -> Any:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(self.body)
        return {}


async def ask(api: KubeApi, identity: Identity, method: str, path: str, body: Any = None, query: str = "") -> ApiAnswer:
    """One question of the console's own, with a person's rights."""
    data = orjson.dumps(body) if body is not None else b""
    answer = ApiAnswer()
    gone = asyncio.Event()
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await gone.wait()
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": data, "more_body": False}

    await api.serve(http_scope(method, path, query, len(data)), receive, answer.send, identity)
    return answer


def http_scope(method: str, path: str, query: str, size: int = 0) -> Scope:
    headers = [(b"accept", b"application/json"), (b"user-agent", b"danlu-console")]
    if size:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(size).encode())]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path, safe="/:").encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": None,
        "state": {},
    }
