"""The HTTPS socket: uvicorn, with client certificates made known to the server."""

from __future__ import annotations

import asyncio
import functools
import resource
import socket
import ssl
import time
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from danlu.embedded.apiserver.app import App
from danlu.listening import Listening, bind

__all__ = ["Listener", "bind"]


class Protocol(HttpToolsProtocol):
    """uvicorn's, plus: the client's certificate, which TLS has verified, goes into the scope's state.

    And an address has so many connections at the most: a new one takes the place of the one that has been there longest
    with nothing asked on it. So who only holds connections keeps nobody out.
    """

    def __init__(self, *args: Any, most: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._most = most
        self._since = time.monotonic()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        same = [other for other in self.connections if isinstance(other, Protocol) and _same_address(other, self)]
        if len(same) > self._most:
            idle = [other for other in same if other._idle and other is not self]
            min(idle, key=lambda other: other._since, default=self).transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._make_room()
        secure = transport.get_extra_info("ssl_object")
        if secure is not None:
            self.app_state = {**self.app_state, "peer_certificate": secure.getpeercert(True)}


def _same_address(one: Protocol, other: Protocol) -> bool:
    return one.client is not None and other.client is not None and one.client[0] == other.client[0]


class Listener(Listening):
    def __init__(
        self,
        app: App,
        listener: socket.socket,
        certificate: Path,
        key: Path,
        authority: Path,
        connections_per_address: int,
    ) -> None:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        super().__init__(
            app,
            listener,
            http=functools.partial(Protocol, most=min(connections_per_address, descriptors // 2)),
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
