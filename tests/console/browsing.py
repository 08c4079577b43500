"""A browser as far as the server can tell one: cookies by host and path, Origin, Sec-Fetch-Site, the pages' proof."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from yarl import URL

from danlu.console.pages import FOLDER

TIMEOUT = 60.0
PROOF, PROTOCOL = "x-danlu-proof", "proof.danlu.dev."


class Browser:
    def __init__(self, console: str) -> None:
        self.console = console.rstrip("/")
        self.proof = secrets.token_urlsafe(32)  # what the pages keep in their origin's storage
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True),
            # Certificates of identity providers are made for a test and known to the console alone.
            connector=aiohttp.TCPConnector(resolver=_EverythingIsHere(), ssl=False),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT),
        )

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    # -- what a person does

    async def visit(self, url: str, **headers: str) -> aiohttp.ClientResponse:
        """Types an address; redirects are followed."""
        told = {"accept": "text/html", "sec-fetch-site": "none", "sec-fetch-mode": "navigate", **headers}
        answer = await self._session.get(self._whole(url), headers=told)
        await answer.read()
        return answer

    async def sign_in(self, link: str) -> dict[str, Any]:
        """What the pages do with the link of `danlu up`."""
        led = (await self.raw("GET", link)).headers["location"]
        token = parse_qs(urlsplit(led).fragment)["token"][0]
        await self.json("POST", "/console/sign-in", {"link": token})
        return await self.session()

    async def sign_in_with_provider(self, next_page: str) -> tuple[int, Any]:
        """There and back, as the pages do: where they go on, or what was refused."""
        begun = await self.json("POST", "/console/oidc/start", {"next": next_page})
        back = await self.visit(begun["address"])
        assert back.url.path == "/console/oidc/callback"
        return await self.ask("POST", "/console/oidc/finish", dict(back.url.query))

    async def session(self) -> dict[str, Any]:
        told: dict[str, Any] = await self.json("GET", "/console/session")
        return told

    # -- what the console's own scripts do

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        told = {"sec-fetch-site": "same-origin", "origin": self.console, PROOF: self.proof, **(headers or {})}
        async with self._session.request(method, self._whole(path), json=body, headers=told) as answer:
            text = await answer.read()
            is_json = answer.headers.get("content-type", "").startswith("application/json")
            return answer.status, await answer.json() if is_json else text.decode(errors="replace")

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        status, content = await self.ask(method, path, body)
        assert status < 300, f"{method} {path}: {status} {content}"
        return content

    async def open_app(self, namespace: str, kind: str, name: str) -> str:
        """Where a new tab is led."""
        asked = {"namespace": namespace, "kind": kind, "name": name}
        return str((await self.json("POST", "/console/apps/open", asked))["url"])

    # -- anything else

    @asynccontextmanager
    async def stream(self, path: str) -> Any:
        told = {"sec-fetch-site": "same-origin", PROOF: self.proof}
        async with self._session.get(self._whole(path), headers=told) as answer:
            yield answer

    @asynccontextmanager
    async def socket(self, path: str, origin: str = "", protocols: tuple[str, ...] = ()) -> Any:
        url = str(self._whole(path))
        own = urlsplit(url)
        told = {"origin": origin or f"{own.scheme}://{own.netloc}"}
        offered = (*protocols, f"{PROTOCOL}{self.proof}") if url.startswith(self.console) else protocols
        async with self._session.ws_connect(url, headers=told, protocols=offered) as socket:
            yield socket

    async def raw(self, method: str, url: str | URL, **options: Any) -> aiohttp.ClientResponse:
        answer = await self._session.request(method, self._whole(url), allow_redirects=False, **options)
        await answer.read()
        return answer

    def cookies(self, url: str) -> dict[str, str]:
        found = self._session.cookie_jar.filter_cookies(URL(self._whole(url)))
        return {name: morsel.value for name, morsel in found.items()}

    def _whole(self, url: str | URL) -> str | URL:
        return url if isinstance(url, URL) or url.startswith("http") else self.console + url


class _EverythingIsHere(aiohttp.abc.AbstractResolver):
    """`localhost` is this machine also where no resolver says so."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[aiohttp.abc.ResolveResult]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        pass


def need_pages() -> None:
    """Of a checkout; `scripts/test` builds them."""
    if not (FOLDER / "index.html").exists():
        pytest.skip("the console's pages are not built: scripts/build")


async def until(what: str, look: Callable[[], Awaitable[Any]], timeout: float = TIMEOUT) -> Any:
    ends = asyncio.get_running_loop().time() + timeout
    answer: Any = None
    while asyncio.get_running_loop().time() < ends:
        answer = await look()
        if answer:
            return answer
        await asyncio.sleep(0.1)
    raise AssertionError(f"waited {timeout:.0f} s in vain for {what}; last answer: {answer!r}")
