"""The apps' side: notebooks, TensorBoards and services, each under a host name (`origins.py`) and a path of its own.

It knows a person by a cookie for one app under one host name, which is got with a ticket that the console gives out
(`tickets.py`). That cookie opens this app and nothing else; the console's is not valid here, and is not passed on
should a browser send it. What the app answers can neither set nor clear a cookie of ours, nor widen where its scripts
act.
"""

from __future__ import annotations

import time
from urllib.parse import parse_qsl, quote, urlencode

from danlu.console import appnames, relaying
from danlu.console.appnames import AppName
from danlu.console.asgi import (
    INERT_PAGE,
    Header,
    Receive,
    Request,
    Scope,
    Send,
    answer,
    answer_problem,
    redirect,
    refuse,
)
from danlu.console.finding import Finder, NotReady, Place
from danlu.console.guard import Guard
from danlu.console.origins import origins
from danlu.console.reaching import Reach, Visit
from danlu.console.renewing import Renewals
from danlu.console.sealing import LongCookie, Sealer, is_ours
from danlu.console.sessions import Identity
from danlu.console.settings import ConsoleSettings
from danlu.console.tickets import Tickets
from danlu.console.waiting import waiting_page
from danlu.errors import ApiError, NotFound, ServiceUnavailable, Unauthorized

SAFE = ("GET", "HEAD")
# Widen what a page's scripts may do beyond its own path, or speak for the whole origin.
NOT_ANSWERED = frozenset((b"service-worker-allowed", b"clear-site-data", b"strict-transport-security"))


class Apps:
    def __init__(
        self, settings: ConsoleSettings, finder: Finder, reach: Reach, sealer: Sealer, renewals: Renewals
    ) -> None:
        self._settings = settings
        self._finder = finder
        self._reach = reach
        self._renewals = renewals
        self._tickets = Tickets(sealer)
        self._origins = origins(settings.apps_url)
        self._guard = Guard(self._origins.url, settings.names, below=self._origins.apart)
        self._secure = settings.apps_url.startswith("https:")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            self._guard.check_host(request)
            app = appnames.of_path(request.path)
            if app is None:
                raise NotFound("there is no app under this address; open it from the console")
            if request.has_query("ticket"):
                await self._enter(request, app, send)
            else:
                await self._app(request, app, receive, send)
        except ApiError as error:
            if wants_page(request):
                await answer_problem(request, send, error)
            else:
                await refuse(request, send, error)

    async def _app(self, request: Request, app: AppName, receive: Receive, send: Send) -> None:
        if not _is_navigation(request):
            self._guard.check_origin(request)
        label = self._origins.label_in(request)
        held = (self._tickets.read_pass(app, label, text) for text in self._cookie(app).readings(request.cookies))
        found = next((one for one in held if one is not None), None)
        try:
            if found is None:
                raise Unauthorized("open this app from the console first")
            identity = await self._renewals.current(found.identity)
            place = await self._finder.find(identity, app)
            await self._pass_on(request, app, identity, place, receive, send)
        except Unauthorized:
            # Also with the address that the status of a Notebook has, which is no app's own, and at another's place.
            if not wants_page(request):
                raise
            whole = request.path + (f"?{request.query_string}" if request.query_string else "")
            await redirect(send, f"{self._settings.url}/console/apps/enter?path={quote(whole, safe='')}")
        except NotReady as problem:
            await self._wait(request, send, app, problem)
        except relaying.NoAnswer as error:
            self._finder.forget(identity, app)
            await self._wait(request, send, app, NotReady("NoAnswer", str(error), ""))

    async def _enter(self, request: Request, app: AppName, send: Send) -> None:
        """A ticket is swapped for the app's cookie, and leaves the address."""
        label = self._origins.label_in(request)
        found = self._tickets.redeem(app, label, request.query("ticket"))
        rest = [(name, value) for name, value in parse_qsl(request.query_string, True) if name != "ticket"]
        target = request.path + (f"?{urlencode(rest)}" if rest else "")
        if found is None:  # used, or too old: whoever has the cookie gets in all the same
            await redirect(send, target)
            return
        text = self._tickets.seal_pass(app, label, found)
        cookie = self._cookie(app).write(text, found.expires - int(time.time()), request.cookies)
        await redirect(send, target, cookie)

    def _cookie(self, app: AppName) -> LongCookie:
        # Lax: the way here leads from the console, which is another site to the browser. __Host- keeps other apps,
        # whose names are below the same one, from setting it.
        if self._secure and self._origins.apart:
            return LongCookie("__Host-danlu-app", "/", "SameSite=Lax; Secure")
        return LongCookie("danlu-app", app.base, "SameSite=Lax" + ("; Secure" if self._secure else ""))

    async def _pass_on(
        self, request: Request, app: AppName, identity: Identity, place: Place, receive: Receive, send: Send
    ) -> None:
        headers = _request_headers(request)
        forwarded = {"host": request.headers.get("host", ""), "proto": "https" if self._secure else "http"}
        client = request.scope.get("client")
        if client:
            forwarded["for"] = client[0]
        headers += [(f"x-forwarded-{name}".encode(), value.encode()) for name, value in forwarded.items()]
        scope = {**request.scope, "headers": headers}
        if app.kind == "service":
            headers.append((b"x-forwarded-prefix", app.base.rstrip("/").encode()))
            rest = request.path[len(app.base) - 1 :]
            scope |= {"raw_path": rest.encode("latin-1"), "path": rest}
        visit = Visit(identity, app, place, lambda _, kept: self._answer_headers(app, kept))
        await self._reach.relay(visit, scope, receive, send)

    async def _wait(self, request: Request, send: Send, app: AppName, problem: NotReady) -> None:
        if wants_page(request):
            body = waiting_page(request, app, problem, self._settings.url)
            await answer(send, 503, body, "text/html; charset=utf-8", INERT_PAGE)
        else:
            await refuse(request, send, ServiceUnavailable(f"{problem.reason}: {problem.message}"))

    def _answer_headers(self, app: AppName, headers: list[Header]) -> list[Header]:
        found = [(name, value) for name, value in headers if name not in NOT_ANSWERED and name != b"set-cookie"]
        for name, value in headers:
            if name == b"set-cookie":
                kept = _own_cookie(app, value.decode("latin-1"))
                if kept:
                    found.append((name, kept.encode("latin-1")))
        return [
            *found,
            # Whatever the app links to need not learn its address, in which ids of its objects may stand.
            (b"referrer-policy", b"same-origin"),
            # No other app lays itself over this one. Beside a policy of the app's own, the stricter counts.
            (b"content-security-policy", f"frame-ancestors 'self' {self._settings.url}".encode()),
        ]


def wants_page(request: Request) -> bool:
    return not request.is_websocket and request.method in SAFE and "text/html" in request.headers.get("accept", "")


def _is_navigation(request: Request) -> bool:
    """Somebody follows a link to the app, from wherever. What changes something is never one."""
    return request.method in SAFE and not request.is_websocket and request.headers.get("sec-fetch-mode") == "navigate"


def _request_headers(request: Request) -> list[Header]:
    """Without what is for this hop, what others may have claimed about the way here, and our cookies."""
    found: list[Header] = []
    for name, value in request.scope["headers"]:
        if name == b"cookie":
            pairs = [pair.strip() for pair in value.decode("latin-1").split(";")]
            kept = "; ".join(pair for pair in pairs if not is_ours(pair.partition("=")[0]))
            if kept:
                found.append((name, kept.encode("latin-1")))
        elif name not in relaying.ONE_HOP and name != b"authorization" and not name.startswith(b"x-forwarded-"):
            found.append((name, value))
    return found


def _own_cookie(app: AppName, text: str) -> str:
    """An app's cookie stays below its own path and off other hosts; one that is called like ours is dropped."""
    first, *attributes = [part.strip() for part in text.split(";")]
    if is_ours(first.partition("=")[0]):
        return ""
    kept, path = [], app.base
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        if name.lower() == "path" and value.startswith(app.base):
            path = value
        elif name.lower() not in ("path", "domain"):
            kept.append(attribute)
    return "; ".join([first, f"Path={path}", *kept])
