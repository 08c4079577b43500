"""The few words of ASGI that the console speaks: reading headers, answering, refusing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from html import escape
from typing import Any
from urllib.parse import parse_qsl

import orjson

from danlu.errors import ApiError, BadRequest, RequestTooLarge
from danlu.meta.nesting import parse_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]
Cookies = Mapping[str, Sequence[str]]

MAX_FORM_BYTES = 64 * 1024  # of the console's own requests; what goes to the API is not read here

INERT_PAGE = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    # An app's address, where such a page may stand, is not for who is linked to.
    (b"referrer-policy", b"no-referrer"),
]


class Request:
    """What is asked, with the headers by name. Several cookie headers are one list."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.method: str = scope.get("method", "GET")
        self.path: str = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        self.headers: dict[str, str] = {}
        cookies: list[str] = []
        for name, value in scope["headers"]:
            if name == b"cookie":
                cookies.append(value.decode("latin-1"))
            else:
                self.headers[name.decode("latin-1")] = value.decode("latin-1")
        self.cookies = parse_cookies(cookies)
        self.answer_with: list[Header] = []  # whatever the answer will be: cookies that were made anew on the way
        self.query_string: str = scope["query_string"].decode("latin-1")

    @property
    def is_websocket(self) -> bool:
        return bool(self.scope["type"] == "websocket")

    def query(self, name: str) -> str:
        return next((value for key, value in parse_qsl(self.query_string, keep_blank_values=True) if key == name), "")

    def has_query(self, name: str) -> bool:
        return any(key == name for key, _ in parse_qsl(self.query_string, keep_blank_values=True))


def parse_cookies(headers: Iterable[str]) -> Cookies:
    """A name may come several times: others on this host can plant one of ours for a longer path, which comes first."""
    found: dict[str, list[str]] = {}
    for header in headers:
        for part in header.split(";"):
            name, equals, value = part.strip().partition("=")
            if equals:
                found.setdefault(name, []).append(value)
    return found


async def read_body(receive: Receive) -> bytes:
    """Of one of the console's own requests."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the request's body did not arrive whole")
        body += bytes(message.get("body", b""))
        if len(body) > MAX_FORM_BYTES:
            raise RequestTooLarge(f"the request is longer than {MAX_FORM_BYTES} bytes")
        if not message.get("more_body"):
            return body


async def read_json(receive: Receive) -> Any:
    try:
        return parse_json(await read_body(receive) or b"{}")
    except ValueError as error:
        raise BadRequest(f"the request is no JSON: {error}") from None


async def read_words(receive: Receive) -> dict[str, str]:
    """A JSON object's texts by name; what is no text is left out."""
    found = await read_json(receive)
    if not isinstance(found, dict):
        raise BadRequest("the request must be a JSON object")
    return {name: value for name, value in found.items() if isinstance(value, str)}


async def answer(
    send: Send, status: int, body: bytes, content_type: str, headers: Iterable[Header] = (), *, head: bool = False
) -> None:
    every = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"cross-origin-resource-policy", b"same-origin"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": b"" if head else body})


async def answer_json(send: Send, status: int, content: Any, headers: Iterable[Header] = ()) -> None:
    await answer(
        send, status, orjson.dumps(content), "application/json", [(b"cache-control", b"no-store"), *headers]
    )  # fmt: skip


async def redirect(send: Send, location: str, headers: Iterable[Header] = ()) -> None:
    every = [(b"location", location.encode("latin-1", "replace")), (b"cache-control", b"no-store"), *headers]
    await answer(send, 303, b"", "text/plain", every)


async def answer_problem(request: Request, send: Send, error: ApiError, headers: Iterable[Header] = ()) -> None:
    """For a person who waits for a page."""
    page = (
        '<!doctype html><meta charset="utf-8"><title>Danlu</title><body style="font: 16px/1.6 sans-serif; max-width: '
        f'40em; margin: 4em auto; padding: 0 1em"><p>{escape(error.message)}</p><p><a href="/">Danlu</a></p>'
    )
    every = [*INERT_PAGE, *headers]
    await answer(send, error.code, page.encode(), "text/html; charset=utf-8", every, head=request.method == "HEAD")


async def refuse(
    request: Request, send: Send, error: ApiError, more: Mapping[str, Any] | None = None, headers: Iterable[Header] = ()
) -> None:
    """One shape for all errors: a Kubernetes Status. A WebSocket's handshake is answered with it, too."""
    content = {**error.status(), **(more or {})}
    if not request.is_websocket:
        await answer_json(send, error.code, content, headers)
        return
    start = [(b"content-type", b"application/json"), *headers]
    with suppress(RuntimeError):  # the handshake was answered already
        await send({"type": "websocket.http.response.start", "status": error.code, "headers": start})
        await send({"type": "websocket.http.response.body", "body": orjson.dumps(content)})
