"""Watch streams: bytes in, events out. A server's ERROR event becomes the exception that it names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import orjson

from danlu import errors
from danlu.meta.kind import Object


class WatchEvent(NamedTuple):
    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK
    object: Object


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of a stream whose chunks may split them anywhere."""
    rest = b""
    async for chunk in chunks:
        if not chunk:
            continue
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
    if rest.strip():
        yield rest


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    async for line in lines(chunks):
        try:
            message = orjson.loads(line)
        except ValueError:
            raise errors.ServiceUnavailable("the watch ended in the middle of an event") from None
        if message["type"] == "ERROR":
            status = message["object"]
            raise errors.from_status(status.get("code") or 500, status)
        yield WatchEvent(message["type"], message["object"])
