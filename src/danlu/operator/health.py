"""`/healthz`, `/readyz` and `/metrics` over plain HTTP: three answers need no framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

REQUEST_S = 5.0
LONGEST_REQUEST = 16384
PHRASES = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error", 503: "Not Ready"}


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    status: int
    text: str


Pages = Mapping[str, Callable[[], HealthAnswer]]


async def serve(host: str, port: int, pages: Pages) -> asyncio.Server:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                answer = _answer(head, pages)
                writer.write(_encode(answer, with_body=not head.startswith(b"HEAD ")))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked went away, or was no HTTP client
        finally:
            writer.close()

    return await asyncio.start_server(talk, host, port, limit=LONGEST_REQUEST)


def _answer(head: bytes, pages: Pages) -> HealthAnswer:
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or words[0] not in ("GET", "HEAD"):
        return HealthAnswer(405, "only GET\n")
    page = pages.get(words[1].partition("?")[0])
    return page() if page is not None else HealthAnswer(404, "there are " + ", ".join(pages) + "\n")


def _encode(answer: HealthAnswer, *, with_body: bool) -> bytes:
    body = answer.text.encode()
    head = (
        f"HTTP/1.1 {answer.status} {PHRASES[answer.status]}\r\n"
        "content-type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
