"""`HttpTransport`: the API over HTTP(S). aiohttp is imported when the first request is made, not before:
the embedded mode never needs it."""

from __future__ import annotations

import base64
import contextlib
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from danlu import errors
from danlu.client.config import Config
from danlu.client.tlstrust import trusting
from danlu.client.transport import Query, TransportResponse, asks_for_a_stream

if TYPE_CHECKING:
    import aiohttp

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 70.0  # the server itself gives up after 60
TOKEN_LIFE_S = 60.0  # how long a token file's content is trusted


class HttpTransport:
    def __init__(self, config: Config, user_agent: str = "danlu") -> None:
        self.config = config
        self.user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._token = config.token
        self._token_read_at = float("-inf")

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        import aiohttp
        from yarl import URL

        streams = asks_for_a_stream(query)
        timeout = aiohttp.ClientTimeout(
            total=None if streams else ANSWER_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S, sock_read=None
        )
        target = f"{path}?{urlencode(query)}" if query else path
        url = URL(self.config.server + target, encoded=True)
        try:
            response = await self._open().request(
                method, url, headers={**headers, **self.credentials()}, data=body or None, timeout=timeout
            )
            plain = {name.lower(): value for name, value in response.headers.items()}
            if streams and response.status < 400:
                return TransportResponse(response.status, plain, _chunks(response))
            async with response:
                return TransportResponse(response.status, plain, await response.read())
        except TimeoutError:
            raise errors.Timeout(f"{self.config.server} did not answer in time") from None
        except aiohttp.ClientError as error:
            raise errors.ServiceUnavailable(f"{self.config.server} cannot be reached: {error}") from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            secure = self.config.server.startswith("https")
            connector = aiohttp.TCPConnector(limit=0, ssl=tls_context(self.config) if secure else False)
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=True, headers={"user-agent": self.user_agent}
            )
        return self._session

    def credentials(self) -> dict[str, str]:
        config = self.config
        if config.token_file and time.monotonic() - self._token_read_at > TOKEN_LIFE_S:
            with contextlib.suppress(OSError):
                self._token = Path(config.token_file).read_text().strip()
            self._token_read_at = time.monotonic()
        if self._token:
            return {"authorization": f"Bearer {self._token}"}
        if config.username:
            pair = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
            return {"authorization": f"Basic {pair}"}
        return {}


def tls_context(config: Config) -> ssl.SSLContext:
    context = trusting(config.ca)
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if config.client_certificate:
        # The ssl module reads certificates from files only; this one is gone when the block ends.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(config.client_certificate + b"\n" + config.client_key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    import aiohttp

    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except aiohttp.ClientError as error:
        raise errors.ServiceUnavailable(f"the stream broke: {error}") from None
    finally:
        response.close()
