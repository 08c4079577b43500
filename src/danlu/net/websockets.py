"""What everybody needs who passes a WebSocket on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


async def forward(
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]], upstream: aiohttp.ClientWebSocketResponse
) -> None:
    """Everything that comes from an ASGI client, until it goes; then the other side is closed, too."""
    while (message := await receive())["type"] != "websocket.disconnect":
        if message.get("bytes") is not None:
            await upstream.send_bytes(message["bytes"])
        else:
            await upstream.send_str(message["text"])
    await upstream.close()
