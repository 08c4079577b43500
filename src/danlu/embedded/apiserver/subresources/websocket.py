"""WebSockets as Kubernetes uses them: one connection, several numbered channels.

The first byte of a message is the channel (in the base64 protocols: a digit, and the rest is base64). Since version 5
a message on channel 255 says that the channel named in its second byte has ended.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected

from danlu.errors import BadRequest

CLOSE_CHANNEL = 255
NORMAL, PROTOCOL_ERROR = 1000, 1002


class Socket:
    """One WebSocket of an ASGI server. After the client left, `receive` answers None and `send` does nothing."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        self.offered: list[str] = list(scope.get("subprotocols") or [])
        self._receive = receive
        self._send = send
        self.closed = False

    def choose(self, supported: Sequence[str]) -> str:
        """The client's first choice that is supported; a client that names none gets the first version."""
        if not self.offered and "" in supported:
            return ""
        for protocol in self.offered:
            if protocol in supported:
                return protocol
        shown = " ".join(protocol for protocol in supported if protocol)
        raise BadRequest(f"requested protocol(s) are not supported: [{' '.join(self.offered)}]; supports [{shown}]")

    async def accept(self, protocol: str) -> None:
        await self._receive()  # websocket.connect
        await self._send({"type": "websocket.accept", "subprotocol": protocol or None})

    async def receive(self) -> bytes | None:
        if self.closed:
            return None
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self.closed = True
            return None
        data: bytes | None = message.get("bytes")
        return data if data is not None else str(message["text"]).encode()

    async def send(self, data: bytes) -> None:
        await self._put({"type": "websocket.send", "bytes": data})

    async def send_text(self, text: str) -> None:
        await self._put({"type": "websocket.send", "text": text})

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        await self._put({"type": "websocket.close", "code": code, "reason": reason})
        self.closed = True

    async def _put(self, message: dict[str, Any]) -> None:
        if self.closed:
            return
        with suppress(ClientDisconnected, RuntimeError):
            await self._send(message)
            return
        self.closed = True


class Channels:
    """Numbered channels on a Socket."""

    def __init__(self, socket: Socket, protocol: str) -> None:
        self.socket = socket
        self._base64 = "base64" in protocol
        self.can_close = protocol.startswith("v5.")

    async def send(self, channel: int, data: bytes) -> None:
        if self._base64:
            await self.socket.send_text(f"{channel}{base64.b64encode(data).decode()}")
        else:
            await self.socket.send(bytes((channel,)) + data)

    async def receive(self) -> tuple[int, bytes] | None:
        """(channel, data); None when the client has left. A message without sense is passed over."""
        while (message := await self.socket.receive()) is not None:
            if not message:
                continue
            if not self._base64:
                return message[0], message[1:]
            with suppress(binascii.Error):
                return message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
        return None
