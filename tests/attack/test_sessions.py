"""A hostile app in a real browser: it has any port of the machine, and wants to be the person who opened it.

Cookies know no ports, so a program on another one is sent the console's as soon as its page has led the browser there
(`thief.py`). Here it gets them, in Chromium and Firefox, and tries everything it could do with them.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from tests.attack.browsers import BROWSERS, Browser, Interrupted, Tab, Web
from tests.attack.thief import UPGRADE, Answer, Thief, send, thief
from tests.browser.conftest import danlu, link, pages
from tests.browser.test_isolation import DIARY, serve
from tests.cluster import target
from tests.cluster.target import OnCluster
from tests.console.provider import Provider
from tests.console.starting import danlu_console
from tests.running import Danlu, until

__all__ = ["danlu", "link", "pages"]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MAPS = "/k8s/api/v1/namespaces/default/configmaps"
EXEC = "/k8s/api/v1/namespaces/default/pods/diary/exec?command=id&stdout=true"
DIARY_PATH = "/t9k/services/projects/default/name/diary:80/"
NAVIGATE = {"accept": "text/html", "sec-fetch-mode": "navigate"}
# What the pages do, from one of them.
ASK = """async (method, path, body) => {
  const headers = {'X-Danlu-Proof': localStorage.getItem('danlu.proof') ?? ''}
  const answer = await fetch(path, {method, headers, ...(body ? {body} : {})})
  const told = await answer.text()
  return [answer.status, told.startsWith('{') ? JSON.parse(told) : told] }"""
TYPE_TOKEN = """async (token, secret) => {
  const asked = {method: 'POST', headers: {'X-Danlu-Proof': secret}, body: JSON.stringify({token})}
  const answer = await fetch('/console/sign-in', asked)
  if (answer.ok) localStorage.setItem('danlu.proof', secret)
  return answer.status }"""
TITLE = "() => document.title"
SHOWN = "() => document.querySelector('h1')?.innerText ?? ''"
ASKS_TO_SIGN_IN = "() => document.querySelector('main.sign-in') !== null"


@dataclass
class Person:
    """Somebody at a browser of their own, signed in to the console."""

    web: Web
    console: str
    tab: Tab

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, told = self.tab.evaluate(ASK, method, path, json.dumps(body) if body is not None else "")
        return status, told

    def user(self) -> str:
        status, told = self.ask("GET", "/console/session")
        return str(told["user"]["name"]) if status == 200 else ""

    def go(self, url: str, title: str) -> Tab:
        """To a page in a new tab, and on with it until it has that title."""
        tab = self.web.new_tab()
        tab.goto(url)
        until(f"{url} to say {title}", lambda: is_titled(tab, title))
        return tab


def arrive(tab: Tab, url: str, path: str) -> None:
    """At an address that leads to this path. Firefox calls it an interruption when a page that still loads takes a
    token out of its own address; whether it was one is seen by where the tab is."""

    def is_there() -> bool:
        with suppress(Interrupted):
            tab.goto(url)
        with suppress(Interrupted):
            return bool(tab.evaluate("() => location.pathname") == path)
        return False

    until(f"{path} after {url}", is_there)


def sign_in(tab: Tab, link: str, *, types_token: bool = False) -> None:
    if types_token:
        address, _, token = link.partition("/?token=")
        tab.goto(address)
        assert tab.evaluate(TYPE_TOKEN, token, secrets.token_urlsafe(32)) == 200
        tab.goto(address)
    else:
        arrive(tab, link, "/")
    until("the console", lambda: is_inside(tab))
    assert "token" not in tab.evaluate("() => location.href")


def asks_to_sign_in(tab: Tab) -> bool:
    try:
        return bool(tab.evaluate(ASKS_TO_SIGN_IN))
    except Interrupted:
        return False


def is_inside(tab: Tab) -> bool:
    try:
        return bool(tab.evaluate(SHOWN) and not tab.evaluate(ASKS_TO_SIGN_IN))
    except Interrupted:
        return False


@pytest.fixture(scope="module", params=list(BROWSERS))
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with BROWSERS[request.param]() as found:
        yield found


@pytest.fixture
def web(browser: Browser) -> Iterator[Web]:
    with browser.person() as found:
        yield found


@pytest.fixture
def person(web: Web, danlu: Danlu, link: str) -> Person:
    tab = web.new_tab()
    sign_in(tab, link, types_token=isinstance(danlu, OnCluster))
    return Person(web, link.partition("/?")[0], tab)


@pytest.fixture
def robber() -> Iterator[Thief]:
    with thief() as found:
        yield found


@pytest.fixture
def own_danlu(make_danlu: Callable[..., Danlu], pages: None) -> Callable[..., Danlu]:
    if target.place() is not None:
        pytest.skip("of `danlu up`'s own console: in a cluster no pod gets the port of another's Service")
    return make_danlu


@pytest.fixture(scope="module")
def mallory(danlu: Danlu) -> str:
    """Another person's token; they may look at everything in one project."""
    name = f"mallory-{secrets.token_hex(3)}"
    danlu.kubectl("create", "serviceaccount", name, "-n", "default")
    account = f"--serviceaccount=default:{name}"
    danlu.kubectl("create", "rolebinding", name, "--clusterrole=edit", account, "-n", "default")
    return danlu.kubectl("create", "token", name, "-n", "default").strip()


@pytest.fixture(scope="module")
def diary(danlu: Danlu) -> None:
    serve(danlu, "diary", DIARY, {})


def known_names(app_path: str) -> list[str]:
    """Of this machine, and those that an app had when its name followed from the app's alone."""
    word = re.sub("[^a-z0-9]+", "-", app_path.rstrip("/").rpartition("/")[2])
    label = f"{word}-{hashlib.sha256(app_path.encode()).hexdigest()[:12]}"
    return ["127.0.0.1", "localhost", "[::1]", "apps.localhost", "x.localhost", f"{label}.localhost"]


def robbed(person: Person, robber: Thief) -> set[str]:
    """Every cookie that two hops under every name of this machine bring."""
    for path in ("/", "/console/", DIARY_PATH):
        for name in known_names(DIARY_PATH):
            tab = person.web.new_tab()
            tab.goto(f"http://{name}:{robber.port}/a")
            until("the second hop", partial(is_titled, tab, "caught"))
            tab.goto(f"http://{name}:{robber.port}{path}")
    return robber.cookies()


def replays(console: str, cookie: str) -> Iterator[tuple[str, Answer]]:
    """With what the browser sent, and what else a program can say of itself, to all that the console answers."""
    page = {"sec-fetch-site": "same-origin", "origin": console, "cookie": cookie}
    names = {pair.partition("=")[0].strip(): pair.partition("=")[2] for pair in cookie.split(";")}
    value = next(iter(names.values()), "")
    hashed = hashlib.sha256(value.encode()).hexdigest()
    proofs = [{}, {"x-danlu-proof": ""}, {"x-danlu-proof": value[:43]}, {"x-danlu-proof": hashed}]
    proofs += [{"x-danlu-proof": secrets.token_urlsafe(32), "x-danlu-csrf": "x"}]
    asked = json.dumps({"path": DIARY_PATH})
    for proof in proofs:
        for site in ({}, {"sec-fetch-site": "none", "origin": console}):
            told = page | proof | site
            yield "session", send("GET", f"{console}/console/session", told)
            yield "secrets", send("GET", f"{console}/k8s/api/v1/secrets", told)
            yield "a log", send("GET", f"{console}/k8s/api/v1/namespaces/default/pods/diary/log", told)
            yield "write", send("POST", f"{console}{MAPS}", told, json.dumps({"metadata": {"name": "stolen"}}))
            yield "a ticket", send("POST", f"{console}/console/apps/open", told, asked)
            yield "delete", send("DELETE", f"{console}/k8s/api/v1/namespaces/default/pods/diary", told)
        for path in ("/console/watch", EXEC):
            protocols = f"watch.danlu.dev, v5.channel.k8s.io, proof.danlu.dev.{proof.get('x-danlu-proof', '')}"
            for offered in ({}, {"sec-websocket-protocol": protocols}):
                yield f"socket {path}", send("GET", console + path, page | UPGRADE | offered)
    without = {"cookie": cookie}  # as no browser
    yield "without a word", send("GET", f"{console}/k8s/api/v1/secrets", without)
    yield "a bare socket", send("GET", f"{console}/console/watch", without | UPGRADE)


def test_whoever_is_sent_the_cookie_is_nobody(
    person: Person, robber: Thief, danlu: Danlu, diary: None, link: str
) -> None:
    before = person.user()
    status, told = person.ask(
        "POST", "/console/apps/open", {"namespace": "default", "kind": "service", "name": "diary:80"}
    )
    assert status == 200
    mine = person.go(told["url"], "diary")
    stolen = robbed(person, robber)
    assert any("danlu-session" in cookie for cookie in stolen), "browsers keep cookies apart by port now: rejoice"
    got = [(what, answer) for cookie in stolen for what, answer in replays(person.console, cookie)]
    assert [(what, answer.status) for what, answer in got if answer.status != 401] == []
    assert danlu.fails("get", "configmap", "stolen")
    # The way to an app is a page, the same for everybody.
    enter = f"{person.console}/console/apps/enter?path={quote(DIARY_PATH, safe='')}"
    for cookie in stolen:
        for site in ("none", "same-origin", "cross-site"):
            page = send("GET", enter, {"cookie": cookie, "sec-fetch-site": site, "accept": "text/html"})
            assert (page.status, "location" in page.headers, "ticket" in page.body) == (200, False, False)
    # No pass for an app either, whatever its host is called.
    apps = urlsplit(told["url"])
    headers = [{"cookie": cookie} for cookie in stolen] + [{}]
    for name in [*known_names(DIARY_PATH), apps.hostname]:
        for header in headers:
            for way, status in (({}, 401), (UPGRADE, 401), (NAVIGATE, 303)):  # to the page of all apps, for a ticket
                answer = send("GET", f"http://{name}:{apps.port}{DIARY_PATH}", header | way)
                assert (answer.status, "ticket" in answer.query) == (status, False), name
                assert "dear diary" not in answer.body
    assert set(danlu.kubectl("logs", "diary").splitlines()) <= {"GET document"}
    # And the person is who they were.
    assert person.user() == before
    mine.goto(told["url"].partition("?")[0])
    assert "dear diary" in mine.evaluate("() => document.body.innerText")


def test_a_page_can_lead_to_an_app_and_not_open_it(person: Person, robber: Thief, danlu: Danlu, diary: None) -> None:
    address = person.ask("GET", "/console/session")[1]["appsOrigin"] + DIARY_PATH
    # Who types the address themselves is not asked.
    until("the diary", lambda: titled(person.web.new_tab(), address, "diary"))
    opened = danlu.kubectl("logs", "diary").count("\n")
    tab = person.go(f"http://127.0.0.1:{robber.port}/b", "caught")
    tab.evaluate("(address) => { setTimeout(() => { location.href = address }) }", address)
    until("the question", lambda: is_inside(tab) and "diary:80" in tab.evaluate(SHOWN))
    assert danlu.kubectl("logs", "diary").count("\n") == opened
    tab.evaluate("() => document.querySelector('main button').click()")
    until("the diary", lambda: is_titled(tab, "diary"))


def titled(tab: Tab, url: str, title: str) -> bool:
    tab.goto(url)
    until("some page of an app", lambda: is_titled(tab, title) or is_titled(tab, "Service diary:80 is starting"))
    return is_titled(tab, title)


def is_titled(tab: Tab, title: str) -> bool:
    try:
        return bool(tab.evaluate(TITLE) == title)
    except Interrupted:
        return False


def test_a_pass_is_of_one_sign_in_and_one_name(danlu: Danlu, link: str, diary: None, mallory: str) -> None:
    """Without a browser: what a thief who has an app's cookie, and not the name it was for, does with it."""
    console, _, token = link.partition("/?token=")
    asked = json.dumps({"namespace": "default", "kind": "service", "name": "diary:80"})

    def opened(word: str, text: str) -> str:
        own = {"sec-fetch-site": "same-origin", "origin": console, "x-danlu-proof": secrets.token_urlsafe(32)}
        entered = send("POST", f"{console}/console/sign-in", own, json.dumps({word: text}))
        own["cookie"] = entered.headers["set-cookie"].partition(";")[0]
        told = send("POST", f"{console}/console/apps/open", own, asked)
        return str(json.loads(told.body)["url"])

    word = "token" if isinstance(danlu, OnCluster) else "link"
    mine, again, theirs = opened(word, token), opened(word, token), opened("token", mallory)
    names = {urlsplit(url).hostname for url in (mine, again, theirs)}
    assert len(names) == 3
    assert not names & set(known_names(DIARY_PATH))
    assert mine.partition("?")[0] not in danlu.kubectl("get", "services,pods,endpoints", "-o", "json")
    own = urlsplit(mine)
    for name in [*known_names(DIARY_PATH), urlsplit(theirs).hostname]:
        moved = f"http://{name}:{own.port}{own.path}?{own.query}"
        assert "set-cookie" not in send("GET", moved, {}).headers, "a ticket is for one name"
    entered = send("GET", mine, {})
    held = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert "set-cookie" not in send("GET", mine, {}).headers, "and once"
    for name in [*known_names(DIARY_PATH), urlsplit(again).hostname, urlsplit(theirs).hostname]:
        for way in ({}, UPGRADE):
            assert send("GET", f"http://{name}:{own.port}{own.path}", held | way).status == 401
    until("the diary", lambda: "dear diary" in send("GET", mine.partition("?")[0], held).body)
    assert send("GET", f"{console}/k8s/api/v1/secrets", held).status == 401


def test_a_planted_cookie_makes_nobody_somebody_else(
    person: Person, robber: Thief, danlu: Danlu, mallory: str, link: str
) -> None:
    """Who writes a secret into another's sign-in without knowing has given it away."""
    own = {"sec-fetch-site": "same-origin", "origin": person.console, "x-danlu-proof": secrets.token_urlsafe(32)}
    theirs = send("POST", f"{person.console}/console/sign-in", own, json.dumps({"token": mallory}))
    assert theirs.status == 200
    pair = theirs.headers["set-cookie"].partition(";")[0]
    before = person.user()
    for attributes in ("Path=/", "Path=/console", "Path=/k8s", "Path=/; HttpOnly; SameSite=Strict"):
        robber.plants = [f"{pair}; {attributes}"]
        person.go(f"http://127.0.0.1:{robber.port}/a", "caught")
    assert person.user() == ""
    assert person.ask("POST", MAPS, {"metadata": {"name": f"mine-{secrets.token_hex(3)}"}})[0] == 401
    # The person sees the sign-in, and after it is themselves again, beside all that was planted, also where they
    # knew what others plant: pieces of the cookie that there are none of, and nonsense.
    sign_in(person.tab, link, types_token=isinstance(danlu, OnCluster))
    assert person.user() == before
    name, _, value = pair.partition("=")
    more = [f"{name[:-1]}{number}={value}; Path=/" for number in range(1, 8)]
    robber.plants = [
        *more,
        f"{name}=nonsense; Path=/console",
        f"{name}=2.{value}; Path=/k8s",
        f"{name}=; Path=/k8s/api",
    ]
    person.go(f"http://127.0.0.1:{robber.port}/a", "caught")
    assert person.user() == before
    assert person.ask("GET", MAPS)[0] == 200


def test_a_sign_out_ends_it_in_every_tab(person: Person) -> None:
    other = person.web.new_tab()
    other.goto(person.console)
    until("the console", lambda: is_inside(other))
    kept = person.tab.evaluate("() => localStorage.getItem('danlu.proof')")
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", kept)
    leave = """async () => {
      await fetch('/console/sign-out', {method: 'POST', body: '{}'})
      localStorage.removeItem('danlu.proof') }"""
    person.tab.evaluate(leave)
    until("the other tab to ask", lambda: asks_to_sign_in(other))
    assert person.user() == ""


def test_a_link_with_somebody_elses_token_leads_nowhere(person: Person, mallory: str) -> None:
    """Any page can open the console with a link; a sign-in that a person did not ask for must not come of it."""
    before = person.user()
    for address in (f"/?token={mallory}", f"/#token={mallory}", "/?token=0000"):
        tab = person.web.new_tab()
        arrive(tab, person.console + address, "/")
        until("the console", partial(tab.evaluate, SHOWN))
        assert "token" not in tab.evaluate("() => location.href")
    assert person.user() == before
    assert not person.tab.evaluate(ASKS_TO_SIGN_IN)


# -- what `danlu up` and `danlu console` do alone


def free_port() -> int:
    """Not of those that the system gives to whoever connects: it has to be free once more later."""
    some = (20_000 + secrets.randbelow(10_000) for _ in range(100))
    return next(port for port in some if is_free(port))


def is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def test_a_worker_that_was_left_behind_is_ended(web: Web, own_danlu: Callable[..., Danlu]) -> None:
    """Somebody had the console's port while nobody else did, and left a service worker in the browser."""
    port = free_port()
    tab = web.new_tab()
    with thief(port):
        tab.goto(f"http://127.0.0.1:{port}/plant-worker")
        until("the worker", lambda: tab.evaluate(TITLE) == "planted")
    danlu = own_danlu("--console-port", str(port))
    try:

        def is_ours() -> bool:
            gone = "async () => (await navigator.serviceWorker.getRegistrations()).length === 0"
            try:
                return asks_to_sign_in(tab) and bool(tab.evaluate(gone))
            except Interrupted:
                return False  # by the page's being loaded again, which is how a worker ends

        # Once, as a person does: Chromium asks for a newer worker a second after a page was opened, and whoever opens
        # the next one within that second puts it off.
        with suppress(Interrupted):
            tab.goto(f"http://127.0.0.1:{port}/build")
        until("the console's own page", is_ours)
    finally:
        danlu.down()


def test_what_was_sent_to_the_port_while_it_was_anybodys_opens_nothing(
    web: Web, own_danlu: Callable[..., Danlu]
) -> None:
    """After a kill -9 its pods go on, and one could listen where open tabs send their cookie and their proof."""
    danlu = own_danlu("--console-port", str(free_port()))
    link = json.loads(danlu.command("status", "--json").stdout)["console"]
    console = link.partition("/?")[0]
    tab = web.new_tab()
    sign_in(tab, link)
    danlu.kill()
    port = urlsplit(console).port or 0
    until("the last thread of it to end", lambda: is_free(port))
    with thief(port) as robber:
        tab.evaluate(ASK, "GET", "/console/session", "")
        sent = next(headers for _, headers in robber.got if headers.get("x-danlu-proof"))
    assert "danlu-session" in sent["cookie"]
    danlu.up()
    own = {name: sent[name] for name in ("cookie", "x-danlu-proof")}
    assert send("GET", f"{console}/console/session", own).status == 401
    token = link.rpartition("=")[2]
    again = {"x-danlu-proof": secrets.token_urlsafe(32)}
    assert send("POST", f"{console}/console/sign-in", again, json.dumps({"link": token})).status == 401
    sign_in(tab, json.loads(danlu.command("status", "--json").stdout)["console"])


def test_only_who_left_for_the_identity_provider_comes_back(
    web: Web, danlu: Danlu, mallory: str, tmp_path: Path
) -> None:
    """A sign-in that somebody else began would be one whose secret they know."""
    provider = Provider("danlu-console", access_token=mallory)
    provider.start()
    oidc = ["--oidc-issuer", provider.issuer, "--oidc-client-id", "danlu-console", "--oidc-token", "access_token"]
    try:
        with danlu_console(danlu.kubeconfig, *oidc, environment=danlu.environment, folder=tmp_path) as console:
            tab = web.new_tab()
            own = {"sec-fetch-site": "same-origin", "origin": console, "x-danlu-proof": secrets.token_urlsafe(32)}
            begun = json.loads(send("POST", f"{console}/console/oidc/start", own, '{"next": "/"}').body)
            # The person had begun one of their own, and has a secret at hand.
            arrive(tab, console, "/")
            tab.evaluate("(own) => sessionStorage.setItem('danlu.proof.leaving', own)", secrets.token_urlsafe(32))
            arrive(tab, begun["address"], "/console/oidc/callback")
            until("the sign-in", lambda: asks_to_sign_in(tab))
            status, _ = tab.evaluate(ASK, "GET", "/console/session", "")
            assert status == 401
            assert "code" not in tab.evaluate("() => location.href")
            # Whoever begins it on the page itself comes back to where they were.
            arrive(tab, f"{console}/build/default/pods?a=b", "/build/default/pods")
            until("the sign-in", lambda: asks_to_sign_in(tab))
            press = "() => { setTimeout(() => [...document.querySelectorAll('main.sign-in button')].at(-1).click()) }"
            tab.evaluate(press)
            until("the page", lambda: is_inside(tab))
            assert tab.evaluate("() => location.href") == f"{console}/build/default/pods?a=b"
            assert tab.evaluate(ASK, "GET", "/console/session", "")[0] == 200
    finally:
        provider.stop()
