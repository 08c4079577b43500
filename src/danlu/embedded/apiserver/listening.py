"""The HTTPS socket: uvicorn, with client certificates made known to the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from danlu.embedded.apiserver.app import App
from danlu.embedded.apiserver.subresources.websocket import WebSocketProtocol


class Protocol(HttpToolsProtocol):
    """uvicorn's, plus: the client's certificate, which TLS has verified, goes into the scope's state."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        secure = transport.get_extra_info("ssl_object")
        if secure is not None:
            self.app_state = {**self.app_state, "peer_certificate": secure.getpeercert(True)}


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to `danlu up`, which stops the parts in their order."""
        yield


def bind(host: str, port: int) -> socket.socket:
    """Raises OSError when the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(False)
    return listener


class Listener:
    def __init__(self, app: App, listener: socket.socket, certificate: Path, key: Path, authority: Path) -> None:
        config: dict[str, Any] = {
            "ssl_certfile": str(certificate),
            "ssl_keyfile": str(key),
            "ssl_ca_certs": str(authority),
            "ssl_cert_reqs": ssl.CERT_OPTIONAL,
        }
        self._socket = listener
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                http=Protocol,
                ws=WebSocketProtocol,
                ws_max_size=64 * 1024 * 1024,
                ws_per_message_deflate=False,
                lifespan="off",
                loop="none",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=120,  # kubectl and client libraries keep connections; 5 s would make them reconnect
                timeout_graceful_shutdown=1,
                **config,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise RuntimeError("the API port could not be served")
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
