"""The console's own origin, the whole URL table on one screen:

/k8s/…                 the Kubernetes API, as the person who is signed in
/console/session       who that is; 401 and the ways to sign in when nobody is
/console/sign-in       POST {"token": …}: any bearer token of the cluster; {"link": …}: that of `danlu up`'s link
/console/sign-out      POST
/console/oidc/…        POST start, finish; between them callback, a page
/console/explain       POST {"object": …, "pods": […], …}: why it waits, of what the page knows
/console/apps/…        POST open, and enter, a page: the way to notebooks and TensorBoards, on the other origin
everything else        the pages

Pages are the same for everybody and hold nothing. All else is answered to a cookie together with its proof
(`proof.py`); nothing is to whoever has the cookie alone.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import quote, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from danlu import __version__
from danlu.console import appnames, explanation, kubeproxy, proof, watchsocket
from danlu.console.appentrance import Entrance
from danlu.console.appfinder import AppFinder
from danlu.console.asgi import (
    MAX_FORM_BYTES,
    NOT_KEPT,
    Answer,
    ASGIApp,
    HTTPConnection,
    Json,
    Message,
    Receive,
    Redirect,
    Request,
    Response,
    Scope,
    Send,
    StatusResponse,
    cookies_of,
    path_of,
    query_of,
    read_json,
    read_words,
)
from danlu.console.guard import Guard, host_of
from danlu.console.kubeapi import KubeApi, ask
from danlu.console.oidc import Oidc
from danlu.console.origins import origins
from danlu.console.pages import Pages
from danlu.console.sealedcookies import Sealer
from danlu.console.sessions import Identity, Session, Sessions
from danlu.console.settings import ConsoleSettings, OidcSettings
from danlu.console.tokenclaims import ends_at
from danlu.console.tokenrefresh import Renewals
from danlu.errors import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    NotFound,
    RequestTooLarge,
    ServiceUnavailable,
    Unauthorized,
)
from danlu.meta.kind import Object
from danlu.meta.wellknown import SELF_SUBJECT_REVIEW

RENEWED_COOKIES = "danlu.renewed_cookies"
"""Of a request's state: cookies that were made anew on the way, to go with whatever the answer will be."""
# Whoever had this port before us, while we were not running, may have left a service worker in the browser, which
# would stand between us and our pages for ever. We have none: the answer to its asking for a newer one ends it.
NO_WORKER = b"""self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(end()))
async function end() {
  await self.registration.unregister()
  for (const tab of await self.clients.matchAll({ type: 'window' })) tab.navigate(tab.url)
}
"""

# What the routes themselves refuse with, in our one shape.
_REFUSALS: dict[int, type[ApiError]] = {405: MethodNotAllowed, 413: RequestTooLarge}
_REFUSAL_WORDS = {405: "pages can only be read", 413: f"the request is longer than {MAX_FORM_BYTES} bytes"}


class Console:
    def __init__(self, settings: ConsoleSettings, api: KubeApi) -> None:
        self.settings = settings
        self.api = api
        self.sealer = Sealer(settings.key)
        self.finder = AppFinder(api)
        self.sessions = Sessions(self.sealer, settings.url)
        self._guard = Guard(settings.url, settings.names)
        self._app_origins = origins(settings.apps_url)
        self._pages = Pages(self._app_origins)
        self.renewals = Renewals(settings.session_s)
        self._oidc: Oidc | None = None
        self._entrance = Entrance(settings, self.finder, self.sealer, self._pages)
        self._use(settings.oidc)
        self._app = Starlette(
            routes=self._routes(),
            middleware=[Middleware(_Front, self._guard)],
            exception_handlers={ApiError: self._refuse, HTTPException: self._refuse},
        )

    def _routes(self) -> list[BaseRoute]:
        def post(path: str, endpoint: Callable[[Request], Awaitable[Response]], most: int = MAX_FORM_BYTES) -> Route:
            return Route(path, endpoint, methods=["POST"], max_body_size=most)

        return [
            Mount(kubeproxy.PREFIX, app=self._kubernetes),
            WebSocketRoute("/console/watch", _Asgi(self._watch)),
            WebSocketRoute("/{path:path}", _Asgi(_no_socket)),
            Route("/console/session", self._tell_session),
            post("/console/sign-in", self._sign_in),
            post("/console/sign-out", self._sign_out),
            post("/console/oidc/start", self._start_oidc),
            Route("/console/oidc/callback", self._called_back),
            post("/console/oidc/finish", self._finish_oidc),
            post("/console/explain", self._explain, explanation.LARGEST),
            post("/console/apps/open", self._open_app),
            Route("/console/apps/enter", self._enter_app),
            Mount("/console", app=_no_page),
            *(Route(f"/{name}", _healthy) for name in ("healthz", "readyz", "livez")),
            Route("/{path:path}", self._page),
        ]

    def _use(self, oidc: OidcSettings | None) -> None:
        self._oidc = Oidc(oidc, self.settings.url, self.sealer) if oidc else None
        self.renewals.oidc = self._oidc

    async def change_identity(self, oidc: OidcSettings | None) -> None:
        """Sign-in with this identity provider from now on."""
        before = self._oidc
        self._use(oidc)
        if before is not None:
            await before.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _refuse(self, request: HTTPConnection, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            error = _REFUSALS.get(error.status_code, BadRequest)(_REFUSAL_WORDS.get(error.status_code, error.detail))
        assert isinstance(error, ApiError)
        return StatusResponse(error, signIn=self._ways()) if isinstance(error, Unauthorized) else StatusResponse(error)

    async def _kubernetes(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self._session(HTTPConnection(scope))
        await kubeproxy.serve(self.api, session.identity, scope, receive, send)

    async def _watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self._session(HTTPConnection(scope))
        await watchsocket.serve(self.api, self.renewals, session, scope.get("subprotocols") or (), receive, send)

    async def _session(self, request: HTTPConnection) -> Session:
        """Of whom the request is; raises Unauthorized, or Forbidden when it is another page's doing."""
        self._guard.check_origin(request)
        had = cookies_of(request)
        found = self.sessions.read(had)
        if not found:
            raise Unauthorized("nobody is signed in, or the sign-in has ended")
        session = next((one for one in found if proof.fits(request, one.proof)), None)
        if session is None:
            raise Unauthorized("the header X-Danlu-Proof is missing or is not this sign-in's; sign in again")
        identity = await self.renewals.current(session.identity)
        if identity != session.identity:
            session = replace(session, identity=identity)
            request.scope["state"][RENEWED_COOKIES] = self.sessions.cookies_for(session, had)
        return session

    # -- the pages

    async def _page(self, request: Request) -> Response:
        path, query = path_of(request), query_of(request)
        whole = f"{path}?{query}" if query else path
        if appnames.of_path(path):
            # The address in a Notebook's status, where the console is all that the operator was told of.
            return Redirect(self._app_origins.url + whole)
        if host_of(request) == "localhost" and urlsplit(self.settings.url).hostname == "127.0.0.1":
            # That name is the apps': on the other one, browsers keep our cookie from them.
            port = request.headers["host"].rpartition(":")[2]
            return Redirect(f"http://127.0.0.1:{port}/{whole.lstrip('/')}")
        if "token" in request.query_params:
            return _to_link(request)
        return self._pages.answer(request)

    # -- /console/…

    async def _sign_out(self, request: Request) -> Response:
        self._guard.check_origin(request)
        return Json({}).with_cookies(self.sessions.no_cookies(cookies_of(request)))

    async def _explain(self, request: Request) -> Response:
        await self._session(request)
        return Json(explanation.answered(await read_json(request)))

    async def _open_app(self, request: Request) -> Response:
        return await self._entrance.open(await self._session(request), request)

    async def _enter_app(self, request: Request) -> Response:
        return self._entrance.enter(request)

    async def _tell_session(self, request: Request) -> Response:
        session = await self._session(request)
        try:
            user = await self._who(session.identity)
        except Unauthorized as error:
            # The cluster does not know the token any more; neither do we.
            return StatusResponse(error, signIn=self._ways()).with_cookies(
                self.sessions.no_cookies(cookies_of(request))
            )
        return Json(self._told(session, user))

    def _told(self, session: Session, user: Object) -> Object:
        return {
            "user": user,
            "appsOrigin": self._app_origins.url,
            "signIn": self._ways(),
            "version": __version__,
            "target": self.settings.target,
            "language": None,
            "image": self.settings.image,
        }

    async def _sign_in(self, request: Request) -> Response:
        self._guard.check_origin(request)
        asked = await read_words(request)
        shown = proof.hash_of_new(request)
        token, link = asked.get("token", "").strip(), asked.get("link", "")
        if not token and not link:
            raise BadRequest('send {"token": "…"}')
        session = self._link_session(token or link, shown)
        if session is None and not token:
            # Nothing else that a link could bring: any page could lead a person into somebody else's sign-in.
            raise Unauthorized("this link is no longer good; `danlu status` shows the one that is")
        session = session or self._token_session(Identity(token), shown)
        user = await self._who(session.identity)
        return Json(self._told(session, user)).with_cookies(self.sessions.cookies_for(session, cookies_of(request)))

    # -- /console/oidc/…: there is one only where an identity provider was named

    def _provider(self, request: Request) -> Oidc:
        if self._oidc is None:
            raise NotFound(f"the console has no page {path_of(request)}")
        return self._oidc

    async def _start_oidc(self, request: Request) -> Response:
        oidc = self._provider(request)
        self._guard.check_origin(request)
        asked = await read_words(request)
        return Json({"address": await oidc.start(asked.get("next", ""), proof.hash_of_new(request))})

    async def _called_back(self, request: Request) -> Response:
        self._provider(request)
        return self._pages.answer(request)

    async def _finish_oidc(self, request: Request) -> Response:
        """Back from the identity provider, by way of a page of ours."""
        oidc = self._provider(request)
        self._guard.check_origin(request)
        shown = proof.hash_of_new(request)
        found = await oidc.finish(await read_words(request), shown)
        session = self._token_session(found.identity, shown)
        await self._who(session.identity)
        return Json({"next": found.next}).with_cookies(self.sessions.cookies_for(session, cookies_of(request)))

    # -- who somebody is

    def _link_session(self, token: str, shown: str) -> Session | None:
        expected = self.settings.link_token
        if not expected or not hmac.compare_digest(token.encode(), expected.encode()):
            return None
        return Session(Identity(owner=True), int(time.time()) + self.settings.session_s, shown)

    def _token_session(self, identity: Identity, shown: str) -> Session:
        token, now = identity.token, int(time.time())
        ends = ends_at(token)
        if not token.isascii() or not token.isprintable() or (ends is not None and ends <= now):
            raise Unauthorized("this token has ended or is no token; make a new one: kubectl create token NAME")
        longest = now + self.settings.session_s
        return Session(identity, longest if identity.renewal else min(longest, ends or longest), shown)

    async def _who(self, identity: Identity) -> Object:
        """Whom the API server takes the identity for."""
        review = {"apiVersion": SELF_SUBJECT_REVIEW.api_version, "kind": SELF_SUBJECT_REVIEW.kind}
        said = await ask(self.api, identity, "POST", SELF_SUBJECT_REVIEW.path(), review)
        if said.status == 401:
            raise Unauthorized("the cluster does not know this token, or it has ended")
        if said.status >= 400:
            raise ServiceUnavailable(said.json().get("message") or f"the cluster answered {said.status}")
        found = said.json()["status"]["userInfo"]
        return {"name": found.get("username", ""), "groups": found.get("groups") or []}

    async def close(self) -> None:
        if self._oidc is not None:
            await self._oidc.close()
        await self.api.close()

    def _ways(self) -> list[str]:
        return ["token", *(["oidc"] if self._oidc else [])]


class _Front:
    """What is looked at before anything is routed. Routes see the path as it came (`path_of`)."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HTTPConnection(scope)
        try:
            self._guard.check_host(request)
        except ApiError as error:
            await StatusResponse(error)(scope, receive, send)
            return
        if request.headers.get("service-worker") == "script":
            await Answer(NO_WORKER, headers=NOT_KEPT, media_type="text/javascript")(scope, receive, send)
            return
        scope["state"] = state = dict(scope.get("state") or {})
        scope["path"] = path_of(request)

        async def send_all(message: Message) -> None:
            renewed = state.get(RENEWED_COOKIES)
            if renewed and message["type"] in ("http.response.start", "websocket.accept"):
                message = {**message, "headers": [*renewed, *(message.get("headers") or ())]}
            await send(message)

        await self._app(scope, receive, send_all)


class _Asgi:
    """So that a route hands on scope, receive and send as they are: to a function it would give a WebSocket object."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def _no_socket(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound("there is no such WebSocket")


async def _no_page(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound(f"the console has no page {path_of(HTTPConnection(scope))}")


async def _healthy(request: Request) -> Response:
    return Answer(b"ok", media_type="text/plain")


def _to_link(request: Request) -> Response:
    """The link that `danlu up` prints. Behind the #, where the page reads it, no request has it and no referrer."""
    pairs = request.query_params.multi_items()
    rest = [(name, value) for name, value in pairs if name != "token"]
    token = next(value for name, value in pairs if name == "token")
    target = path_of(request) + (f"?{urlencode(rest)}" if rest else "")
    target = "/" + target.lstrip("/")  # //host would lead away from here
    return Redirect(f"{target}#token={quote(token, safe='')}")
