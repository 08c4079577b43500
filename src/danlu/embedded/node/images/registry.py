"""The registry protocol (OCI distribution, HTTP API v2): one registry, as one who may ask it.

aiohttp is imported when the first image is pulled, not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from danlu.embedded.node.images.credentials import Credentials
from danlu.embedded.node.images.imagestore import DOCKER_INDEX, DOCKER_MANIFEST, INDEX, LARGEST_DOCUMENT, MANIFEST
from danlu.embedded.node.images.reference import Reference
from danlu.embedded.node.images.registrysettings import Endpoint, is_loopback

if TYPE_CHECKING:
    import aiohttp

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0  # of a registry that is sending a layer
ACCEPTED = ", ".join((INDEX, DOCKER_INDEX, MANIFEST, DOCKER_MANIFEST))
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
ANSWER_SHOWN = 300  # characters of what a registry says
LARGEST_TOKEN = 1 << 20


class RegistryError(Exception):
    """What a registry answered, in its own words; `status` 0 when it did not."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_unreachable(self) -> bool:
        return self.status == 0

    @property
    def is_denied(self) -> bool:
        return self.status in (401, 403)


class RegistryClient:
    """Use it as an async context manager: it holds connections."""

    def __init__(self, endpoint: Endpoint, reference: Reference, credentials: Credentials | None = None) -> None:
        self.endpoint = endpoint
        self.reference = reference
        self.credentials = credentials
        self._session: aiohttp.ClientSession | None = None
        self._authorization: dict[str, str] = {}  # scope -> header

    async def __aenter__(self) -> RegistryClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    # -- what is asked

    async def manifest(self, version: str) -> bytes:
        """By tag or digest; the caller looks at the digest."""
        async with self.request("GET", f"manifests/{version}", headers={"Accept": ACCEPTED}) as answer:
            return await _limited(answer, LARGEST_DOCUMENT)

    @contextlib.asynccontextmanager
    async def blob(self, digest: str, begin: int = 0) -> AsyncIterator[aiohttp.ClientResponse]:
        """Status 206 when it begins where it was asked to."""
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        async with self.request("GET", f"blobs/{digest}", headers=headers) as answer:
            yield answer

    @contextlib.asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: Any = None,
        action: str = "pull",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """`path` below the repository, or a whole URL. Raises RegistryError for every answer that is none."""
        import aiohttp

        url = path if "://" in path else f"{self.endpoint.url}/v2/{self.reference.path}/{path}"
        scope = f"repository:{self.reference.path}:{action}"
        try:
            for attempt in (1, 2):
                own = {**(headers or {}), **self._known(url, scope)}
                async with self._open().request(method, url, headers=own, data=data) as answer:
                    asks_who = answer.status == 401 and attempt == 1 and self._is_ours(url)
                    challenges = answer.headers.getall("WWW-Authenticate", [])
                    if asks_who and await self._authenticate(challenges, scope):
                        continue
                    if answer.status >= 400:
                        raise RegistryError(await self._said(method, answer), answer.status)
                    yield answer
                    return
        except (aiohttp.ClientError, TimeoutError, ssl.SSLError, OSError) as error:
            told = str(error) or type(error).__name__
            raise RegistryError(f"{self.endpoint.host}: {told[:ANSWER_SHOWN]}") from error

    def absolute(self, location: str) -> str:
        return urljoin(f"{self.endpoint.url}/", location)

    # -- who asks

    def _is_ours(self, url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(self.endpoint.url).netloc

    def _known(self, url: str, scope: str) -> dict[str, str]:
        known = self._authorization.get(scope) if self._is_ours(url) else None
        return {"Authorization": known} if known else {}

    async def _authenticate(self, challenges: list[str], scope: str) -> bool:
        """Whether there is something to try."""
        for challenge in challenges:
            kind, _, rest = challenge.strip().partition(" ")
            if kind.lower() == "bearer":
                self._authorization[scope] = f"Bearer {await self._token(dict(CHALLENGE.findall(rest)), scope)}"
                return True
            if kind.lower() == "basic" and self.credentials is not None:
                self._authorization[scope] = self.credentials.basic
                return True
        return False

    async def _token(self, challenge: Mapping[str, str], scope: str) -> str:
        realm = urlsplit(challenge.get("realm", ""))
        if realm.scheme not in ("https", "http") or not realm.hostname:
            raise RegistryError(f"{self.endpoint.host} names no place where tokens are given", 401)
        plain = realm.scheme == "http" and not is_loopback(realm.netloc) and not self.endpoint.insecure
        if plain:
            raise RegistryError(f"{self.endpoint.host} wants a password sent in the open, to {realm.netloc}", 401)
        asked = {"service": challenge.get("service", ""), "scope": challenge.get("scope") or scope}
        asked["scope"] = scope if "push" in scope else asked["scope"]
        own = self.credentials
        if own is not None and own.token:
            form = {**asked, "grant_type": "refresh_token", "refresh_token": own.token, "client_id": "danlu"}
            request = self._open().post(challenge["realm"], data=form)
        else:
            headers = {"Authorization": own.basic} if own is not None else {}
            request = self._open().get(challenge["realm"], params=asked, headers=headers)
        async with request as answer:
            if answer.status >= 400:
                raise RegistryError(await self._said("GET", answer), 401 if answer.status == 400 else answer.status)
            try:
                found = json.loads(await _limited(answer, LARGEST_TOKEN))
                return str(found.get("token") or found["access_token"])
            except (ValueError, KeyError, TypeError, AttributeError):
                raise RegistryError(f"{realm.netloc} gave no token", 401) from None

    # -- how it is reached

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
            self._session = aiohttp.ClientSession(
                timeout=timeout,
                connector=aiohttp.TCPConnector(ssl=self._trust()),
                trust_env=not is_loopback(
                    self.endpoint.host
                ),  # HTTPS_PROXY and its kin; loopback is nobody's to pass on
                headers={"User-Agent": "danlu"},
                auto_decompress=False,  # a layer is kept as it was packed
            )
        return self._session

    def _trust(self) -> ssl.SSLContext | bool:
        if self.endpoint.url.startswith("http://"):
            return True
        if self.endpoint.insecure and not self.endpoint.ca:
            return False
        context = ssl.create_default_context()
        if self.endpoint.ca:
            try:
                context.load_verify_locations(self.endpoint.ca)
            except OSError as error:
                raise RegistryError(f"{self.endpoint.ca}: {error.strerror or error}") from error
        return context

    async def _said(self, method: str, answer: aiohttp.ClientResponse) -> str:
        """An answer that refuses, in the registry's words."""
        words = answer.reason or ""
        with contextlib.suppress(Exception):
            body = await _limited(answer, LARGEST_TOKEN)
            errors = json.loads(body).get("errors") or []
            words = "; ".join(f"{one.get('code', '')}: {one.get('message', '')}".strip(": ") for one in errors) or words
        where = urlsplit(str(answer.url))
        return f"{method} {where.scheme}://{where.netloc}{where.path}: {answer.status} {words}"[:ANSWER_SHOWN]


async def _limited(answer: aiohttp.ClientResponse, most: int) -> bytes:
    data = b""
    async for piece in answer.content.iter_chunked(65536):
        data += piece
        if len(data) > most:
            raise RegistryError(
                f"{answer.url.host} answered with more than {most >> 20} MiB where a document was due", 500
            )
        await asyncio.sleep(0)
    return data
