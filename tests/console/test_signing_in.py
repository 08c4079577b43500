"""Who gets in, and what is refused to whom."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable

import pytest
from tests.console.browsing import PROOF, Browser
from tests.running import Danlu

pytestmark = pytest.mark.timeout(120)

CONFIG_MAPS = "/k8s/api/v1/namespaces/default/configmaps"
Browsers = Callable[[], Browser]
TokenFor = Callable[[str, str, str], str]


async def test_the_link_of_danlu_up_signs_in_and_leaves_the_address(
    new_browser: Browsers, link: str, console: str, danlu: Danlu
) -> None:
    browser = new_browser()
    before = await browser.raw("GET", "/console/session")
    assert before.status == 401
    assert (await before.json())["signIn"] == ["token"]
    answer = await browser.raw("GET", link.replace("/?", "/build/jobs?a=b&"))
    assert answer.status == 303
    token = link.rpartition("=")[2]
    assert answer.headers["location"] == f"/build/jobs?a=b#token={token}"
    assert "set-cookie" not in answer.headers
    own = {"sec-fetch-site": "same-origin", "origin": console, PROOF: browser.proof}
    answer = await browser.raw("POST", "/console/sign-in", json={"link": token}, headers=own)
    (cookie,) = answer.headers.getall("set-cookie")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    told = await browser.session()
    assert told["user"] == {"name": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
    assert told["target"] == "embedded"
    assert told["appsOrigin"].startswith("http://localhost:")
    assert stat.S_IMODE((danlu.data / "console.json").stat().st_mode) == 0o600


async def test_a_wrong_link_signs_nobody_in(new_browser: Browsers, token_for: TokenFor) -> None:
    browser = new_browser()
    # Nor does a link with somebody's own token: any page could lead a person into another's sign-in.
    for token in ("0000", token_for("zhou", "team-z", "view")):
        status, said = await browser.ask("POST", "/console/sign-in", {"link": token})
        assert (status, said["reason"]) == (401, "Unauthorized")
        assert "`danlu status` shows the one that is" in said["message"]
    assert not browser.cookies("/")
    assert (await browser.ask("GET", "/console/session"))[0] == 401
    assert (await browser.ask("GET", "/k8s/api/v1/namespaces"))[0] == 401
    # A link never leads to another place.
    assert (await browser.raw("GET", "//evil.example/?token=1")).headers["location"] == "/evil.example/#token=1"


async def test_the_link_survives_a_restart_and_so_does_the_sign_in(
    make_danlu: Callable[..., Danlu], new_browser: Browsers
) -> None:
    danlu = make_danlu("--console-port", "0")
    link = json.loads(danlu.command("status", "--json").stdout)["console"]
    async with Browser(link.partition("/?")[0]) as browser:
        await browser.sign_in(link)
        danlu.down()
        danlu.flags = ()
        assert f"  console   {link}" in danlu.up().splitlines()
        assert (await browser.session())["user"]["name"] == "kubernetes-admin"


async def test_no_console(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--no-console")
    assert "none (--no-console)" in danlu.command("status").stdout


async def test_a_pasted_token_is_the_persons_own_identity(new_browser: Browsers, token_for: TokenFor) -> None:
    """One with few rights sees the things of their own namespace and no others."""
    browser = new_browser()
    token = token_for("wang", "team-a", "edit")
    status, told = await browser.ask("POST", "/console/sign-in", {"token": token})
    assert status == 200, told
    assert told["user"]["name"] == "system:serviceaccount:team-a:wang"
    await browser.session()
    maps = {"metadata": {"name": "mine"}, "data": {"a": "b"}}
    assert (await browser.ask("POST", "/k8s/api/v1/namespaces/team-a/configmaps", maps))[0] == 201
    listed = await browser.json("GET", "/k8s/api/v1/namespaces/team-a/configmaps")
    assert "mine" in [item["metadata"]["name"] for item in listed["items"]]
    for path in (CONFIG_MAPS, "/k8s/api/v1/secrets", "/k8s/api/v1/nodes"):
        status, said = await browser.ask("GET", path)
        assert status == 403
        assert "system:serviceaccount:team-a:wang" in said["message"]
    # The browser cannot make itself somebody else.
    for headers in (
        {"impersonate-user": "kubernetes-admin"},
        {"Impersonate-Group": "system:masters", "Impersonate-User": "x"},
        {"authorization": "Bearer something"},
        {"x-remote-user": "kubernetes-admin"},
    ):
        status, said = await browser.ask("GET", CONFIG_MAPS, headers=headers)
        assert status == 403
        assert "team-a:wang" in said["message"]


async def test_a_wrong_token_is_refused_in_words(new_browser: Browsers) -> None:
    browser = new_browser()
    status, said = await browser.ask("POST", "/console/sign-in", {"token": "no-such-token"})
    assert (status, said["reason"]) == (401, "Unauthorized")
    assert "does not know this token" in said["message"]
    assert (await browser.ask("POST", "/console/sign-in", {"token": ""}))[0] == 400
    assert (await browser.ask("POST", "/console/sign-in", ["x"]))[0] == 400
    assert (await browser.raw("POST", "/console/sign-in", data=b"{")).status == 400
    for proof in ("", "x", "0" * 20, "é" * 43):
        status, said = await browser.ask("POST", "/console/sign-in", {"token": "x"}, headers={PROOF: proof})
        assert (status, "X-Danlu-Proof" in said["message"]) == (400, True)


async def test_a_token_that_ends_ends_the_sign_in(new_browser: Browsers, token_for: TokenFor, danlu: Danlu) -> None:
    """The pages see 401 and lead to the sign-in; afterwards everything works again with the same cookie jar."""
    browser = new_browser()
    await browser.ask("POST", "/console/sign-in", {"token": token_for("li", "team-b", "view")})
    await browser.session()
    danlu.kubectl("-n", "team-b", "delete", "serviceaccount", "li")
    status, said = await browser.ask("GET", "/k8s/api/v1/namespaces/team-b/pods")
    assert (status, said["reason"]) == (401, "Unauthorized")
    status, said = await browser.ask("GET", "/console/session")
    assert (status, said["signIn"]) == (401, ["token"])
    assert not browser.cookies("/")
    danlu.kubectl("-n", "team-b", "create", "serviceaccount", "li")
    token = danlu.kubectl("-n", "team-b", "create", "token", "li").strip()
    assert (await browser.ask("POST", "/console/sign-in", {"token": token}))[0] == 200
    await browser.session()
    assert (await browser.ask("GET", "/k8s/api/v1/namespaces/team-b/pods"))[0] == 200


async def test_signing_out(browser: Browser) -> None:
    assert (await browser.ask("POST", "/console/sign-out", {}))[0] == 200
    assert not browser.cookies("/")
    assert (await browser.ask("GET", "/console/session"))[0] == 401


async def test_everything_needs_the_proof(browser: Browser, new_browser: Browsers, link: str) -> None:
    body = {"metadata": {"name": "proof"}}
    other = new_browser()
    await other.sign_in(link)
    for wrong in ("", "0" * 43, other.proof, browser.proof[:-1]):
        for method, path in (("POST", CONFIG_MAPS), ("GET", CONFIG_MAPS), ("GET", "/console/session")):
            status, said = await browser.ask(method, path, body if method == "POST" else None, headers={PROOF: wrong})
            assert (status, said["reason"], said["signIn"]) == (401, "Unauthorized", ["token"])
    assert (await browser.ask("GET", f"{CONFIG_MAPS}/proof"))[0] == 404
    for method in ("PUT", "PATCH", "DELETE"):
        status, _ = await browser.ask(method, f"{CONFIG_MAPS}/kube-root-ca.crt", {}, headers={PROOF: ""})
        assert status == 401
    assert (await browser.ask("POST", CONFIG_MAPS, body))[0] == 201


@pytest.mark.parametrize("path", ["/k8s/api/v1/secrets", "/console/session"])
async def test_pages_of_other_origins_get_no_answer(browser: Browser, path: str) -> None:
    """Also those on another port of the same host, which the cookie is sent for: a notebook's, for instance."""
    apps = (await browser.session())["appsOrigin"]
    for headers in (
        {"origin": apps, "sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "https://evil.example"},
    ):
        assert (await browser.ask("GET", path, headers=headers))[0] == 403, headers
    # An <img> or <script> sends no Origin, but says whose it is.
    for site in ("same-site", "cross-site"):
        assert (await browser.raw("GET", path, headers={"sec-fetch-site": site})).status == 403


async def test_a_foreign_name_for_our_address_is_refused(browser: Browser, console: str) -> None:
    """DNS rebinding: the browser believes that evil.example is here, and sends its pages' requests as same-origin."""
    port = console.rpartition(":")[2]
    for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", ""):
        for path in ("/", "/console/session", "/k8s/api/v1/secrets"):
            answer = await browser.raw("GET", path, headers={"host": host, "origin": f"http://{host}"})
            assert answer.status == 403, (host, path)
    # The other name of this machine leads to the one that has the cookie.
    answer = await browser.raw("GET", "/build?x=1", headers={"host": f"localhost:{port}"})
    assert answer.headers["location"] == f"{console}/build?x=1"


async def test_a_cookie_cannot_be_made_up_or_changed(browser: Browser, new_browser: Browsers) -> None:
    ((name, value),) = browser.cookies("/").items()
    stranger = new_browser()
    middle = len(value) // 2
    changed = value[:middle] + ("A" if value[middle] != "A" else "B") + value[middle + 1 :]
    shown = {PROOF: browser.proof}
    for text in ("", "x", "AAAA", changed, value[:-4], "é"):
        answer = await stranger.raw("GET", "/console/session", headers=shown | {"cookie": f"{name}={text}"})
        assert answer.status == 401, text
    whole = shown | {"cookie": f"{name}={value}"}
    assert (await stranger.raw("GET", "/console/session", headers=whole)).status == 200
