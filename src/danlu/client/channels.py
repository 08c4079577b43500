"""Numbered channels over one WebSocket, as `pods/NAME/exec` and `pods/NAME/portforward` speak them: the client's side.

The first byte of a message is its channel. Since version 5 a message on channel 255 says that the channel named in its
second byte has ended; before, a program that reads its standard input to the end cannot be told that it is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from danlu import errors
from danlu.client.http import CONNECT_TIMEOUT_S, HttpTransport, tls_context

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

CLOSE = 255
EXEC_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PORT_PROTOCOLS = ("v4.channel.k8s.io",)


class ChannelSocket:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @property
    def knows_end(self) -> bool:
        return self._socket.subprotocol == EXEC_PROTOCOLS[0]

    async def send(self, channel: int, data: bytes) -> None:
        await self._socket.send(bytes((channel,)) + data)

    async def finish(self, channel: int) -> None:
        if self.knows_end:
            await self.send(CLOSE, bytes((channel,)))

    async def messages(self) -> AsyncIterator[tuple[int, bytes]]:
        """Until the other side has closed. Raises ServiceUnavailable where the connection broke."""
        from websockets.exceptions import ConnectionClosedError

        try:
            async for message in self._socket:
                data = message if isinstance(message, bytes) else message.encode()
                if data:
                    yield data[0], data[1:]
        except ConnectionClosedError as error:
            raise errors.ServiceUnavailable(f"the stream broke: {error}") from None


@asynccontextmanager
async def connected(
    transport: HttpTransport, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]
) -> AsyncIterator[ChannelSocket]:
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidHandshake, InvalidStatus
    from websockets.typing import Subprotocol

    config = transport.config
    secure = config.server.startswith("https")
    address = f"{'wss' if secure else 'ws'}{config.server.removeprefix('https' if secure else 'http')}{path}"
    named: dict[str, Any] = {"server_hostname": config.tls_server_name} if secure and config.tls_server_name else {}
    opening = connect(
        f"{address}?{urlencode(query)}",
        ssl=tls_context(config) if secure else None,
        additional_headers=transport.credentials(),
        subprotocols=[Subprotocol(one) for one in protocols],
        user_agent_header=transport.user_agent,
        open_timeout=CONNECT_TIMEOUT_S,
        max_size=None,  # servers send what the program wrote at once
        compression=None,
        proxy=None,
        **named,
    )
    try:
        socket = await opening
    except InvalidStatus as refused:
        raise _refusal(refused.response.status_code, bytes(refused.response.body or b"")) from None
    except TimeoutError:
        raise errors.Timeout(f"{config.server} did not answer in time") from None
    except (OSError, InvalidHandshake) as error:
        raise errors.ServiceUnavailable(f"{config.server} cannot be reached: {error}") from None
    try:
        yield ChannelSocket(socket)
    finally:
        await socket.close()


def _refusal(code: int, body: bytes) -> errors.ApiError:
    try:
        status = orjson.loads(body)
    except ValueError:
        status = None
    if not isinstance(status, dict):
        status = {"message": body.decode(errors="replace").strip()[:500]}
    return errors.from_status(code, status)
