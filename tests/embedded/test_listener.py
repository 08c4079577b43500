"""HTTP/1.1 as it is on the wire: what our own way of answering must do as well as uvicorn's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from danlu.net import listener
from danlu.net.listener import Listening, bind, head_of

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the path and the body; /short by the short cut, /slow with a head long before its body."""
    path = scope["path"]
    if path == "/short":
        body = scope["exchange"].whole_body()
        assert body is not None
        assert scope["exchange"].answer(head_of(200, []), body)
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    headers = [] if path in ("/slow", "/stream") else [(b"Content-Length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/slow":
        await asyncio.sleep(3600)
    if path == "/stream":
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    listener = bind("127.0.0.1", 0)
    serving = Listening(echo, listener, **options)
    port = listener.getsockname()[1]
    await serving.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await serving.stop()


def request(path: str, body: bytes = b"", method: str = "POST", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def read(reader: asyncio.StreamReader, end: bytes) -> bytes:
    return await asyncio.wait_for(reader.readuntil(end), 30)


@pytest.mark.parametrize("path", ["/short", "/long"])
async def test_answers_come_one_after_the_other_on_one_connection(path: str) -> None:
    async with connected() as (reader, writer):
        for _ in range(2):
            writer.write(request(path, b"hi"))
            assert await read(reader, b"hi") == ANSWER + b"\r\nhi"
        writer.write(request(path, b"ab") + request(path, b"cd"))  # pipelined
        assert await read(reader, b"ab") == ANSWER + b"\r\nab"
        assert await read(reader, b"cd") == ANSWER + b"\r\ncd"


@pytest.mark.parametrize("path", ["/short", "/long"])
async def test_a_client_that_wants_no_more_is_told_so(path: str) -> None:
    async with connected() as (reader, writer):
        writer.write(request(path, b"hi", "POST", "Connection: close"))
        assert await asyncio.wait_for(reader.read(), 30) == ANSWER + b"connection: close\r\n\r\nhi"


async def test_the_answer_to_head_has_no_body() -> None:
    async with connected() as (reader, writer):
        writer.write(request("/long", b"hi", "HEAD") + request("/long", b"ab"))
        assert await read(reader, b"ab") == ANSWER + b"\r\n" + ANSWER + b"\r\nab"


async def test_the_head_of_a_stream_does_not_wait_for_its_body() -> None:
    async with connected() as (reader, writer):
        writer.write(request("/slow"))
        assert await read(reader, b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_a_stream_comes_in_chunks() -> None:
    async with connected() as (reader, writer):
        writer.write(request("/stream", b"last"))
        await read(reader, b"\r\n\r\n")
        assert await read(reader, b"0\r\n\r\n") == b"5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n"


async def test_a_body_that_is_asked_for_is_sent() -> None:
    async with connected() as (reader, writer):
        whole = request("/long", b"hi", "POST", "Expect: 100-continue")
        writer.write(whole[:-2])
        assert await read(reader, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hi")
        assert await read(reader, b"hi") == ANSWER + b"\r\nhi"


async def test_a_connection_that_is_idle_is_closed_and_one_that_is_used_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    before = listener.HttpProtocol._look_whether_idle

    def look(protocol: listener.HttpProtocol) -> None:
        looked.append(protocol)
        before(protocol)

    monkeypatch.setattr(listener.HttpProtocol, "_look_whether_idle", look)
    async with connected(timeout_keep_alive=0.5) as (reader, writer):
        while not looked:  # the timer of the first answer rings between two requests
            writer.write(request("/short", b"hi"))
            await read(reader, b"hi")
            await asyncio.sleep(0.02)
        writer.write(request("/short", b"hi"))
        await read(reader, b"hi")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        assert len(looked) >= 2


@pytest.mark.parametrize("header", [(b"a b", b"c"), (b"a", b"b\r\nc: d")])
def test_what_no_header_can_be_is_not_written(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(RuntimeError):
        head_of(200, [header])
