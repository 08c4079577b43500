"""/console/apps/…: the way from the console to an app.

`open` is what the pages use. `enter` is where the apps' origin sends whoever comes without a pass, for instance with
the address out of `kubectl get notebook`: a page like the others, which asks for a ticket as they do, with the secret
that only they have. Any page can lead a browser to `enter`, also the page of another app that would like to have this
one opened beside it: so the page asks the person first, unless they typed the address themselves.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from danlu.console import appnames
from danlu.console.appfinder import AppFinder, AppNotReady
from danlu.console.appnames import AppName
from danlu.console.asgi import Json, Request, Response, read_json
from danlu.console.origins import label, origins
from danlu.console.pages import Pages
from danlu.console.sealedcookies import Sealer
from danlu.console.sessions import Session
from danlu.console.settings import ConsoleSettings
from danlu.console.tickets import Pass, Tickets
from danlu.errors import NotFound


class Entrance:
    def __init__(self, settings: ConsoleSettings, finder: AppFinder, sealer: Sealer, pages: Pages) -> None:
        self._origins = origins(settings.apps_url)
        self._finder = finder
        self._sealer = sealer
        self._tickets = Tickets(sealer)
        self._pages = pages

    async def open(self, session: Session, request: Request) -> Response:
        """An app by its name, or by a path below the apps' origin."""
        asked = await read_json(request)
        path = asked.get("path") if isinstance(asked, dict) else None
        app = _app_of(path) if isinstance(path, str) else appnames.of_request(asked)
        return Json({"url": await self._address(session, app, path or "")})

    def enter(self, request: Request) -> Response:
        _app_of(request.query_params.get("path", ""))
        return self._pages.answer(request, typed=request.headers.get("sec-fetch-site") == "none")

    async def _address(self, session: Session, app: AppName, path: str) -> str:
        """Raises ApiError when the person may not open it. What is not ready is opened all the same, and says why."""
        try:
            page = (await self._finder.find(session.identity, app)).page
        except AppNotReady as problem:
            page = problem.page
        name = label(self._sealer, session, app) if self._origins.apart else ""
        ticket = self._tickets.issue(app, name, Pass(session.identity, session.expires))
        target = path or app.base + page
        return f"{self._origins.below(name)}{target}{'&' if '?' in target else '?'}ticket={ticket}"


def _app_of(path: str) -> AppName:
    app = appnames.of_path(path)
    # A path only: whatever else could be put there must not lead away from the apps' origin.
    if app is None or urlsplit(path).netloc or "\\" in path or not path.isprintable():
        raise NotFound("there is no app under this address")
    return app
