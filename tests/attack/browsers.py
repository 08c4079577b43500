"""Chromium and Firefox, as far as an attack needs them: tabs that go somewhere and run a script.

Playwright drives the system's Chromium; of Firefox it knows only a build of its own, so that one is driven by the
protocol that it speaks itself, WebDriver BiDi.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.browser.chromium import launched

FIREFOXES = ("firefox", "firefox-esr")
WAIT_S = 60.0
INTERRUPTED = ("NS_BINDING_ABORTED", "AbortError", "unload", "actor destroyed")  # Firefox's words


class Interrupted(Exception):
    """The page went elsewhere by itself meanwhile."""


class Tab(Protocol):
    def goto(self, url: str) -> None:
        """Types the address. Raises Interrupted."""

    def evaluate(self, function: str, *words: str) -> Any:
        """What an (async) function of the page's own returns, as JSON. Raises Interrupted."""


class Web(Protocol):
    """One person's browser: cookies, storage and workers of its own."""

    def new_tab(self) -> Tab: ...


class Browser(Protocol):
    """A program that runs. To start one takes seconds, to have another person at it none."""

    def person(self) -> AbstractContextManager[Web]: ...


# -- Chromium


class _ChromiumTab:
    def __init__(self, page: Any) -> None:
        self._page = page

    def goto(self, url: str) -> None:
        with _not_interrupted(("ERR_ABORTED", "interrupted by another navigation")):
            self._page.goto(url)

    def evaluate(self, function: str, *words: str) -> Any:
        with _not_interrupted(("context was destroyed",)):
            return self._page.evaluate(f"(words) => ({function})(...words)", list(words))


@contextmanager
def _not_interrupted(words: tuple[str, ...]) -> Iterator[None]:
    from playwright.sync_api import Error

    try:
        yield
    except Error as error:
        if any(word in error.message for word in words):
            raise Interrupted(error.message) from None
        raise


class _ChromiumWeb:
    def __init__(self, context: Any) -> None:
        self._context = context

    def new_tab(self) -> Tab:
        return _ChromiumTab(self._context.new_page())


class _Chromium:
    def __init__(self, browser: Any) -> None:
        self._browser = browser

    @contextmanager
    def person(self) -> Iterator[Web]:
        context = self._browser.new_context()
        try:
            yield _ChromiumWeb(context)
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield _Chromium(browser)


# -- Firefox


class _FirefoxTab:
    def __init__(self, firefox: _Firefox, context: str) -> None:
        self._firefox = firefox
        self._context = context

    def goto(self, url: str) -> None:
        self._firefox.command("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, function: str, *words: str) -> Any:
        told = self._firefox.command(
            "script.callFunction",
            functionDeclaration=f"async (...words) => JSON.stringify((await ({function})(...words)) ?? null)",
            arguments=[{"type": "string", "value": word} for word in words],
            target={"context": self._context},
            awaitPromise=True,
        )
        assert told["type"] == "success", told
        return json.loads(told["result"]["value"])


class _Firefox:
    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.command("session.new", capabilities={})

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            said = json.loads(self._socket.recv(timeout=WAIT_S))
            if said.get("id") == number:
                break
        if said["type"] == "error" and any(word in said["message"] for word in INTERRUPTED):
            raise Interrupted(said["message"])
        if said["type"] == "error":
            raise AssertionError(f"{method} {parameters}: {said['error']}: {said['message']}")
        found: dict[str, Any] = said["result"]
        return found

    @contextmanager
    def person(self) -> Iterator[Web]:
        own = self.command("browser.createUserContext")["userContext"]
        try:
            yield _FirefoxWeb(self, own)
        finally:
            self.command("browser.removeUserContext", userContext=own)


class _FirefoxWeb:
    def __init__(self, firefox: _Firefox, user_context: str) -> None:
        self._firefox = firefox
        self._user_context = user_context

    def new_tab(self) -> Tab:
        made = self._firefox.command("browsingContext.create", type="tab", userContext=self._user_context)
        return _FirefoxTab(self._firefox, made["context"])


@contextmanager
def firefox() -> Iterator[Browser]:
    from websockets.sync.client import connect

    path = next((found for name in FIREFOXES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no Firefox on PATH ({', '.join(FIREFOXES)})")
    home = Path(tempfile.mkdtemp(prefix="danlu-firefox-"))
    child = subprocess.Popen(
        [path, "--headless", "--no-remote", "--profile", str(home), "--remote-debugging-port=0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(home)},
    )
    watchdog = threading.Timer(WAIT_S, child.kill)
    watchdog.start()
    try:
        assert child.stderr is not None
        listening = next(
            (match for line in child.stderr if (match := re.search(r"BiDi listening on (ws://\S+)", line))), None
        )
        watchdog.cancel()
        assert listening, f"{path} ended and said nothing of WebDriver BiDi"
        threading.Thread(target=child.stderr.read, daemon=True).start()  # or it would wait for somebody to read
        with connect(f"{listening[1]}/session", max_size=None) as socket:
            yield _Firefox(socket)
    finally:
        watchdog.cancel()
        child.terminate()
        child.wait(20)
        shutil.rmtree(home, ignore_errors=True)


BROWSERS = {"chromium": chromium, "firefox": firefox}
