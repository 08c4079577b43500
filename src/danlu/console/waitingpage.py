"""The page that stands where an app will be: why it is not there yet, and what to do. It loads itself again."""

from __future__ import annotations

from html import escape

from danlu.console.appfinder import AppNotReady
from danlu.console.appnames import AppName
from danlu.console.asgi import HTTPConnection
from danlu.kinds.webapp import PAUSED, STARTING

AGAIN_S = 2
WORDS = {
    "en": {
        "starting": "{app} is starting",
        "asleep": "{app} is paused",
        "stuck": "{app} cannot start yet",
        "again": "This page opens it as soon as it is ready.",
        "wake": "Resume it in the console, and this page opens it.",
        "console": "To the console",
    },
    "zh": {
        "starting": "{app} 正在启动",
        "asleep": "{app} 已暂停",
        "stuck": "{app} 暂时无法启动",
        "again": "就绪后，本页会自动打开它。",
        "wake": "在控制台中恢复它，本页会自动打开它。",
        "console": "前往控制台",
    },
}
QUIET = (*STARTING, "NoAnswer", "")


def waiting_page(request: HTTPConnection, app: AppName, problem: AppNotReady, console_url: str) -> bytes:
    language = language_of(request)
    words = WORDS[language]
    asleep = problem.reason == PAUSED
    state = "asleep" if asleep else "starting" if problem.reason in QUIET else "stuck"
    reason = (
        ""
        if asleep or problem.reason in QUIET
        else f"<p><code>{escape(problem.reason)}</code> {escape(problem.message)}</p>"
    )
    title = escape(words[state].format(app=app.shown))
    page = f"""<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="refresh" content="{AGAIN_S}"><meta name="viewport" content="width=device-width">
<style>:root {{ color-scheme: light dark }}
body {{ font: 16px/1.6 system-ui, sans-serif; max-width: 40em; margin: 15vh auto; padding: 0 1em }}
code {{ font-weight: bold }}</style></head>
<body><main><h1>{title}</h1>{reason}<p role="status">{words["wake" if asleep else "again"]}</p>
<p><a href="{escape(console_url)}/">{words["console"]}</a></p></main></body></html>
"""
    return page.encode()


def language_of(request: HTTPConnection) -> str:
    """Chinese for whoever puts it before English."""
    for part in request.headers.get("accept-language", "").lower().split(","):
        if part.strip().startswith("zh"):
            return "zh"
        if part.strip().startswith("en"):
            return "en"
    return "en"
