"""The console that `danlu install` put into the cluster, reached as it says: JupyterLab and TensorBoard through it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.cluster.conftest import Space
from tests.console.browsing import Browser, until
from tests.console.starting import danlu_console
from tests.running import ROOT

pytestmark = pytest.mark.timeout(420)
TENSORBOARD = {
    "apiVersion": "tensorstack.dev/v1beta1", "kind": "TensorBoard", "metadata": {"name": "curves"},
    "spec": {"logDir": {"pvc": [{"name": "mnist", "subPath": ["log"]}]}},
}  # fmt: skip


@pytest.fixture
def console(space: Space) -> Iterator[str]:
    with space.danlu.console() as address:
        yield address


def running(space: Space, what: str) -> bool:
    return bool((space.get(what).get("status") or {}).get("phase") == "Running")


async def test_a_notebook_is_opened_and_computes(space: Space, console: str) -> None:
    for file in ("pvc.yaml", "notebook.yaml"):
        space.danlu.kubectl("apply", "-f", str(ROOT / "examples/01-first-notebook" / file))
    space.danlu.kubectl("apply", "-f", "-", stdin=json.dumps(TENSORBOARD))
    space.danlu.wait("JupyterLab", lambda: running(space, "nb/mnist"), 240)
    space.danlu.wait("TensorBoard", lambda: running(space, "tb/curves"), 240)
    space.danlu.kubectl("create", "serviceaccount", "owner")
    account = f"--serviceaccount={space.name}:owner"
    space.danlu.kubectl("create", "rolebinding", "owner", "--clusterrole=admin", account)
    async with Browser(console) as browser:
        token = space.danlu.kubectl("create", "token", "owner").strip()
        assert (await browser.ask("POST", "/console/sign-in", {"token": token}))[0] == 200
        assert (await browser.session())["target"] == "cluster"
        assert "42" in await computed(browser, space.name, "print(6 * 7)")
        page = await opened(browser, space.name, "tensorboard", "curves")
        assert "TensorBoard" in await page.text()
        assert (await browser.raw("GET", f"{page.url}data/environment")).status == 200
        status, _ = await browser.ask("GET", "/k8s/api/v1/namespaces/kube-system/secrets")
        assert status == 403, "nobody gets more through the console than their own rights"
    # A console beside the cluster reaches notebooks by the API server's own proxy.
    where = space.danlu
    with danlu_console(
        where.kubeconfig, "--apps-through", "api", environment=where.environment, folder=where.home
    ) as beside:
        async with Browser(beside) as browser:
            assert (await browser.ask("POST", "/console/sign-in", {"token": token}))[0] == 200
            await browser.session()
            assert "42" in await computed(browser, space.name, "print(6 * 7)")
            # TensorBoard's page does not come that way, and whoever opens it is told another.
            told = await browser.visit(await browser.open_app(space.name, "tensorboard", "curves"))
            assert told.status == 503
            assert f"kubectl -n {space.name} port-forward service/managed-tensorboard" in await told.text()


async def opened(browser: Browser, namespace: str, kind: str, name: str) -> aiohttp.ClientResponse:
    """The app itself; until the node knows the way to its Service, the console shows a page that loads itself again."""

    async def look() -> aiohttp.ClientResponse | None:
        page = await browser.visit(await browser.open_app(namespace, kind, name))
        assert page.status in (200, 503), await page.text()
        return page if page.status == 200 else None

    found: aiohttp.ClientResponse = await until(f"{kind} {name} to open", look)
    return found


async def computed(browser: Browser, namespace: str, code: str) -> str:
    """What a cell printed, in a kernel of JupyterLab behind the console."""
    page = await opened(browser, namespace, "notebook", "mnist")
    assert "<title>JupyterLab</title>" in await page.text()
    base = str(page.url).removesuffix("lab")
    parts = urlsplit(base)
    told = {"origin": f"{parts.scheme}://{parts.netloc}", "sec-fetch-site": "same-origin"}
    status, kernel = await browser.ask("POST", f"{base}api/kernels", {"name": "python3"}, told)
    assert status == 201, kernel
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "1"}
    message: dict[str, Any] = {
        "header": {**header, "version": "5.3"}, "parent_header": {}, "metadata": {}, "channel": "shell",
        "content": {"code": code, "silent": False},
    }  # fmt: skip
    async with browser.socket(f"{base}api/kernels/{kernel['id']}/channels") as channel:
        await channel.send_str(json.dumps(message))
        while True:
            said = json.loads(await channel.receive_str(timeout=60))
            if said["msg_type"] == "stream":
                return str(said["content"]["text"])
