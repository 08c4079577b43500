"""The Kubernetes API through the console: what pages do with it all day."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from tests.console.browsing import PROOF, Browser, need_pages, until
from tests.running import Danlu
from yarl import URL

pytestmark = pytest.mark.timeout(120)

CONFIG_MAPS = "/k8s/api/v1/namespaces/default/configmaps"
PROGRAM = """
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "danlu-session-8080-0=taken; Path=/")
        self.send_header("Set-Cookie", "other=1; Path=/")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(("<script>evil()</script>" + repr(dict(self.headers)) + self.path).encode())
import os
http.server.HTTPServer((os.environ["MY_ADDRESS"], 8000), Page).serve_forever()
"""


def pod(name: str, *command: str) -> dict[str, Any]:
    address = {"name": "MY_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {"name": "main", "image": "python:3", "command": list(command), "env": [address]}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}}


async def run_pod(browser: Browser, *command: str, name: str = "busy") -> None:
    await browser.json("POST", "/k8s/api/v1/namespaces/default/pods", pod(name, *command))

    async def runs() -> bool:
        found = await browser.json("GET", f"/k8s/api/v1/namespaces/default/pods/{name}")
        return bool(found["status"].get("phase") == "Running")

    await until(f"pod {name} to run", runs)


async def test_discovery_openapi_and_version(browser: Browser) -> None:
    assert (await browser.json("GET", "/k8s/version"))["major"] == "1"
    groups = await browser.json("GET", "/k8s/apis")
    assert "tensorstack.dev" in [group["name"] for group in groups["groups"]]
    documents = await browser.json("GET", "/k8s/openapi/v3")
    assert "apis/tensorstack.dev/v1beta1" in documents["paths"]


async def test_a_watch_streams(browser: Browser) -> None:
    listed = await browser.json("GET", CONFIG_MAPS)
    version = listed["metadata"]["resourceVersion"]
    async with browser.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}") as answer:
        for number in range(3):
            # Each event is there before the next thing happens: nothing is held back.
            await browser.json("POST", CONFIG_MAPS, {"metadata": {"name": f"streamed-{number}"}})
            event = json.loads(await answer.content.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", f"streamed-{number}")


async def test_many_watches_share_one_websocket(browser: Browser) -> None:
    version = (await browser.json("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    async with browser.socket("/console/watch") as socket:
        for number in range(1, 13):
            path = f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Dshared-{number}"
            await socket.send_str(json.dumps({"open": number, "path": path}))
        for number in range(1, 13):
            await browser.json(
                "POST", CONFIG_MAPS, {"metadata": {"name": f"shared-{number}", "annotations": {"x": "火"}}}
            )
        seen: dict[int, str] = {}
        while len(seen) < 12:
            head, _, lines = (await socket.receive_str(timeout=20)).partition("\n")
            seen[int(head)] = json.loads(lines)["object"]["metadata"]["name"]
        assert seen == {number: f"shared-{number}" for number in range(1, 13)}
        # Closed watches are silent, others go on.
        await socket.send_str(json.dumps({"close": 1}))
        for number in (1, 2):
            await browser.json("DELETE", f"{CONFIG_MAPS}/shared-{number}")
        head, _, lines = (await socket.receive_str(timeout=20)).partition("\n")
        assert (head, json.loads(lines)["type"]) == ("2", "DELETED")
        # What cannot be watched is said; what makes no sense harms nothing.
        for wrong in ("/k8s/api/v1/nothings?watch=1", "/console/session", "/../etc", 7):
            await socket.send_str(json.dumps({"open": 99, "path": wrong}))
            said = await socket.receive_str(timeout=20)
            assert said.startswith("99!{"), said
            assert json.loads(said[3:])["code"] in (400, 404)
        for text in ("", "x", "[]", '{"open": "a"}', '{"close": 12345}'):
            await socket.send_str(text)
        ended = f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1&labelSelector=none%3Dnone"
        await socket.send_str(json.dumps({"open": 100, "path": ended}))
        assert await socket.receive_str(timeout=20) == "100"


async def test_a_watch_channel_has_the_persons_rights(
    new_browser: Callable[[], Browser], token_for: Callable[[str, str, str], str]
) -> None:
    browser = new_browser()
    await browser.ask("POST", "/console/sign-in", {"token": token_for("zhao", "team-c", "view")})
    async with browser.socket("/console/watch") as socket:
        await socket.send_str(json.dumps({"open": 1, "path": "/k8s/api/v1/secrets?watch=1"}))
        said = await socket.receive_str(timeout=20)
        assert (said[:2], json.loads(said[2:])["code"]) == ("1!", 403)
        await socket.send_str(json.dumps({"open": 2, "path": "/k8s/api/v1/namespaces/team-c/configmaps?watch=1"}))
        assert (await socket.receive_str(timeout=20)).startswith("2\n")


async def test_logs_follow_and_a_terminal_answers(browser: Browser) -> None:
    await run_pod(browser, "sh", "-c", "echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo second; sleep 60")
    path = "/k8s/api/v1/namespaces/default/pods/busy"
    async with browser.stream(f"{path}/log?follow=true") as log:
        assert await log.content.readline() == b"first\n"
        query = "command=sh&stdin=true&stdout=true&stderr=true"
        async with browser.socket(f"{path}/exec?{query}", protocols=("v5.channel.k8s.io",)) as terminal:
            assert terminal.protocol == "v5.channel.k8s.io"
            await terminal.send_bytes(b"\0touch /tmp/go; echo typed $((6*7))\n")
            said = b""
            while b"typed 42\n" not in said:
                message = await terminal.receive_bytes(timeout=20)
                said += message[1:] if message[0] == 1 else b""
            await terminal.send_bytes(b"\0exit 3\n")
            ended = b""
            while not ended:
                message = await terminal.receive_bytes(timeout=20)
                ended = message[1:] if message[0] == 3 else b""
            assert "exit status 3" in json.loads(ended)["message"]
        assert await asyncio.wait_for(log.content.readline(), 20) == b"second\n"


async def test_sockets_of_other_origins_are_refused(browser: Browser) -> None:
    """A page of a notebook would otherwise have a shell in every pod: CORS does not guard WebSockets."""
    apps = (await browser.session())["appsOrigin"]
    exec_path = "/k8s/api/v1/namespaces/default/pods/busy/exec?command=id&stdout=true"
    for path in ("/console/watch", exec_path):
        for origin in (apps, "http://127.0.0.1:1", "https://evil.example"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with browser.socket(path, origin=origin):
                    pass
            assert refused.value.status == 403
        # Nor one that has the cookie and no proof.
        known, browser.proof = browser.proof, "0" * 43
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with browser.socket(path):
                pass
        assert refused.value.status == 401
        browser.proof = known


async def test_what_a_pod_answers_is_inert_and_sets_no_cookie(browser: Browser) -> None:
    """`pods/NAME/proxy` is part of the API: without care its pages would be pages of the console."""
    await run_pod(browser, "python3", "-c", PROGRAM, name="page")

    async def answers() -> Any:
        path = "/k8s/api/v1/namespaces/default/pods/page:8000/proxy/x"
        found = await browser.raw("GET", path, headers={PROOF: browser.proof})
        return found if found.status == 200 else None

    answer = await until("the pod to answer", answers)
    assert "evil()" in await answer.text()
    assert "danlu-session" not in await answer.text(), "the cookie must not reach the pod"
    assert browser.proof not in await answer.text(), "nor the proof"
    assert answer.headers["cache-control"] == "no-store"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    for name in ("set-cookie", "service-worker-allowed", "access-control-allow-origin"):
        assert name not in answer.headers
    assert "other" not in browser.cookies("/")


async def test_the_pages(browser: Browser, danlu: Danlu) -> None:
    need_pages()
    answer = await browser.visit("/build/jobs")
    assert answer.status == 200
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-cache"
    assert (await browser.visit("/assets/no-such-file.js")).status == 404
    page = await answer.text()
    for path in ("/..%2f..%2fapp.py", "/..%2fapp.py", "/../app.py", "/assets/..%2f..%2fapp.py"):
        answer = await browser.raw("GET", URL(browser.console + path, encoded=True))
        assert answer.status == (404 if path.startswith("/assets/") else 200), path
        assert (await answer.text() == page) is (answer.status == 200), "no file but the page itself"
    assert (await browser.ask("POST", "/build", {}))[0] == 405
    assert (await browser.ask("GET", "/console/nothing"))[0] == 404
