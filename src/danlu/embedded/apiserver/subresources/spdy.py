"""SPDY/3.1, as much of it as kubectl's port-forward speaks: the server's side of one connection, on any byte stream.

kubectl (through moby/spdystream) opens streams with SYN_STREAM, sends DATA, half-closes with FIN, resets with
RST_STREAM and asks PING; it neither announces nor honours windows, so none are kept here: what holds back a fast sender
is that `Connection.feed` is awaited before more bytes are read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Awaitable, Callable

from danlu.embedded.apiserver.subresources.nodestreams import ByteQueue

VERSION = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 0x01
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL = 1, 2, 3, 5
LARGEST_FRAME = 256 * 1024  # bytes; the format has room for 16 MiB, kubectl sends 32 KiB
MOST_STREAMS = 256  # of one connection; two for each TCP connection that is carried
MOST_HEADERS = 64 * 1024  # bytes of one block, unpacked
DATA_CHUNK = 32 * 1024
QUEUED_BYTES = 64 * 1024  # of one stream, before the whole connection waits for its reader

# The dictionary that the specification lays down for header compression.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200\0OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TAIL = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    b"Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    b"Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    b"00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    b"application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    b"charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(struct.pack(">I", len(word)) + word.replace("\0", " ").encode() for word in _WORDS.split(" ")) + _TAIL
)


class ProtocolError(Exception):
    pass


class HeaderBlocks:
    """Header compression: one growing context for each direction of a connection."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(zdict=DICTIONARY)
        self._unpacker = zlib.decompressobj(zdict=DICTIONARY)

    def pack(self, headers: dict[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                parts += (struct.pack(">I", len(text)), text)
        return self._packer.compress(b"".join(parts)) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def unpack(self, block: bytes) -> dict[str, str]:
        """Names in lower case."""
        try:
            plain = self._unpacker.decompress(block, MOST_HEADERS)
            if self._unpacker.unconsumed_tail:
                raise ProtocolError(f"a header block is longer than {MOST_HEADERS} bytes")
            (count,) = struct.unpack_from(">I", plain)
            at, texts = 4, []
            for _ in range(2 * count):
                (length,) = struct.unpack_from(">I", plain, at)
                if at + 4 + length > len(plain):
                    raise ProtocolError("a header block ends too early")
                texts.append(plain[at + 4 : at + 4 + length].decode("latin-1"))
                at += 4 + length
        except (zlib.error, struct.error) as error:
            raise ProtocolError(f"a header block cannot be read: {error}") from error
        return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=True)}


class Stream:
    """One stream that the client opened. `read` answers b"" after the client's last byte."""

    def __init__(self, connection: Connection, number: int, headers: dict[str, str]) -> None:
        self.number = number
        self.headers = headers
        self._connection = connection
        self._chunks = ByteQueue(QUEUED_BYTES)
        self._read_to_end = False
        self._finished = False  # nothing more goes out on it
        self._unread = False  # nobody will read here again
        self.reset_by_client = False

    async def read(self) -> bytes:
        if self._read_to_end:
            return b""
        chunk = await self._chunks.get()
        self._read_to_end = not chunk
        return chunk

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._finished:
            chunk, view = view[:DATA_CHUNK], view[DATA_CHUNK:]
            await self._connection.send(struct.pack(">II", self.number, len(chunk)) + chunk)

    async def finish(self) -> None:
        """Nothing more is written here; the client may still write."""
        if not self._finished:
            self._finished = True
            await self._connection.send(struct.pack(">II", self.number, FIN << 24))

    async def reset(self, status: int = CANCEL) -> None:
        if not self.reset_by_client:
            self._finished = True
            await self._connection.send(_control(RST_STREAM, 0, struct.pack(">II", self.number, status)))
        self.forget()

    def forget(self) -> None:
        """Nobody reads or writes here any more. What still comes must not hold up the other streams."""
        self._unread = True
        self._chunks.clear()
        self._connection.forget(self.number)

    async def _feed(self, data: bytes, last: bool) -> None:
        for chunk in (data, b""):
            if not self._unread and (chunk or last):
                await self._chunks.put(chunk)

    def _abort(self) -> None:
        """The client takes no more, and sends no more."""
        self.reset_by_client = True
        self._finished = True
        self._chunks.put_nowait(b"")


class Connection:
    """`accept` is called for each new stream; when it answers False the stream is refused."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], accept: Callable[[Stream], bool]) -> None:
        self.send = send
        self._accept = accept
        self._blocks = HeaderBlocks()
        self._streams: dict[int, Stream] = {}
        self._buffer = bytearray()
        self.going_away = False

    async def feed(self, data: bytes) -> None:
        """Takes bytes in as they arrive. Raises ProtocolError when they make no sense."""
        self._buffer += data
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from(">II", self._buffer)
            length = second & 0xFFFFFF
            if length > LARGEST_FRAME:
                raise ProtocolError(f"a frame is longer than {LARGEST_FRAME} bytes")
            if len(self._buffer) < 8 + length:
                return
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if first >> 31:
                if first >> 16 & 0x7FFF != VERSION:
                    raise ProtocolError("only version 3 of SPDY is spoken here")
                await self._control_frame(first & 0xFFFF, second >> 24, body)
            else:
                await self._data_frame(first, second >> 24, body)

    async def _data_frame(self, number: int, flags: int, body: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            await self.send(_control(RST_STREAM, 0, struct.pack(">II", number, INVALID_STREAM)))
            return
        await stream._feed(body, bool(flags & FIN))

    async def _control_frame(self, kind: int, flags: int, body: bytes) -> None:
        try:
            if kind == SYN_STREAM:
                await self._open(flags, body)
            elif kind == RST_STREAM:
                stream = self._streams.pop(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, None)
                if stream is not None:
                    stream._abort()
            elif kind == HEADERS:
                self._blocks.unpack(body[4:])  # keeps the compression context right
            elif kind == PING:
                if struct.unpack_from(">I", body)[0] & 1:  # the client's own; an even one would be an answer to us
                    await self.send(_control(PING, 0, body[:4]))
            elif kind == GOAWAY:
                self.going_away = True
        except struct.error as error:
            raise ProtocolError("a control frame is too short") from error

    async def _open(self, flags: int, body: bytes) -> None:
        number = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
        headers = self._blocks.unpack(body[10:])
        stream = Stream(self, number, headers)
        if number in self._streams or not number & 1:
            raise ProtocolError(f"stream number {number} is not the client's to open")
        if len(self._streams) >= MOST_STREAMS:
            raise ProtocolError(f"more than {MOST_STREAMS} streams are open")
        self._streams[number] = stream
        # The reply goes out before anything that `accept` may start to send.
        await self.send(_control(SYN_REPLY, 0, struct.pack(">I", number) + self._blocks.pack({})))
        if not self._accept(stream):
            await stream.reset(REFUSED_STREAM)
            return
        if flags & FIN:
            await stream._feed(b"", True)

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)

    def abort(self) -> None:
        """The connection is gone: every reader sees the end."""
        for stream in self._streams.values():
            stream._abort()
        self._streams.clear()


def _control(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | VERSION, kind, flags << 24 | len(body)) + body
