"""A socket with uvicorn behind it, for parts of one process that are started and stopped in an order.

uvicorn closes a connection that is idle between two requests; beyond that it has no limits. Here the head of a request
has a time and a size, connections have a number (`connections`), and nobody who sends pings is owed answers that he
does not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets import http11

from danlu.net.connections import Acceptor, ConnectionSeat, Room

HEAD_S = 30.0  # from the first byte of a request (or of the connection) until its head is there; Kubernetes has 32
IDLE_S = 120  # kubectl, client libraries and browsers keep connections; uvicorn's 5 s would make them reconnect
HEAD_BYTES = 1 << 20  # of a request's line and headers; as Go's servers have it
MOST_HEADERS = 500
MESSAGE_BYTES = 16 * 1024 * 1024  # of a WebSocket; Jupyter's own servers take 10 MiB
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 31\r\nconnection: close\r\n\r\nRequest Header Fields Too Large"
)

# A command's arguments stand in the URL: `kubectl exec POD -- rm -rf /tmp/*` is soon longer than the library's 8 KiB.
http11.MAX_LINE_LENGTH = HEAD_BYTES


class Signal:
    """As asyncio.Event, which is made when somebody waits: most requests have come whole, and nobody ever does."""

    __slots__ = ("_event", "_set")

    def __init__(self) -> None:
        self._set = False
        self._event: asyncio.Event | None = None

    def set(self) -> None:
        self._set = True
        if self._event is not None:
            self._event.set()

    def clear(self) -> None:
        self._set = False
        if self._event is not None:
            self._event.clear()

    async def wait(self) -> None:
        if not self._set:
            self._event = self._event or asyncio.Event()
            await self._event.wait()


class Exchange(RequestResponseCycle):
    """A request and its answer: uvicorn's, which writes the head of an answer together with what follows it.

    The scope has it as `exchange`, for applications that can use its short cuts: a whole body, a whole answer.
    """

    _head = b""  # of an answer that has begun: goes out with the first piece of the body

    def whole_body(self) -> bytes | None:
        """The body, if all of it is here; it can be had once."""
        if self.more_body or self.disconnected:
            return None
        body, self.body = bytes(self.body), bytearray()
        self.message_event.clear()
        return body

    def answer(self, head: bytes, body: bytes) -> bool:
        """Writes a whole answer: `head` as `head_of` makes it. False: it has to be sent the other way."""
        if self.flow.write_paused or self.response_started or self.scope["method"] == "HEAD":
            return False
        if not self.disconnected:
            self.response_started, self.waiting_for_100_continue = True, False
            closing = b"" if self.keep_alive else b"connection: close\r\n"
            self.transport.write(b"%bcontent-length: %d\r\n%b\r\n%b" % (head, len(body), closing, body))
            self._complete()
        return True

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if not self.response_started:
            if kind != "http.response.start":
                raise RuntimeError(f"expected http.response.start, not {kind}")
            self.response_started, self.waiting_for_100_continue = True, False
            self._begin(message["status"], message.get("headers") or ())
            # With the body if that comes now; but who waits for the head of a stream has it in a moment.
            asyncio.get_running_loop().call_soon(self._flush_head)
        elif self.response_complete or kind != "http.response.body":
            raise RuntimeError(f"unexpected {kind}")
        else:
            self._write(message.get("body") or b"", bool(message.get("more_body")))

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        head = head_of(status, headers)
        given = {name.lower(): value.lower() for name, value in headers}
        closing = b"close" in given.get(b"connection", b"")
        self.keep_alive = self.keep_alive and not closing
        if not self.keep_alive and not closing:
            head += b"connection: close\r\n"
        length, coding = given.get(b"content-length"), given.get(b"transfer-encoding")
        self.expected_content_length = int(length) if length is not None else 0
        self.chunked_encoding = length is None and coding == b"chunked"
        if length is None and coding is None and self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            head += b"transfer-encoding: chunked\r\n"
        self._head = head + b"\r\n"

    def _flush_head(self) -> None:
        head, self._head = self._head, b""
        if head and not self.disconnected:
            self.transport.write(head)

    def _write(self, body: bytes | memoryview, more: bool) -> None:
        head, self._head = self._head, b""
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            content: list[bytes | memoryview] = [head]
            body = b""
        elif self.chunked_encoding:
            content = [head, b"%x\r\n" % len(body), body, b"\r\n"] if body else [head]
            if not more:
                content.append(b"0\r\n\r\n")
        else:
            if len(body) > self.expected_content_length:
                raise RuntimeError("the answer is longer than its Content-Length")
            self.expected_content_length -= len(body)
            content = [head, body]
        self.transport.write(b"".join(content) if head or self.chunked_encoding else body)
        if not more:
            if self.expected_content_length:
                raise RuntimeError("the answer is shorter than its Content-Length")
            self._complete()


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The status line and these headers. Raises RuntimeError for what no header can be."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
            raise RuntimeError(f"no header: {name!r}: {value!r}")
        lines.append(b"%b: %b\r\n" % (name.lower(), value))
    return b"".join(lines)


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's, with an end to waiting. The scope's state has `abort`, which cuts the connection at once."""

    cycle: Exchange

    def __init__(self, *args: Any, seat: ConnectionSeat, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seat = seat
        self._head_bytes = 0
        self._in_head = False
        self._refused = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seat.drop = transport.abort
        self.app_state = {**self.app_state, "abort": transport.abort, "seat": self._seat}
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_idle_timer()
        self._seat.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.parser is None or self.transport.is_closing() or not self._waits_for_head():
            return
        # What came was no whole head: empty lines before one count, too.
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._refuse()
        elif self._head_timer is None:
            self._expect_head()

    def _waits_for_head(self) -> bool:
        return self._in_head or self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        self._in_head = True
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        if self._head_timer is not None:
            self._stop_timer()
        if len(self.headers) > MOST_HEADERS:
            self._refuse()
            return
        self._seat.works()
        parser, version = self.parser, self.parser.get_http_version()
        self.scope = self._scope(parser.get_method().decode("ascii"), version)
        if parser.should_upgrade() and self._should_upgrade():
            return
        before = self.cycle
        self.cycle = cycle = Exchange(
            self.scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,
            [],
            Signal(),  # type: ignore[arg-type]
            self.expect_100_continue,
            version != "1.0" and parser.should_keep_alive(),
            self.on_response_complete,
        )
        self.scope["exchange"] = cycle  # type: ignore[typeddict-unknown-key]
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:  # one after the other, in the order in which they came
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _scope(self, method: str, version: str) -> Any:
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        return {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": method,
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "state": self.app_state.copy(),
        }

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if not self.pipeline:
            self._seat.waits()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self._look_whether_idle)

    def _unset_keepalive_if_required(self) -> None:
        """The timer goes on: a new one for each request would cost more than the look when it rings."""

    def _look_whether_idle(self) -> None:
        self.timeout_keep_alive_task = None
        if self._in_head or self._head_timer is not None or not self._waits_for_head():
            return  # something comes, which has its own time; its answer sets the timer again
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left <= 0:
            self.timeout_keep_alive_handler()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(left, self._look_whether_idle)

    def _stop_idle_timer(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def handle_websocket_upgrade(self) -> None:
        self._stop_timer()
        self._stop_idle_timer()
        if not self._refused:
            self._seat.works()
            super().handle_websocket_upgrade()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._head_is_late)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:  # else an earlier request is being answered
            self.transport.abort()

    def _refuse(self) -> None:
        self._refused = True
        self._stop_timer()
        self.transport.write(TOO_LARGE)
        self.transport.close()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's, for protocol names with a slash in them (`SPDY/3.1+portforward.k8s.io`).

    The library below refuses such a handshake although nobody asked it to choose a protocol: that is done here.
    And a handshake that is answered with an HTTP error is complete: uvicorn would log it as the application's mistake.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.process_subprotocol = lambda headers: None  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        seat: ConnectionSeat | None = self.app_state.get("seat")
        if seat is not None:
            seat.leave()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.transport.is_closing():
            # What cannot be read as a handshake is answered, too, and does not wait for ever.
            for chunk in self.conn.data_to_send():
                self.transport.write(chunk)
            self.transport.close()

    def handle_ping(self) -> None:
        """Who does not read gets no answers either: they would only pile up."""
        answer = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(answer)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()  # closing would wait until the client has read what it does not read

    async def send(self, message: Any) -> None:
        while not self.writable.is_set():  # several may have waited, and the first has filled the buffer again
            await self.writable.wait()
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the command, which stops the parts in their order."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = [Acceptor(one, self._protocol, self._room, self.config.ssl) for one in sockets or ()]  # type: ignore[misc]
        self.started = True

    def _protocol(self, seat: ConnectionSeat) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, seat=seat
        )
        return made


def bind(host: str, port: int) -> socket.socket:
    """Raises OSError when the port is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(False)
    return listener


class Listening:
    """Serves an ASGI application on sockets that are bound already. `options` are uvicorn's."""

    def __init__(self, app: Any, *sockets: socket.socket, room: Room | None = None, **options: Any) -> None:
        self._sockets = list(sockets)
        self.room = Room() if room is None else room
        config: dict[str, Any] = {
            "http": HttpProtocol,
            "ws": WebSocketProtocol,
            "ws_max_size": MESSAGE_BYTES,
            "ws_per_message_deflate": False,
            "lifespan": "off",
            "loop": "none",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "date_header": False,
            "proxy_headers": False,  # whom a request is from is what the socket says, not what a header claims
            "timeout_keep_alive": IDLE_S,
            "timeout_graceful_shutdown": 1,
            **options,
        }
        self._server = _Uvicorn(uvicorn.Config(app, **config), self.room)
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._task: asyncio.Task[None] | None = None

    @property
    def tls(self) -> ssl.SSLContext | None:
        """None without TLS, and before it has started."""
        return self._server.config.ssl if self._server.started else None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=self._sockets))
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise RuntimeError("the port could not be served")
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
