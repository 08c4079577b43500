"""One HTTP request or one WebSocket, passed on to another server and its answer passed back, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from danlu.net import websockets

if TYPE_CHECKING:
    import aiohttp
    from starlette.types import Receive, Scope, Send

Header = tuple[bytes, bytes]

# Headers that are about one connection, and those that a WebSocket library writes by itself.
ONE_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer",
     b"transfer-encoding", b"upgrade", b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-extensions",
     b"sec-websocket-protocol", b"sec-websocket-accept")
)  # fmt: skip
NORMAL = 1000
MESSAGE_BYTES = 64 * 1024 * 1024  # of a WebSocket message that another server sends; a notebook's plots are large
Rewrite = Callable[[int, list[Header]], list[Header]]


class NoAnswer(Exception):
    """The other server could not be reached; nothing was answered yet."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a request goes, and with which headers: they are sent as they are. `rewrite` may change the answer's."""

    url: str
    headers: Iterable[Header]
    rewrite: Rewrite | None = None


async def relay(session: aiohttp.ClientSession, upstream: Upstream, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises NoAnswer."""
    from yarl import URL

    url = URL(upstream.url, encoded=True)
    plain = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in upstream.headers]
    if scope["type"] == "websocket":
        await _websocket(session, url, scope, receive, send, plain)
        return
    response = await _ask(session, url, scope, receive, plain)
    await _answer(response, upstream.rewrite, receive, send)


async def _ask(
    session: aiohttp.ClientSession, url: Any, scope: Scope, receive: Receive, headers: list[tuple[str, str]]
) -> aiohttp.ClientResponse:
    import aiohttp
    from multidict import CIMultiDict

    has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
    try:
        return await session.request(
            scope["method"],
            url,
            headers=CIMultiDict(headers),
            data=_body(receive) if has_body else None,
            allow_redirects=False,
            # What the browser did not say is not said in its name.
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept", "Content-Type"),
        )
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error


async def _answer(response: aiohttp.ClientResponse, rewrite: Rewrite | None, receive: Receive, send: Send) -> None:
    found = [(name.lower(), value) for name, value in response.raw_headers if name.lower() not in ONE_HOP]
    if rewrite is not None:
        found = rewrite(response.status, found)
    try:
        await send({"type": "http.response.start", "status": response.status, "headers": found})
        # Headers at once: a watch may have nothing to say for minutes.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await until_either(_send_body(response, send), _left(receive))
    finally:
        response.close() if not response.content.at_eof() else response.release()


async def _send_body(response: aiohttp.ClientResponse, send: Send) -> None:
    import aiohttp

    try:
        async for chunk in response.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except aiohttp.ClientError:
        # Half an answer must not look whole: the connection is cut, which a browser reports as an error.
        raise ConnectionResetError("the other server broke off") from None
    await send({"type": "http.response.body", "body": b""})


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the client left")
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def until_either(one: Any, other: Any) -> None:
    """Runs both until one ends; what the first raised is raised."""
    first, second = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (first, second):
            task.cancel()
        results = await asyncio.gather(first, second, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


# -- WebSockets


async def _websocket(
    session: aiohttp.ClientSession,
    url: Any,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: list[tuple[str, str]],
) -> None:
    import aiohttp
    from multidict import CIMultiDict

    await receive()  # websocket.connect
    try:
        # The other server is asked first: its choice of protocol is ours, and its refusal, too.
        upstream = await session.ws_connect(
            url,
            protocols=list(scope.get("subprotocols") or ()),
            headers=CIMultiDict(headers),
            max_msg_size=MESSAGE_BYTES,
            autoping=True,
        )
    except aiohttp.WSServerHandshakeError as error:
        await _refused(send, error.status, error.message)
        return
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error
    async with upstream:
        await send({"type": "websocket.accept", "subprotocol": upstream.protocol})
        await until_either(_to_server(receive, upstream), _to_browser(upstream, send))
        code = upstream.close_code or NORMAL
        fit = code in (NORMAL, 1001, 1002, 1003, 1008, 1011) or code >= 3000
        with suppress(RuntimeError, OSError):
            await send({"type": "websocket.close", "code": code if fit else NORMAL})


async def _refused(send: Send, status: int, message: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": message.encode()})


async def _to_server(receive: Receive, upstream: aiohttp.ClientWebSocketResponse) -> None:
    with suppress(ConnectionError):
        await websockets.forward(receive, upstream)
    await upstream.close()


async def _to_browser(upstream: aiohttp.ClientWebSocketResponse, send: Send) -> None:
    import aiohttp

    with suppress(ConnectionError, RuntimeError):
        async for message in upstream:
            if message.type == aiohttp.WSMsgType.BINARY:
                await send({"type": "websocket.send", "bytes": message.data})
            elif message.type == aiohttp.WSMsgType.TEXT:
                await send({"type": "websocket.send", "text": message.data})
