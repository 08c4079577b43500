"""The HTTPS socket: uvicorn, with client certificates made known to the server."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

from danlu.embedded.apiserver.app import App
from danlu.net.connections import Room
from danlu.net.listener import HttpProtocol, Listening, bind

__all__ = ["Listener", "bind"]


class Protocol(HttpProtocol):
    """As everywhere, plus: the client's certificate, which TLS has verified, goes into the scope's state."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        secure = transport.get_extra_info("ssl_object")
        if secure is not None:
            self.app_state = {**self.app_state, "peer_certificate": secure.getpeercert(True)}


class Listener(Listening):
    def __init__(
        self,
        app: App,
        listener: socket.socket,
        certificate: Path,
        key: Path,
        authority: Path,
        connections: int = 0,
    ) -> None:
        super().__init__(
            app,
            listener,
            room=Room(connections or None),
            http=Protocol,
            ssl_certfile=str(certificate),
            ssl_keyfile=str(key),
            ssl_ca_certs=str(authority),
            ssl_cert_reqs=ssl.CERT_OPTIONAL,
        )
        self._files = (str(certificate), str(key), str(authority))

    def reload(self) -> None:
        """Certificates that were made again: connections that are made from now on get them."""
        context = self._server.config.ssl
        if context is not None:  # it has started
            certificate, key, authority = self._files
            context.load_cert_chain(certificate, key)
            context.load_verify_locations(authority)
