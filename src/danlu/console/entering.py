"""/console/apps/…: the way from the console to an app.

`open` is what the pages use. `enter` is where the apps' origin sends whoever comes without a pass, for instance with
the address out of `kubectl get notebook`. Any page can lead a browser to `enter`, also the page of another app that
would like to have this one opened beside it: so, unless the person typed the address themselves, they are asked.
"""

from __future__ import annotations

import hmac
from html import escape
from urllib.parse import parse_qsl, quote, urlsplit

from danlu.console import appnames
from danlu.console.appnames import AppName
from danlu.console.asgi import Receive, Request, Send, answer, answer_json, read_body, read_json, redirect
from danlu.console.finding import Finder, NotReady
from danlu.console.origins import origins
from danlu.console.pages import Pages
from danlu.console.sealing import Sealer
from danlu.console.sessions import Session
from danlu.console.settings import ConsoleSettings
from danlu.console.tickets import Tickets
from danlu.console.waiting import language_of
from danlu.errors import Forbidden, NotFound

WORDS = {
    "en": ("Open {app}?", "It runs a program of project {project}, with the rights that you have in it.", "Open"),
    "zh": ("打开 {app}？", "它运行的是项目 {project} 中的程序，权限与你在其中的权限相同。", "打开"),
}


class Entrance:
    def __init__(self, settings: ConsoleSettings, finder: Finder, sealer: Sealer, pages: Pages) -> None:
        self._origins = origins(settings.apps_url)
        self._finder = finder
        self._tickets = Tickets(sealer)
        self._pages = pages

    async def open(self, request: Request, session: Session, receive: Receive, send: Send) -> None:
        app = appnames.of_request(await read_json(receive))
        await answer_json(send, 200, {"url": await self._address(request, session, app)})

    async def enter(self, request: Request, session: Session | None, send: Send) -> None:
        path = request.query("path")
        app = _app_of(path)
        fetched_by = request.headers.get("sec-fetch-site", "")
        if session is None and fetched_by in ("cross-site", "same-site") and not request.query("again"):
            # Our cookie is not sent when another site's page leads here. What we ourselves load again gets it.
            await _page(
                request, send, f'<meta http-equiv="refresh" content="0;url=?path={quote(path, safe="")}&again=1">'
            )
        elif session is None:
            await self._pages.serve(request, send)  # they show the sign-in, and load this address again
        elif fetched_by == "none":
            await redirect(send, await self._address(request, session, app, path))
        else:
            await self._ask(request, send, session, app, path)

    async def confirmed(self, request: Request, session: Session, receive: Receive, send: Send) -> None:
        """The form of `_ask`. It comes without our header, so the CSRF token is one of its fields."""
        form = dict(parse_qsl((await read_body(receive)).decode(errors="replace")))
        if not hmac.compare_digest(form.get("csrf", "").encode(), session.csrf.encode()):
            raise Forbidden("the form is an old one; load the page again")
        path = form.get("path", "")
        await redirect(send, await self._address(request, session, _app_of(path), path))

    async def _address(self, request: Request, session: Session, app: AppName, path: str = "") -> str:
        """Raises ApiError when the person may not open it. What is not ready is opened all the same, and says why."""
        try:
            page = (await self._finder.find(session.identity, app)).page
        except NotReady as problem:
            page = problem.page
        ticket = self._tickets.issue(app, session.identity, session.expires)
        target = path or app.base + page
        return f"{self._origins.of(app, request)}{target}{'&' if '?' in target else '?'}ticket={ticket}"

    async def _ask(self, request: Request, send: Send, session: Session, app: AppName, path: str) -> None:
        title, text, button = WORDS[language_of(request)]
        title = escape(title.format(app=f"{app.kind} {app.name}"))
        await _page(
            request,
            send,
            f"<title>{title}</title></head><body><main><h1>{title}</h1><p>{escape(text.format(project=app.namespace))}</p>"
            f'<form method="post" action="/console/apps/enter"><input type="hidden" name="path" value="{escape(path)}">'
            f'<input type="hidden" name="csrf" value="{escape(session.csrf)}"><button autofocus>{button}</button>'
            "</form></main>",
            # Browsers hold the answer's redirect to this rule, too.
            f"'self' {self._origins.of(app, request)}",
        )


def _app_of(path: str) -> AppName:
    app = appnames.of_path(path)
    # A path only: whatever else could be put there must not lead away from the apps' origin.
    if app is None or urlsplit(path).netloc or "\\" in path:
        raise NotFound("there is no app under this address")
    return app


async def _page(request: Request, send: Send, content: str, form_action: str = "'none'") -> None:
    style = (
        ":root { color-scheme: light dark } body { font: 16px/1.6 system-ui, sans-serif; max-width: 40em; "
        "margin: 15vh auto; padding: 0 1em } button { font: inherit; padding: .3em 2em }"
    )
    head = f'<!doctype html><html lang="{language_of(request)}"><head><meta charset="utf-8"><style>{style}</style>'
    policy = f"default-src 'none'; style-src 'unsafe-inline'; form-action {form_action}; frame-ancestors 'none'"
    headers = [
        (b"cache-control", b"no-store"),
        (b"content-security-policy", policy.encode()),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"same-origin"),
    ]
    await answer(send, 200, (head + content).encode(), "text/html; charset=utf-8", headers)
