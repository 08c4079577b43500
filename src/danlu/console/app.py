"""The console's own origin, the whole URL table on one screen:

/k8s/…                 the Kubernetes API, as the person who is signed in
/console/session       who that is; 401 and the ways to sign in when nobody is
/console/sign-in       POST {"token": …}: any bearer token of the cluster; {"link": …}: that of `danlu up`'s link
/console/sign-out      POST
/console/oidc/…        POST start, finish; between them callback, a page
/console/apps/…        POST open, and enter, a page: the way to notebooks and TensorBoards, on the other origin
everything else        the pages

Pages are the same for everybody and hold nothing. All else is answered to a cookie together with its proof
(`proof.py`); nothing is to whoever has the cookie alone.
"""

from __future__ import annotations

import hmac
import time
from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from danlu import __version__
from danlu.console import appnames, kubeproxy, proof, watching
from danlu.console.asgi import (
    Message,
    Receive,
    Request,
    Scope,
    Send,
    answer,
    answer_json,
    read_words,
    redirect,
    refuse,
)
from danlu.console.entering import Entrance
from danlu.console.finding import Finder
from danlu.console.guard import Guard, host_of
from danlu.console.kubeapi import KubeApi, ask
from danlu.console.oidc import Oidc
from danlu.console.origins import origins
from danlu.console.pages import Pages
from danlu.console.renewing import Renewals
from danlu.console.sealing import Sealer
from danlu.console.sessions import Identity, Session, Sessions
from danlu.console.settings import ConsoleSettings, OidcSettings
from danlu.console.tokens import ends_at
from danlu.errors import ApiError, BadRequest, MethodNotAllowed, NotFound, ServiceUnavailable, Unauthorized
from danlu.meta.kind import Object
from danlu.meta.wellknown import SELF_SUBJECT_REVIEW

# Whoever had this port before us, while we were not running, may have left a service worker in the browser, which
# would stand between us and our pages for ever. We have none: the answer to its asking for a newer one ends it.
NO_WORKER = b"""self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(end()))
async function end() {
  await self.registration.unregister()
  for (const tab of await self.clients.matchAll({ type: 'window' })) tab.navigate(tab.url)
}
"""


class Console:
    def __init__(self, settings: ConsoleSettings, api: KubeApi) -> None:
        self.settings = settings
        self.api = api
        self.sealer = Sealer(settings.key)
        self.finder = Finder(api)
        self.sessions = Sessions(self.sealer, settings.url)
        self._guard = Guard(settings.url, settings.names)
        self._app_origins = origins(settings.apps_url)
        self._pages = Pages(self._app_origins)
        self.renewals = Renewals(settings.session_s)
        self._oidc: Oidc | None = None
        self._entrance = Entrance(settings, self.finder, self.sealer, self._pages)
        self._use(settings.oidc)

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
        request = Request(scope)
        await self._answer(request, receive, _with_cookies(request, send))

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        scope = request.scope
        try:
            self._guard.check_host(request)
            if request.headers.get("service-worker") == "script":
                await answer(send, 200, NO_WORKER, "text/javascript", [(b"cache-control", b"no-store")])
            elif request.path.startswith("/k8s/"):
                session = await self._session(request)
                await kubeproxy.serve(self.api, session.identity, scope, receive, send)
            elif request.is_websocket and request.path == "/console/watch":
                session = await self._session(request)
                await watching.serve(self.api, self.renewals, session, scope.get("subprotocols") or (), receive, send)
            elif request.is_websocket:
                raise NotFound("there is no such WebSocket")
            elif request.path.startswith("/console/"):
                await self._own(request, receive, send)
            elif request.method not in ("GET", "HEAD"):
                raise MethodNotAllowed("pages can only be read")
            elif request.path in ("/healthz", "/readyz", "/livez"):
                await answer(send, 200, b"ok", "text/plain")
            elif appnames.of_path(request.path):
                # The address in a Notebook's status, where the console is all that the operator was told of.
                query = f"?{request.query_string}" if request.query_string else ""
                await redirect(send, self._app_origins.url + request.path + query)
            elif host_of(request) == "localhost" and urlsplit(self.settings.url).hostname == "127.0.0.1":
                await self._leave_localhost(request, send)
            elif request.has_query("token"):
                await self._enter_with_link(request, send)
            else:
                await self._pages.serve(request, send)
        except Unauthorized as error:
            await refuse(request, send, error, {"signIn": self._ways()})
        except ApiError as error:
            await refuse(request, send, error)

    async def _session(self, request: Request) -> Session:
        """Of whom the request is; raises Unauthorized, or Forbidden when it is another page's doing."""
        self._guard.check_origin(request)
        found = self.sessions.read(request.cookies)
        if not found:
            raise Unauthorized("nobody is signed in, or the sign-in has ended")
        session = next((one for one in found if proof.fits(request, one.proof)), None)
        if session is None:
            raise Unauthorized("the header X-Danlu-Proof is missing or is not this sign-in's; sign in again")
        identity = await self.renewals.current(session.identity)
        if identity != session.identity:
            session = replace(session, identity=identity)
            request.answer_with = self.sessions.cookies_for(session, request.cookies)
        return session

    async def _leave_localhost(self, request: Request, send: Send) -> None:
        """That name is the apps': on the other one, browsers keep our cookie from them."""
        port = request.headers["host"].rpartition(":")[2]
        query = f"?{request.query_string}" if request.query_string else ""
        await redirect(send, f"http://127.0.0.1:{port}/{request.path.lstrip('/')}{query}")

    # -- /console/…

    async def _own(self, request: Request, receive: Receive, send: Send) -> None:
        match request.method, request.path.removeprefix("/console/"):
            case "GET", "session":
                await self._tell_session(request, send)
            case "POST", "sign-in":
                await self._sign_in(request, receive, send)
            case "POST", "sign-out":
                self._guard.check_origin(request)
                await answer_json(send, 200, {}, self.sessions.no_cookies(request.cookies))
            case "POST", "oidc/start" if self._oidc:
                self._guard.check_origin(request)
                asked = await read_words(receive)
                address = await self._oidc.start(asked.get("next", ""), proof.hash_of_new(request))
                await answer_json(send, 200, {"address": address})
            case "GET", "oidc/callback" if self._oidc:
                await self._pages.serve(request, send)
            case "POST", "oidc/finish" if self._oidc:
                await self._come_back(self._oidc, request, receive, send)
            case "POST", "apps/open":
                await self._entrance.open(await self._session(request), receive, send)
            case "GET", "apps/enter":
                await self._entrance.enter(request, send)
            case _:
                raise NotFound(f"the console has no page {request.path}")

    async def _tell_session(self, request: Request, send: Send) -> None:
        session = await self._session(request)
        try:
            user = await self._who(session.identity)
        except Unauthorized as error:
            # The cluster does not know the token any more; neither do we.
            await refuse(request, send, error, {"signIn": self._ways()}, self.sessions.no_cookies(request.cookies))
            return
        await answer_json(send, 200, self._told(session, user))

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

    async def _sign_in(self, request: Request, receive: Receive, send: Send) -> None:
        self._guard.check_origin(request)
        asked = await read_words(receive)
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
        await answer_json(send, 200, self._told(session, user), self.sessions.cookies_for(session, request.cookies))

    async def _come_back(self, oidc: Oidc, request: Request, receive: Receive, send: Send) -> None:
        """From the identity provider, by way of a page of ours."""
        self._guard.check_origin(request)
        shown = proof.hash_of_new(request)
        found = await oidc.finish(await read_words(receive), shown)
        session = self._token_session(found.identity, shown)
        await self._who(session.identity)
        await answer_json(send, 200, {"next": found.next}, self.sessions.cookies_for(session, request.cookies))

    async def _enter_with_link(self, request: Request, send: Send) -> None:
        """The link that `danlu up` prints. Behind the #, where the page reads it, no request has it and no referrer."""
        rest = [(name, value) for name, value in parse_qsl(request.query_string, True) if name != "token"]
        target = request.path + (f"?{urlencode(rest)}" if rest else "")
        target = "/" + target.lstrip("/")  # //host would lead away from here
        await redirect(send, f"{target}#token={quote(request.query('token'), safe='')}")

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


def _with_cookies(request: Request, send: Send) -> Send:
    async def send_all(message: Message) -> None:
        if request.answer_with and message["type"] in ("http.response.start", "websocket.accept"):
            message = {**message, "headers": [*request.answer_with, *(message.get("headers") or ())]}
        await send(message)

    return send_all
