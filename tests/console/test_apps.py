"""Notebooks, TensorBoards and services through the apps' origin, with the real programs."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.console.browsing import PROOF, Browser, need_pages, until
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: work}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""
NOTEBOOK = """
apiVersion: tensorstack.dev/v1beta1
kind: Notebook
metadata: {name: mine}
spec:
  type: jupyter
  template:
    spec:
      containers:
        - name: notebook
          image: t9kpublic/torch-2.1.0-notebook:1.77.1
          volumeMounts: [{name: workingdir, mountPath: /t9k/mnt}]
      volumes: [{name: workingdir, persistentVolumeClaim: {claimName: work}}]
"""
TENSORBOARD = """
apiVersion: tensorstack.dev/v1beta1
kind: TensorBoard
metadata: {name: curves}
spec: {logDir: {pvc: [{name: work, subPath: [logs]}]}}
"""
SLOW = "command: [sleep, '1000']"
SPY = """
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        for cookie in ("danlu-app-0=taken; Path=/", "DANLU-session-1=x", "own=1; Path=/; Domain=localhost",
                       "deep=1; Path=%s/deep" % self.headers.get("X-Forwarded-Prefix", "")):
            self.send_header("Set-Cookie", cookie)
        self.send_header("Service-Worker-Allowed", "/")
        self.end_headers()
        self.wfile.write((self.path + "\\n" + str(self.headers)).encode())
    do_POST = do_GET
http.server.HTTPServer((os.environ["MY_ADDRESS"], 8000), Page).serve_forever()
"""


@pytest.fixture(scope="module", autouse=True)
def environments() -> None:
    if not list(Path("~/.cache/danlu/environments").expanduser().glob("torch-*/bin/jupyter*")):
        pytest.skip("the environment torch is not built: danlu images build torch")


@pytest.fixture(scope="module")
def notebook(danlu: Danlu) -> str:
    danlu.kubectl("apply", "-f", "-", stdin=f"{CLAIM}---{NOTEBOOK}---{TENSORBOARD}")
    return "mine"


async def ready(browser: Browser, plural: str, name: str) -> dict[str, Any]:
    async def look() -> Any:
        found = await browser.json("GET", f"/k8s/apis/tensorstack.dev/v1beta1/namespaces/default/{plural}/{name}")
        return found if (found.get("status") or {}).get("phase") == "Running" else None

    found: dict[str, Any] = await until(f"{name} to be ready", look, 120)
    return found


async def test_while_it_starts_a_page_says_so(browser: Browser, danlu: Danlu, notebook: str) -> None:
    """A server that takes its time, so that the page is met whatever the machine does meanwhile."""
    slow = NOTEBOOK.replace("name: mine", "name: slow").replace(
        "- name: notebook", "- name: notebook\n          " + SLOW
    )
    danlu.kubectl("apply", "-f", "-", stdin=slow)
    url = await browser.open_app("default", "notebook", "slow")
    own = re.fullmatch(
        r"http://slow-[0-9a-f]{32}\.(localhost:\d+)/t9k/notebooks/projects/default/name/slow/lab\?.*", url
    )
    assert own
    assert (await browser.session())["appsOrigin"] == f"http://{own[1]}"
    for language, words in (("zh-CN,zh;q=0.9", "Notebook slow 正在启动"), ("en", "Notebook slow is starting")):
        answer = await browser.visit(url, **{"accept-language": language})
        assert answer.status == 503
        assert words in await answer.text()
        assert "ticket" not in str(answer.url)
    danlu.kubectl("delete", "notebook", "slow")


async def test_what_keeps_it_from_starting_is_said(browser: Browser, danlu: Danlu, notebook: str) -> None:
    danlu.kubectl(
        "apply", "-f", "-", stdin=NOTEBOOK.replace("mine", "stuck").replace("claimName: work", "claimName: missing")
    )
    url = await browser.open_app("default", "notebook", "stuck")

    async def told() -> Any:
        answer = await browser.visit(url, **{"accept-language": "zh"})
        assert answer.status == 503
        text = await answer.text()
        return text if "Notebook stuck 暂时无法启动" in text else None

    assert "&quot;missing&quot; does not exist" in await until("the page to say why", told)
    danlu.kubectl("delete", "notebook", "stuck")


async def test_jupyterlab_opens_and_its_kernel_computes(browser: Browser, notebook: str) -> None:
    await ready(browser, "notebooks", notebook)
    answer = await browser.visit(await browser.open_app("default", "notebook", notebook))
    assert answer.status == 200
    assert "<title>JupyterLab</title>" in await answer.text()
    lab = str(answer.url)
    base = lab.removesuffix("lab")
    origin = f"{urlsplit(lab).scheme}://{urlsplit(lab).netloc}"
    told = {"origin": origin, "sec-fetch-site": "same-origin"}
    status, kernel = await browser.ask("POST", f"{base}api/kernels", {"name": "python3"}, told)
    assert status == 201, kernel
    async with browser.socket(f"{base}api/kernels/{kernel['id']}/channels") as channel:
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "1"}
        header["version"] = "5.3"
        content = {"code": "print(6 * 7, __import__('os').environ['NB_PREFIX'])", "silent": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await channel.send_str(json.dumps(message))
        while True:
            said = json.loads(await channel.receive_str(timeout=60))
            if said["msg_type"] == "stream":
                break
        assert said["content"]["text"] == "42 /t9k/notebooks/projects/default/name/mine\n"
    assert (await browser.ask("DELETE", f"{base}api/kernels/{kernel['id']}", headers=told))[0] == 204


async def test_tensorboard_opens(browser: Browser, notebook: str) -> None:
    found = await ready(browser, "tensorboards", "curves")
    apps = (await browser.session())["appsOrigin"]
    assert found["status"]["url"] == f"{apps}/t9k/tensorboards/projects/default/name/curves/"
    answer = await browser.visit(await browser.open_app("default", "tensorboard", "curves"))
    assert answer.status == 200
    assert "TensorBoard" in await answer.text()
    assert (await browser.raw("GET", f"{answer.url}data/environment")).status == 200


async def test_the_address_in_the_status_works_for_who_is_signed_in(
    browser: Browser, new_browser: Callable[[], Browser], notebook: str
) -> None:
    found = await ready(browser, "notebooks", notebook)
    url = found["status"]["url"]
    # It leads to a page of the console, also whoever is signed in: the cookie alone opens nothing.
    for somebody in (browser, new_browser()):
        page = await somebody.visit(url)
        assert str(page.url).startswith(f"{browser.console}/console/apps/enter?path=")
        assert "JupyterLab" not in await page.text()
    # That page knows whether the person typed the address; one that another page led there asks.
    need_pages()
    assert page.status == 200
    assert "danlu-typed" in await page.text()
    for site in ("cross-site", "same-site", "same-origin"):
        led = await browser.raw("GET", str(page.url), headers={"sec-fetch-site": site})
        assert "danlu-typed" not in await led.text()
        assert "frame-ancestors 'none'" in led.headers["content-security-policy"]
    path = urlsplit(url).path
    home = (await browser.json("POST", "/console/apps/open", {"path": path}))["url"]
    answer = await browser.visit(home)
    assert (answer.status, answer.url.path.startswith(path)) == (200, True)
    assert "<title>JupyterLab</title>" in await answer.text()
    for wrong in ("//evil.example/t9k/notebooks/projects/a/name/b/", "/\\evil/", "http://evil.example/", "/k8s/", ""):
        assert (await browser.ask("POST", "/console/apps/open", {"path": wrong}))[0] == 404
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://localhost:1"}):
        assert (await browser.ask("POST", "/console/apps/open", {"path": path}, headers=headers))[0] == 403
    assert (await browser.ask("POST", "/console/apps/open", {"path": path}, headers={PROOF: ""}))[0] == 401


async def test_a_ticket_opens_one_app_once(browser: Browser, new_browser: Callable[[], Browser], notebook: str) -> None:
    await ready(browser, "notebooks", notebook)
    url = await browser.open_app("default", "notebook", notebook)
    thief = new_browser()
    other = f"{(await browser.open_app('default', 'tensorboard', 'curves')).partition('?')[0]}?{urlsplit(url).query}"
    assert not (await thief.raw("GET", other)).headers.getall("set-cookie", [])
    first = await thief.raw("GET", url)
    (cookie,) = first.headers.getall("set-cookie")
    assert "Path=/t9k/notebooks/projects/default/name/mine/;" in cookie
    assert "HttpOnly" in cookie
    assert not (await new_browser().raw("GET", url)).headers.getall("set-cookie", []), "it was used"
    # The pass for the notebook opens neither another app nor the console.
    assert (await thief.raw("GET", other.partition("?")[0])).status == 401
    assert (await thief.ask("GET", "/console/session"))[0] == 401
    name, _, value = cookie.partition(";")[0].partition("=")
    for session in ("danlu-session-8080-0", "danlu-session-0"):
        told = {"cookie": f"{session}={value}; {name}={value}", PROOF: browser.proof}
        refused = await thief.raw("GET", "/k8s/api/v1/secrets", headers=told)
        assert refused.status == 401


async def test_whoever_may_only_look_does_not_get_into_a_notebook(
    new_browser: Callable[[], Browser], notebook: str, danlu: Danlu, browser: Browser
) -> None:
    await ready(browser, "tensorboards", "curves")
    danlu.kubectl("create", "serviceaccount", "viewer")
    danlu.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--serviceaccount=default:viewer")
    guest = new_browser()
    token = danlu.kubectl("create", "token", "viewer").strip()
    assert (await guest.ask("POST", "/console/sign-in", {"token": token}))[0] == 200
    await guest.session()
    status, said = await guest.ask(
        "POST", "/console/apps/open", {"namespace": "default", "kind": "notebook", "name": "mine"}
    )
    assert status == 403
    assert "you may see this notebook, not enter it" in said["message"]
    assert (await guest.visit(await guest.open_app("default", "tensorboard", "curves"))).status == 200
    service = {"namespace": "default", "kind": "service", "name": "kubernetes:443"}
    assert (await guest.ask("POST", "/console/apps/open", service))[0] == 403
    nothing = {"namespace": "default", "kind": "notebook", "name": "nothing"}
    assert (await guest.ask("POST", "/console/apps/open", nothing))[0] == 404
    wrongs: list[Any] = [
        {},
        {**nothing, "kind": "pod"},
        {**nothing, "name": "a/../b"},
        {**nothing, "namespace": ""},
        [],
    ]
    for bad in wrongs:
        assert (await guest.ask("POST", "/console/apps/open", bad))[0] == 400


async def test_an_app_neither_sees_nor_sets_our_cookies(browser: Browser, danlu: Danlu) -> None:
    address = [{"name": "MY_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    container = {"name": "spy", "image": "python:3", "command": ["python3", "-c", SPY], "env": address}
    pod = {"metadata": {"name": "spy", "labels": {"app": "spy"}}, "spec": {"containers": [container]}}
    await browser.json("POST", "/k8s/api/v1/namespaces/default/pods", pod)
    service = {
        "metadata": {"name": "spy"},
        "spec": {"selector": {"app": "spy"}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    await browser.json("POST", "/k8s/api/v1/namespaces/default/services", service)
    url = await browser.open_app("default", "service", "spy:80")
    base = url.partition("?")[0]

    async def answers() -> Any:
        answer = await browser.visit(url)
        return answer if answer.status == 200 else None

    await until("the service to answer", answers)
    told = {"cookie": "", "x-forwarded-for": "1.2.3.4", "authorization": "Bearer secret"}
    mine = {**browser.cookies(browser.console), **browser.cookies(base)}
    assert {name.partition("-")[2][:3] for name in mine if name.startswith("danlu-")} == {"ses", "app"}
    told["cookie"] = "; ".join([*(f"{name}={value}" for name, value in mine.items()), "theirs=1"])
    answer = await browser.raw("GET", f"{base}a%2Fb?c=d", headers=told)
    path, _, seen = (await answer.text()).partition("\n")
    assert path == "/a%2Fb?c=d"
    assert "danlu" not in seen.replace(f"X-Forwarded-Prefix: {urlsplit(base).path.rstrip('/')}", "").lower()
    assert "theirs=1" in seen
    assert "1.2.3.4" not in seen
    assert "secret" not in seen
    assert f"host: {urlsplit(base).netloc}\n" in seen.lower()
    own = [cookie.partition(";")[0] for cookie in answer.headers.getall("set-cookie")]
    assert own == ["own=1", "deep=1"]
    assert all("Path=/t9k/services/projects/default/name/spy:80/" in c for c in answer.headers.getall("set-cookie"))
    assert not any("domain" in cookie.lower() for cookie in answer.headers.getall("set-cookie"))
    assert "service-worker-allowed" not in answer.headers
    # Pages elsewhere cannot make the browser do something in the app.
    for origin, site in (("https://evil.example", "cross-site"), ("http://localhost:1", "same-site")):
        refused = await browser.raw("POST", base, headers={"origin": origin, "sec-fetch-site": site})
        assert refused.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):
            async with browser.socket(base, origin=origin):
                pass
    rebound = await browser.raw("GET", base, headers={"host": "evil.example"})
    assert rebound.status == 403


async def test_each_app_has_an_origin_of_its_own(
    browser: Browser, new_browser: Callable[[], Browser], link: str, notebook: str
) -> None:
    """Paths part nothing in a browser's eyes: what is served at one origin can read and steer all of it."""
    await ready(browser, "notebooks", notebook)
    await ready(browser, "tensorboards", "curves")
    mine = await browser.visit(await browser.open_app("default", "notebook", notebook))
    other = await browser.visit(await browser.open_app("default", "tensorboard", "curves"))
    assert mine.url.host != other.url.host
    assert browser.cookies(str(mine.url))
    assert "frame-ancestors 'self' " + browser.console in mine.headers.getall("content-security-policy")
    path = f"{mine.url.path.removesuffix('lab')}api/contents"
    assert (await browser.raw("GET", str(mine.url.with_path(path)))).status == 200
    # The notebook at the other's origin, and without any app's name: a page there does not get at it.
    assert not browser.cookies(str(other.url.with_path(path)))
    stolen = "; ".join(f"{name}={value}" for name, value in browser.cookies(str(mine.url)).items())
    plain = mine.url.with_host("localhost").with_path(path)
    for told in ({}, {"cookie": stolen}):
        for place in (other.url.with_path(path), plain):
            assert (await browser.raw("GET", str(place), headers=told)).status == 401
            assert (await browser.raw("PUT", str(place), headers=told)).status == 401
    for site in ("cross-site", "same-site"):
        told = {"origin": str(other.url.origin()), "sec-fetch-site": site}
        assert (await browser.raw("GET", str(mine.url.with_path(path)), headers=told)).status == 403
    # The name is of this sign-in: nobody else can know it, and it is the same when the app is opened again.
    again = await browser.open_app("default", "notebook", notebook)
    assert urlsplit(again).hostname == mine.url.host
    stranger = new_browser()
    await stranger.sign_in(link)
    assert urlsplit(await stranger.open_app("default", "notebook", notebook)).hostname != mine.url.host


async def test_a_paused_notebook_says_how_to_wake_it(browser: Browser, danlu: Danlu, notebook: str) -> None:
    await ready(browser, "notebooks", notebook)
    url = await browser.open_app("default", "notebook", notebook)
    danlu.kubectl("patch", "notebook", notebook, "--type=merge", "-p", '{"spec": {"suspend": true}}')

    async def paused() -> Any:
        answer = await browser.visit(url)
        return answer if answer.status == 503 and "is paused" in await answer.text() else None

    answer = await until("the page to say so", paused)
    assert "Resume it in the console" in await answer.text()
    assert (await browser.raw("GET", url.partition("?")[0].replace("/lab", "/api/status"))).status == 503
