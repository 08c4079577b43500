"""What the console adds to Starlette: paths and cookies as they came, and answers that no browser takes for more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from danlu.errors import ApiError, BadRequest
from danlu.meta.nesting import parse_json

__all__ = ["ASGIApp", "HTTPConnection", "Message", "Receive", "Request", "Response", "Scope", "Send"]

Header = tuple[bytes, bytes]
Cookies = Mapping[str, Sequence[str]]

MAX_FORM_BYTES = 64 * 1024  # of the console's own requests; what goes to the API is not read here
SAFE = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"}
NOT_KEPT = {"cache-control": "no-store"}
INERT_PAGE = {
    **NOT_KEPT,
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    # An app's address, where such a page may stand, is not for who is linked to.
    "referrer-policy": "no-referrer",
}


# -- what is asked


def path_of(connection: HTTPConnection) -> str:
    """As it came: what is encoded in it stays so, or one path would be two things to us and to who is behind us."""
    raw: bytes = connection.scope.get("raw_path") or b""
    return raw.decode("latin-1") or str(connection.scope["path"])


def query_of(connection: HTTPConnection) -> str:
    raw: bytes = connection.scope["query_string"]
    return raw.decode("latin-1")


def method_of(connection: HTTPConnection) -> str:
    return str(connection.scope.get("method", "GET"))


def is_websocket(connection: HTTPConnection) -> bool:
    return bool(connection.scope["type"] == "websocket")


def cookies_of(connection: HTTPConnection) -> Cookies:
    """A name may come several times: others on this host can plant one of ours for a longer path, which comes first.
    Starlette's own dictionary would keep the last and know nothing of ours."""
    found: dict[str, list[str]] = {}
    for header in connection.headers.getlist("cookie"):
        for part in header.split(";"):
            name, equals, value = part.strip().partition("=")
            if equals:
                found.setdefault(name, []).append(value)
    return found


async def read_json(request: Request) -> Any:
    """Of one of the console's own requests, whose route limits how long it may be."""
    try:
        return parse_json(await request.body() or b"{}")
    except ClientDisconnect:
        raise BadRequest("the request's body did not arrive whole") from None
    except ValueError as error:
        raise BadRequest(f"the request is no JSON: {error}") from None


async def read_words(request: Request) -> dict[str, str]:
    """A JSON object's texts by name; what is no text is left out."""
    found = await read_json(request)
    if not isinstance(found, dict):
        raise BadRequest("the request must be a JSON object")
    return {name: value for name, value in found.items() if isinstance(value, str)}


# -- what is answered


class Answer(Response):
    """Taken for nothing but what it says it is, and loaded by no page of another origin."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        super().init_headers({**SAFE, **(headers or {})})

    def with_cookies(self, cookies: Iterable[Header]) -> Answer:
        self.raw_headers.extend(cookies)
        return self


class Json(Answer):
    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200) -> None:
        super().__init__(content, status_code, NOT_KEPT)

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


class StatusResponse(Json):
    """One shape for all errors: a Kubernetes Status. A WebSocket's handshake is answered with it, too."""

    def __init__(self, error: ApiError, **more: Any) -> None:
        super().__init__({**error.status(), **more}, error.code)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await super().__call__(scope, receive, send)
            return
        with suppress(RuntimeError):  # the handshake was answered already
            await super().__call__(scope, receive, send)


class Redirect(RedirectResponse):
    """See Other: whatever the method was, the next is GET."""

    def __init__(self, location: str, cookies: Iterable[Header] = ()) -> None:
        super().__init__(location, 303, {**SAFE, **NOT_KEPT})
        self.raw_headers.extend(cookies)


class Problem(Answer):
    """For a person who waits for a page."""

    media_type = "text/html"

    def __init__(self, error: ApiError) -> None:
        page = (
            '<!doctype html><meta charset="utf-8"><title>Danlu</title><body style="font: 16px/1.6 sans-serif; '
            f'max-width: 40em; margin: 4em auto; padding: 0 1em"><p>{escape(error.message)}</p>'
            '<p><a href="/">Danlu</a></p>'
        )
        super().__init__(page, error.code, INERT_PAGE)
