"""The ASGI face of the server: bytes from a socket in, bytes out. And the whole URL table on one screen (`pages`)."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import re
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from danlu import __version__
from danlu.embedded.apiserver import discovery
from danlu.embedded.apiserver.fairness import is_stream
from danlu.embedded.apiserver.openapi import documents
from danlu.embedded.apiserver.request import MAX_BODY_BYTES, Call, Query, Response, StreamResponse
from danlu.embedded.apiserver.server import Answer, Handler, Server, error_response, page_not_found
from danlu.errors import ApiError, BadRequest, MethodNotAllowed, NotFound, RequestTooLarge, Timeout
from danlu.net.listener import Exchange, head_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PIECE = 512 * 1024  # bytes of an answer that are given to a connection at once
STALLED_S = 30.0  # for a piece of an answer to be read; a watch or a log may rest as long as it likes
ABORTED_S = 0.1  # for an aborted connection to be gone
OVERDUE_S = 5.0  # for a watcher that lags too far behind to be sent what it has coming
BODY_S = 60.0  # for a body to arrive whole: Kubernetes has as much for a whole request
COMPRESSED_FROM = 128 * 1024  # bytes; as Kubernetes
COMPRESSION_LEVEL = 4
KUBERNETES_VERSION = "v1.36.3"
KEPT_TYPES = ("application/json", "text/plain; charset=utf-8")


def pages() -> dict[str, Handler]:
    """Every path that is not /api/v1/… or /apis/GROUP/VERSION/…; a trailing * takes all below."""
    return {
        "/": root,
        "/version": version, "/version/": version,
        "/healthz": healthy, "/livez": healthy, "/readyz": healthy,
        "/healthz/*": healthy, "/livez/*": healthy, "/readyz/*": healthy,
        "/metrics": metrics,
        "/openapi/v2": documents.v2,
        "/openapi/v3": documents.v3_index,
        "/openapi/v3/*": documents.v3_document,
        "/openid/v1/jwks": signing_keys,
        "/.well-known/openid-configuration": issuer,
    }  # fmt: skip


async def root(call: Call) -> Response:
    paths = [path for path in call.server.pages if not path.endswith(("*", "/"))]
    return Response.json({"paths": sorted([*paths, *discovery.paths(call.server.registry)])})


async def version(call: Call) -> Response:
    if call.method != "GET":
        raise MethodNotAllowed()
    return Response.json(
        {
            "major": "1",
            "minor": "36",
            "emulationMajor": "1",
            "emulationMinor": "36",
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "35",
            "gitVersion": f"{KUBERNETES_VERSION}+danlu.{__version__}",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{sys.version_info.major}.{sys.version_info.minor}",
            "compiler": sys.implementation.name,
            "platform": f"{sys.platform}/amd64",
        }
    )


HEALTH_CHECKS = ("", "/ping", "/log", "/etcd")


async def healthy(call: Call) -> Response:
    path = call.target.path
    if path.removeprefix("/healthz").removeprefix("/livez").removeprefix("/readyz") not in HEALTH_CHECKS:
        return page_not_found()
    if call.query.flag("verbose"):
        page = path.strip("/").split("/")[0]
        space = call.server.store.space
        # The store answers, so this is no failure; whoever looks is told, as `etcdctl alarm list` would.
        alarm = " (alarm:NOSPACE)" if space is not None and space.alarm else ""
        return Response.text(f"[+]ping ok\n[+]log ok\n[+]etcd ok{alarm}\n{page} check passed\n")
    return Response.text("ok")


async def metrics(call: Call) -> Response:
    store = call.server.store
    objects = {name: store.count(name) for name in store.resources()}
    # The library takes tens of milliseconds, the first time longer: in a thread, others are answered meanwhile.
    text = await asyncio.to_thread(call.server.metrics.copy().text, objects)
    return Response(200, text, "text/plain; version=0.0.4; charset=utf-8")


async def signing_keys(call: Call) -> Response:
    answer = Response.json(call.server.authenticator.accounts.jwks())
    answer.content_type = "application/jwk-set+json"
    return answer


async def issuer(call: Call) -> Response:
    host = call.headers.get("host", "")
    return Response.json(call.server.authenticator.accounts.openid_configuration(f"https://{host}" if host else ""))


class App:
    def __init__(self, server: Server) -> None:
        self.server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        fairness, call, seat, stream = self.server.fairness, None, None, None
        try:
            call = self._call(scope)
            seat = fairness.enter(call) or await fairness.wait(call)
            stream = fairness.open_stream(call) if is_stream(call) else None
            exchange: Exchange | None = scope.get("exchange")
            if call.method not in ("GET", "HEAD"):
                body = exchange.whole_body() if exchange is not None else None
                call.body = body if body is not None else await _read_in_time(receive)
                _check_size(len(call.body))
            begun = time.perf_counter()
            answer = await self.server.handle(call)
            if isinstance(answer, StreamResponse):
                fairness.leave(seat)
                await _send_stream(scope, receive, send, answer)
                return
            if not call.body:  # a write waits for the disk meanwhile, which takes nothing from anybody
                fairness.charge(seat, time.perf_counter() - begun, len(answer.body))
            if len(answer.body) >= COMPRESSED_FROM and "gzip" in call.headers.get("accept-encoding", ""):
                await _compress(answer, scope)
            if exchange is None or not _answered(exchange, answer):
                await _send_response(send, answer, call.method == "HEAD", scope)
        except ApiError as error:
            refusal = self._refusal(error, call, scope)
            if isinstance(error, RequestTooLarge | Timeout):
                refusal.headers["connection"] = "close"  # what is still to come is not waited for
            await _send_response(send, refusal, scope["method"] == "HEAD")
        finally:
            if seat is not None:
                fairness.leave(seat)
            fairness.close_stream(stream)

    def _call(self, scope: Scope) -> Call:
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        user = self.server.authenticator.authenticate(headers, scope["state"].get("peer_certificate"), path)
        query = Query(scope["query_string"].decode("latin-1"))
        client = scope.get("client")
        return Call(
            self.server, scope.get("method", "GET"), path, query, headers, b"", user, peer=client[0] if client else ""
        )

    def _refusal(self, error: ApiError, call: Call | None, scope: Scope) -> Response:
        """The answer to a request that did not come as far as the server; without `call` it is not known whose."""
        answer = error_response(error)
        if self.server.audit is not None:
            self.server.audit.refused(call, scope, answer)
        return answer

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        audit, call, record, stream, refusal = self.server.audit, None, None, None, None
        try:
            call = self._call(scope)
            record = await audit.begin(call) if audit is not None else None
            self.server.admit(call)
            if call.verb == "get" and call.subresource != "proxy":
                # exec, attach and port-forward act on a pod: whoever may only read it may not, whatever the method.
                self.server.require(call, "create", call.target.namespace)
            sub = call.served.subresources.get(call.subresource) if call.served else None
            if sub is None or sub.stream is None:
                raise NotFound("the server could not find the requested resource")
            stream = self.server.fairness.open_stream(call)
            if audit is not None and record is not None:
                send = audit.accepted(record, call, send)
            await sub.stream(call, scope, receive, send)
        except ApiError as error:
            refusal = self._refusal(error, call, scope) if record is None else error_response(error)
            await _refuse(send, refusal)
        finally:
            self.server.fairness.close_stream(stream)
            if audit is not None and record is not None:
                audit.closed(record, refusal)


async def _refuse(send: Send, answer: Response) -> None:
    """Answers a WebSocket handshake with a plain HTTP error, which kubectl shows to the user."""
    headers = [(b"content-type", b"application/json")]
    with contextlib.suppress(RuntimeError):  # the handshake was answered already
        await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": answer.body})


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise RequestTooLarge(f"Request entity too large: limit is {MAX_BODY_BYTES}")


async def _read_in_time(receive: Receive) -> bytes:
    try:
        async with asyncio.timeout(BODY_S):
            return await _read_body(receive)
    except TimeoutError:
        raise Timeout("Timeout: request did not complete within the allotted timeout") from None


async def _read_body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the request's body did not arrive whole")
        chunk = message.get("body", b"")
        size += len(chunk)
        _check_size(size)
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _compress(answer: Response, scope: Scope) -> None:
    """For clients on other machines; on this one copying the bytes is faster than making fewer of them."""
    client = scope.get("client")
    if client is None or client[0].startswith("127.") or client[0] == "::1" or "content-encoding" in answer.headers:
        return
    # zlib lets go of the interpreter, so other requests go on meanwhile.
    answer.body = await asyncio.to_thread(gzip.compress, answer.body, COMPRESSION_LEVEL)
    answer.headers["content-encoding"] = "gzip"
    answer.headers["vary"] = "Accept-Encoding"


def _headers(answer: Answer) -> list[tuple[bytes, bytes]]:
    headers = [(b"cache-control", b"no-cache, private")] if "cache-control" not in answer.headers else []
    if answer.status != 304:  # the client keeps the type of what it has; a new one here would replace it
        headers.append((b"content-type", header_value(answer.content_type)))
    headers += [(name.encode("latin-1"), header_value(value)) for name, value in answer.headers.items()]
    return headers


_NOT_IN_HEADERS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def header_value(text: str) -> bytes:
    """What was chosen by others may be in it: a character that no header can have would cost the whole answer."""
    try:
        raw = text.encode("utf-8", "surrogateescape")  # a proxied answer's bytes, as they came
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "replace")
    return _NOT_IN_HEADERS.sub(b" ", raw).strip()


_heads: dict[tuple[int, str], bytes] = {}  # of the answers that have no headers of their own; there are few


def _answered(exchange: Exchange, answer: Response) -> bool:
    """Whether it could be written at once: nearly all can, and all that is left to tell is how long they are."""
    if answer.headers or answer.status == 304 or len(answer.body) > PIECE:
        return False
    kind = (answer.status, answer.content_type)
    head = _heads.get(kind)
    if head is None:
        head = head_of(answer.status, _headers(answer))
        if answer.content_type in KEPT_TYPES:  # others may be anybody's
            _heads[kind] = head
    return exchange.answer(head, answer.body)


async def _send_response(send: Send, answer: Response | Answer, head_only: bool, scope: Scope | None = None) -> None:
    assert isinstance(answer, Response)
    headers = _headers(answer)
    if answer.status != 304:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    body: bytes | memoryview = b"" if head_only else answer.body
    if len(body) <= PIECE:
        await send({"type": "http.response.body", "body": body})
        return
    body = memoryview(body)
    try:
        # Piece by piece, each when the client has read most of those before. So long the request holds its seat: a
        # connection takes in whatever it is given at once, and who does not read could have any amount of memory kept.
        for start in range(0, len(body), PIECE):
            async with asyncio.timeout(STALLED_S):
                more = start + PIECE < len(body)
                await send({"type": "http.response.body", "body": body[start : start + PIECE], "more_body": more})
    except TimeoutError:
        _abort(scope)
        await asyncio.sleep(ABORTED_S)


def _abort(scope: Scope | None) -> None:
    """Cuts the connection without waiting for what the client has not read."""
    abort = ((scope or {}).get("state") or {}).get("abort")
    if abort is not None:
        abort()


async def _send_stream(scope: Scope, receive: Receive, send: Send, answer: StreamResponse) -> None:
    """Sends the chunks as they come, until they end, the client goes away, or it is too far behind."""
    tasks: list[asyncio.Future[None]] = []
    try:
        await send({"type": "http.response.start", "status": answer.status, "headers": _headers(answer)})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        sending, leaving = (
            asyncio.ensure_future(_send_chunks(send, answer)),
            asyncio.ensure_future(_client_left(receive)),
        )
        tasks = [sending, leaving]
        if answer.overdue is not None:
            tasks.append(asyncio.ensure_future(_too_late(answer.overdue)))
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done() and not leaving.done():
            sending.cancel()
            _abort(scope)
            await asyncio.wait([leaving], timeout=STALLED_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        answer.release()


async def _send_chunks(send: Send, answer: StreamResponse) -> None:
    try:
        async for chunk in answer.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        close = getattr(answer.chunks, "aclose", None)
        if close is not None:
            await close()
    await send({"type": "http.response.body", "body": b""})


async def _too_late(overdue: asyncio.Event) -> None:
    """Some time after: a client that does read is sent what it has coming, and then the end."""
    await overdue.wait()
    await asyncio.sleep(OVERDUE_S)


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
