from __future__ import annotations

import asyncio
import struct

import pytest

from danlu.embedded.apiserver.subresources.spdy import Connection, HeaderBlocks, ProtocolError, Stream


class Client:
    """The other side, written out by hand."""

    def __init__(self, accept: bool = True) -> None:
        self.blocks = HeaderBlocks()
        self.sent = b""
        self.streams: list[Stream] = []
        self.answer = accept
        self.connection = Connection(self._receive, self._accept)

    async def _receive(self, data: bytes) -> None:
        self.sent += data

    def _accept(self, stream: Stream) -> bool:
        self.streams.append(stream)
        return self.answer

    def syn(self, number: int, headers: dict[str, str], flags: int = 0) -> bytes:
        body = struct.pack(">IIBB", number, 0, 0, 0) + self.blocks.pack(headers)
        return struct.pack(">HHI", 0x8003, 1, flags << 24 | len(body)) + body

    def frames(self) -> list[tuple[int, int, bytes]]:
        """(kind, or 0 for data; flags; body with the stream's number before it)."""
        found, rest = [], self.sent
        while rest:
            first, second = struct.unpack_from(">II", rest)
            body, rest = rest[8 : 8 + (second & 0xFFFFFF)], rest[8 + (second & 0xFFFFFF) :]
            found.append((first & 0xFFFF if first >> 31 else 0, second >> 24, body))
        self.sent = b""
        return found


def data(number: int, content: bytes, last: bool = False) -> bytes:
    return struct.pack(">II", number, last << 24 | len(content)) + content


async def test_a_stream_opens_carries_both_ways_and_ends() -> None:
    client = Client()
    raw = client.syn(1, {"streamtype": "data", "Port": "80"}) + data(1, b"hello") + data(1, b"", last=True)
    for at in range(len(raw)):  # however the bytes are cut
        await client.connection.feed(raw[at : at + 1])
    [stream] = client.streams
    assert stream.headers == {"streamtype": "data", "port": "80"}
    assert await stream.read() == b"hello"
    assert await stream.read() == b""
    assert await stream.read() == b""
    await stream.write(b"answer")
    await stream.finish()
    kinds = client.frames()
    assert [kind for kind, _, _ in kinds] == [2, 0, 0]
    assert kinds[1][2] == b"answer"
    assert kinds[2][1] == 1


async def test_headers_share_one_compression_context() -> None:
    client = Client()
    for number in (1, 3, 5):
        await client.connection.feed(client.syn(number, {"streamtype": "error", "requestid": str(number)}))
    assert [stream.headers["requestid"] for stream in client.streams] == ["1", "3", "5"]


async def test_ping_is_answered_and_other_frames_are_passed_over() -> None:
    client = Client()
    ping = struct.pack(">HHI", 0x8003, 6, 4) + struct.pack(">I", 7)
    window = struct.pack(">HHI", 0x8003, 9, 8) + struct.pack(">II", 1, 100)
    await client.connection.feed(window + ping)
    assert client.sent == ping


async def test_a_refused_stream_is_reset() -> None:
    client = Client(accept=False)
    await client.connection.feed(client.syn(1, {}))
    assert [kind for kind, _, _ in client.frames()] == [2, 3]


async def test_reset_wakes_the_reader_and_stops_the_writer() -> None:
    client = Client()
    await client.connection.feed(client.syn(1, {}))
    [stream] = client.streams
    reading = asyncio.create_task(stream.read())
    await asyncio.sleep(0)
    await client.connection.feed(struct.pack(">HHI", 0x8003, 3, 8) + struct.pack(">II", 1, 5))
    assert await reading == b""
    client.frames()
    await stream.write(b"nobody reads this")
    assert client.sent == b""


async def test_a_stream_that_nobody_reads_does_not_hold_up_the_others() -> None:
    client = Client()
    await client.connection.feed(client.syn(1, {}) + client.syn(3, {}))
    first, second = client.streams
    flood = b"".join(data(1, b"x") for _ in range(2000)) + data(3, b"y")
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        feeding = group.create_task(client.connection.feed(flood))
        await asyncio.sleep(0.01)
        assert not feeding.done()
        first.forget()
        assert await second.read() == b"y"


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", 0x8003, 1, 2) + b"xx",
        struct.pack(">HHI", 0x8003, 1, 12) + struct.pack(">IIBB", 1, 0, 0, 0) + b"zz",
    ],
)
async def test_nonsense_is_an_error_and_nothing_else(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        await Client().connection.feed(raw)
