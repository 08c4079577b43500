"""The apps' side: what kinds serve (`PlatformKind.app`), and services. Each has a host name (`origins.py`) and a path
of its own.

It knows a person by a cookie for one app under one host name, which is got with a ticket that the console gives out
(`tickets.py`). That cookie opens this app and nothing else; the console's is not valid here, and is not passed on
should a browser send it. What the app answers can neither set nor clear a cookie of ours, nor widen where its scripts
act.
"""

from __future__ import annotations

import time
from urllib.parse import quote, urlencode

from danlu.console import appnames
from danlu.console.appfinder import AppFinder, AppNotReady, Place
from danlu.console.appnames import AppName
from danlu.console.apptransport import Reach, Visit
from danlu.console.asgi import (
    INERT_PAGE,
    Answer,
    Header,
    HTTPConnection,
    Problem,
    Receive,
    Redirect,
    Response,
    Scope,
    Send,
    StatusResponse,
    cookies_of,
    is_websocket,
    method_of,
    path_of,
    query_of,
)
from danlu.console.guard import Guard
from danlu.console.origins import origins
from danlu.console.sealedcookies import LongCookie, Sealer, is_ours
from danlu.console.sessions import Identity
from danlu.console.settings import ConsoleSettings
from danlu.console.tickets import Tickets
from danlu.console.tokenrefresh import Renewals
from danlu.console.waitingpage import waiting_page
from danlu.errors import ApiError, NotFound, ServiceUnavailable, Unauthorized
from danlu.net import reverseproxy

SAFE = ("GET", "HEAD")
# Widen what a page's scripts may do beyond its own path, or speak for the whole origin.
NOT_ANSWERED = frozenset((b"service-worker-allowed", b"clear-site-data", b"strict-transport-security"))


class Apps:
    def __init__(
        self, settings: ConsoleSettings, finder: AppFinder, reach: Reach, sealer: Sealer, renewals: Renewals
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
        request = HTTPConnection(scope)
        try:
            self._guard.check_host(request)
            app = appnames.of_path(path_of(request))
            if app is None:
                raise NotFound("there is no app under this address; open it from the console")
            if "ticket" in request.query_params:
                instead: Response | None = self._enter(request, app)
            else:
                instead = await self._app(request, app, receive, send)
        except ApiError as error:
            instead = Problem(error) if wants_page(request) else StatusResponse(error)
        if instead is not None:
            await instead(scope, receive, send)

    async def _app(self, request: HTTPConnection, app: AppName, receive: Receive, send: Send) -> Response | None:
        """The app's own answer is sent as it comes; what is returned takes the place of one that did not."""
        if not _is_navigation(request):
            self._guard.check_origin(request)
        label = self._origins.label_in(request)
        held = (self._tickets.read_pass(app, label, text) for text in self._cookie(app).readings(cookies_of(request)))
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
            whole = path_of(request) + (f"?{query_of(request)}" if query_of(request) else "")
            return Redirect(f"{self._settings.url}/console/apps/enter?path={quote(whole, safe='')}")
        except AppNotReady as problem:
            return self._wait(request, app, problem)
        except reverseproxy.NoAnswer as error:
            self._finder.forget(identity, app)
            return self._wait(request, app, AppNotReady("NoAnswer", str(error), ""))
        return None

    def _enter(self, request: HTTPConnection, app: AppName) -> Response:
        """A ticket is swapped for the app's cookie, and leaves the address."""
        label = self._origins.label_in(request)
        found = self._tickets.redeem(app, label, request.query_params["ticket"])
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "ticket"]
        target = path_of(request) + (f"?{urlencode(rest)}" if rest else "")
        if found is None:  # used, or too old: whoever has the cookie gets in all the same
            return Redirect(target)
        text = self._tickets.seal_pass(app, label, found)
        cookie = self._cookie(app).write(text, found.expires - int(time.time()), cookies_of(request))
        return Redirect(target, cookie)

    def _cookie(self, app: AppName) -> LongCookie:
        # Lax: the way here leads from the console, which is another site to the browser. __Host- keeps other apps,
        # whose names are below the same one, from setting it.
        if self._secure and self._origins.apart:
            return LongCookie("__Host-danlu-app", "/", "lax", secure=True)
        return LongCookie("danlu-app", app.base, "lax", self._secure)

    async def _pass_on(
        self, request: HTTPConnection, app: AppName, identity: Identity, place: Place, receive: Receive, send: Send
    ) -> None:
        headers = _request_headers(request)
        forwarded = {"host": request.headers.get("host", ""), "proto": "https" if self._secure else "http"}
        client = request.scope.get("client")
        if client:
            forwarded["for"] = client[0]
        headers += [(f"x-forwarded-{name}".encode(), value.encode()) for name, value in forwarded.items()]
        scope = {**request.scope, "headers": headers}
        if not app.knows_path:
            headers.append((b"x-forwarded-prefix", app.base.rstrip("/").encode()))
            rest = path_of(request)[len(app.base) - 1 :]
            scope |= {"raw_path": rest.encode("latin-1"), "path": rest}
        visit = Visit(identity, app, place, lambda _, kept: self._answer_headers(app, kept))
        await self._reach.relay(visit, scope, receive, send)

    def _wait(self, request: HTTPConnection, app: AppName, problem: AppNotReady) -> Response:
        if wants_page(request):
            return Answer(waiting_page(request, app, problem, self._settings.url), 503, INERT_PAGE, "text/html")
        return StatusResponse(ServiceUnavailable(f"{problem.reason}: {problem.message}"))

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


def wants_page(request: HTTPConnection) -> bool:
    return not is_websocket(request) and method_of(request) in SAFE and "text/html" in request.headers.get("accept", "")


def _is_navigation(request: HTTPConnection) -> bool:
    """Somebody follows a link to the app, from wherever. What changes something is never one."""
    if method_of(request) not in SAFE or is_websocket(request):
        return False
    return request.headers.get("sec-fetch-mode") == "navigate"


def _request_headers(request: HTTPConnection) -> list[Header]:
    """Without what is for this hop, what others may have claimed about the way here, and our cookies."""
    found: list[Header] = []
    for name, value in request.scope["headers"]:
        if name == b"cookie":
            pairs = [pair.strip() for pair in value.decode("latin-1").split(";")]
            kept = "; ".join(pair for pair in pairs if not is_ours(pair.partition("=")[0]))
            if kept:
                found.append((name, kept.encode("latin-1")))
        elif name not in reverseproxy.ONE_HOP and name != b"authorization" and not name.startswith(b"x-forwarded-"):
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
