"""/console/watch: all watches of a page on one WebSocket. A browser keeps at most six HTTP connections to an origin,
and an overview watches more kinds than that.

Text messages. From the page: `{"open": ID, "path": "/k8s/…?watch=1…"}` and `{"close": ID}`. To the page: `ID`, a
newline and whole lines of the watch's body; `ID!` and a Status when it was refused; `ID` alone at its end. Bytes are
not looked into: an event is decoded once, in the page.
"""

from __future__ import annotations

import asyncio
import string
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson

from danlu.console.asgi import Message, Receive, Send
from danlu.console.kubeapi import KubeApi, http_scope
from danlu.console.kubeproxy import PREFIX
from danlu.console.sessions import Session
from danlu.console.tokenrefresh import Renewals
from danlu.errors import ApiError, BadRequest, TooManyRequests, Unauthorized
from danlu.meta.nesting import parse_json

PROTOCOL = "watch.danlu.dev"
MOST_WATCHES = 200  # of one page; the largest has thirty
LONGEST_LINE = 4 * 1024 * 1024  # bytes that are kept until a line ends; an object has at most 1.5 MiB
NORMAL = 1000


async def serve(
    api: KubeApi, renewals: Renewals, session: Session, offered: Collection[str], receive: Receive, send: Send
) -> None:
    """`offered`: the socket's protocols. A browser that offers any, as it does with the proof, wants one chosen."""
    await receive()  # websocket.connect
    await send({"type": "websocket.accept", "subprotocol": PROTOCOL if PROTOCOL in offered else None})
    channel = _Channel(api, renewals, session, send)
    try:
        # A watch has no end of its own; the sign-in that it rests on has one.
        async with asyncio.timeout(max(0.0, session.expires - time.time())):
            while (message := await receive())["type"] != "websocket.disconnect":
                await channel.take(message.get("text") or "")
    except TimeoutError:
        for number in channel.open_numbers():
            await channel.refuse(number, Unauthorized("the sign-in has ended"))
        with suppress(RuntimeError, OSError):
            await send({"type": "websocket.close", "code": NORMAL})
    finally:
        await channel.close()


class _Channel:
    def __init__(self, api: KubeApi, renewals: Renewals, session: Session, send: Send) -> None:
        self._api = api
        self._renewals = renewals
        self._session = session
        self._send = send
        self._watches: dict[int, asyncio.Task[None]] = {}

    def open_numbers(self) -> list[int]:
        return list(self._watches)

    async def take(self, text: str) -> None:
        """One message from the page. What makes no sense is passed over: there is no number to answer it under."""
        try:
            asked: Any = parse_json(text)
        except ValueError:
            return
        if not isinstance(asked, dict):
            return
        if isinstance(number := asked.get("close"), int):
            watch = self._watches.pop(number, None)
            if watch is not None:
                watch.cancel()
        elif isinstance(number := asked.get("open"), int):
            path = asked.get("path")
            try:
                self._check(number, path)
            except ApiError as error:
                await self.refuse(number, error)
                return
            self._watches[number] = asyncio.create_task(self._watch(number, str(path)))

    def _check(self, number: int, path: Any) -> None:
        if not isinstance(path, str) or not path.startswith(f"{PREFIX}/"):
            raise BadRequest(f"only paths below {PREFIX}/ can be watched")
        if number in self._watches:
            raise BadRequest(f"watch {number} is open already")
        if len(self._watches) >= MOST_WATCHES:
            raise TooManyRequests(f"a page may have {MOST_WATCHES} watches")

    async def refuse(self, number: int, error: ApiError) -> None:
        await self._put(f"{number}!{orjson.dumps(error.status()).decode()}")

    async def _watch(self, number: int, path: str) -> None:
        # JSON may have any character, a request's line may not: as browsers do, all that no URL can have is escaped.
        parts = urlsplit(quote(path, safe=string.punctuation))
        raw = parts.path.removeprefix(PREFIX)
        scope = {**http_scope("GET", unquote(raw), parts.query), "raw_path": raw.encode()}
        answer = _Lines(self, number)
        try:
            with suppress(OSError):  # the cluster broke off in the middle: an end like others, the page asks again
                identity = await self._renewals.current(self._session.identity)
                await self._api.serve(scope, _no_body(), answer.send, identity)
        except ApiError as error:
            answer.refused = True
            await self.refuse(number, error)
        finally:
            # The page's own closing has taken it out already and wants no answer.
            if self._watches.pop(number, None) is not None and not answer.refused:
                await self._put(str(number))

    async def lines(self, number: int, whole: bytes) -> None:
        await self._put(f"{number}\n{whole.decode(errors='replace')}")

    async def status(self, number: int, body: bytes) -> None:
        await self._put(f"{number}!{body.decode(errors='replace')}")

    async def _put(self, text: str) -> None:
        with suppress(RuntimeError, OSError):  # the page is gone
            await self._send({"type": "websocket.send", "text": text})

    async def close(self) -> None:
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            watch.cancel()
        await asyncio.gather(*watches.values(), return_exceptions=True)


class _Lines:
    """The answer to one watch, as ASGI messages."""

    def __init__(self, channel: _Channel, number: int) -> None:
        self._channel = channel
        self._number = number
        self._status = 200
        self._rest = b""
        self.refused = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self.refused = self._status >= 400
            return
        self._rest += message.get("body", b"")
        if len(self._rest) > LONGEST_LINE and b"\n" not in self._rest:
            self._rest += b"\n"  # a followed log may have lines without end
        if self.refused:
            if not message.get("more_body"):
                await self._channel.status(self._number, self._whole_status())
            return
        end = self._rest.rfind(b"\n") + 1
        if end:
            whole, self._rest = self._rest[:end], self._rest[end:]
            await self._channel.lines(self._number, whole)
        if self._rest and not message.get("more_body"):  # a followed log may end without a newline
            await self._channel.lines(self._number, self._rest + b"\n")

    def _whole_status(self) -> bytes:
        if self._rest.startswith(b"{"):
            return self._rest
        message = self._rest.decode(errors="replace").strip()
        return orjson.dumps({"kind": "Status", "status": "Failure", "code": self._status, "message": message})


def _no_body() -> Receive:
    """The body of a request without one. That the page left is told by cancelling."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive
