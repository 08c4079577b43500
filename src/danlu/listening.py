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
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets import http11

from danlu.connections import Acceptor, Room, Seat

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


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's, with an end to waiting. The scope's state has `abort`, which cuts the connection at once."""

    def __init__(self, *args: Any, seat: Seat, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seat = seat
        self._head_bytes = 0
        self._in_head = False
        self._refused = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seat.drop = transport.abort
        self.app_state = {**self.app_state, "abort": transport.abort, "seat": self._seat}
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
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
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._stop_timer()
        if len(self.headers) > MOST_HEADERS:
            self._refuse()
            return
        self._seat.works()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self._seat.waits()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        self._stop_timer()
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
        seat: Seat | None = self.app_state.get("seat")
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

    def _protocol(self, seat: Seat) -> asyncio.Protocol:
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
