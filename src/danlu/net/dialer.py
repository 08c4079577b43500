"""aiohttp over connections that somebody else makes, and has verified.

It imports aiohttp, which takes a while: import this module where it is used.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

Dial = Callable[[str, int], Awaitable[socket.socket]]
"""To a host and port: a connected socket that does not block. Raises OSError."""


class Dialer(aiohttp.BaseConnector):
    """In place of aiohttp's own connector, which looks up the host and takes whoever answers.

    Certificates are not checked, as by an API server's proxy: the connection itself says who is at its other end.
    """

    def __init__(self, dial: Dial, **options: Any) -> None:
        super().__init__(**options)
        self._dial = dial

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        host, port = req.url.raw_host or "", req.port or 0
        context, name = (_unverified(), host) if req.is_ssl() else (None, None)
        made: socket.socket | None = None
        try:
            async with asyncio.timeout(timeout.sock_connect):
                made = await self._dial(host, port)
                _, protocol = await self._loop.create_connection(
                    self._factory, sock=made, ssl=context, server_hostname=name
                )
        except OSError as error:
            if made is not None:
                made.close()
            if isinstance(error, TimeoutError) and error.errno is None:
                raise
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
