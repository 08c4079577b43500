"""`BriefHttpTransport`: the API over HTTP(S) for a program that asks a few things and ends.

It makes a connection for each request and needs asyncio and httptools alone: importing aiohttp takes longer than all of
`danlu get` does. Who stays (the operator, the console) is better served by `HttpTransport`, which keeps connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlencode, urlsplit

import httptools

from danlu import errors
from danlu.client.config import Config
from danlu.client.http import ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S, HttpTransport, tls_context
from danlu.client.transport import Query, TransportResponse, asks_for_a_stream

CHUNK = 256 * 1024


class BriefHttpTransport(HttpTransport):
    def __init__(self, config: Config, user_agent: str = "danlu") -> None:
        super().__init__(config, user_agent)
        self._place = urlsplit(config.server)
        secure = self._place.scheme == "https"
        self._tls = tls_context(config) if secure else None
        self._port = self._place.port or (443 if secure else 80)

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        target = f"{self._place.path}{path}?{urlencode(query)}" if query else f"{self._place.path}{path}"
        streams = asks_for_a_stream(query)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                answer = await self._connect()
            answer.send(self._head(method, target, headers, body) + body)
            async with asyncio.timeout(None if streams else ANSWER_TIMEOUT_S):
                await answer.read_head()
                if streams and answer.status < 400:
                    return TransportResponse(answer.status, answer.headers, answer.chunks())
                whole = b"".join([chunk async for chunk in answer.chunks()])
            return TransportResponse(answer.status, answer.headers, whole)
        except TimeoutError:
            raise errors.Timeout(f"{self.config.server} did not answer in time") from None
        except (OSError, httptools.HttpParserError) as error:
            raise errors.ServiceUnavailable(f"{self.config.server} cannot be reached: {error}") from None

    async def _connect(self) -> _Answer:
        name = (self.config.tls_server_name or self._place.hostname) if self._tls else None
        reader, writer = await asyncio.open_connection(
            self._place.hostname, self._port, ssl=self._tls, server_hostname=name
        )
        return _Answer(reader, writer)

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        every = {
            "host": self._place.netloc.rpartition("@")[2], "user-agent": self.user_agent, "connection": "close",
            **headers, **self.credentials(),
        }  # fmt: skip
        if body or method not in ("GET", "DELETE"):
            every["content-length"] = str(len(body))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in every.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")


class _Answer:
    """One answer as it comes. The methods that begin with `on_` are called by the parser."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._ended = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._ended = True

    def send(self, request: bytes) -> None:
        self._writer.write(request)

    async def read_head(self) -> None:
        while not self.status:
            await self._read()

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while True:
                body, self._body = self._body, []
                for chunk in body:
                    yield chunk
                if self._ended:
                    return
                await self._read()
        except OSError as error:
            raise errors.ServiceUnavailable(f"the stream broke: {error}") from None
        finally:
            self._writer.transport.abort()  # nothing more is expected; a TLS goodbye would be waited for

    async def _read(self) -> None:
        data = await self._reader.read(CHUNK)
        if data:
            self._parser.feed_data(data)
        elif self.status and not {"content-length", "transfer-encoding"} & self.headers.keys():
            self._ended = True  # such an answer ends with its connection
        else:
            raise ConnectionResetError("the connection was closed before the answer was complete")
