"""A socket with uvicorn behind it, for parts of one process that are started and stopped in an order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets import http11

# A command's arguments stand in the URL: `kubectl exec POD -- rm -rf /tmp/*` is soon longer than the library's 8 KiB.
http11.MAX_LINE_LENGTH = 1 << 20  # as Go's servers have it


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's, for protocol names with a slash in them (`SPDY/3.1+portforward.k8s.io`).

    The library below refuses such a handshake although nobody asked it to choose a protocol: that is done here.
    And a handshake that is answered with an HTTP error is complete: uvicorn would log it as the application's mistake.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.process_subprotocol = lambda headers: None  # type: ignore[method-assign]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.transport.is_closing():
            # What cannot be read as a handshake is answered, too, and does not wait for ever.
            for chunk in self.conn.data_to_send():
                self.transport.write(chunk)
            self.transport.close()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the command, which stops the parts in their order."""
        yield


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

    def __init__(self, app: Any, *sockets: socket.socket, **options: Any) -> None:
        self._sockets = list(sockets)
        config: dict[str, Any] = {
            "ws": WebSocketProtocol,
            "ws_max_size": 64 * 1024 * 1024,
            "ws_per_message_deflate": False,
            "lifespan": "off",
            "loop": "none",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "date_header": False,
            "proxy_headers": False,  # whom a request is from is what the socket says, not what a header claims
            # kubectl, client libraries and browsers keep connections; 5 s would make them reconnect
            "timeout_keep_alive": 120,
            "timeout_graceful_shutdown": 1,
            **options,
        }
        self._server = _Uvicorn(uvicorn.Config(app, **config))
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
