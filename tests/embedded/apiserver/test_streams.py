"""logs, exec, attach, cp, port-forward and proxy with the real kubectl on real processes."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import struct
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import pytest
import yaml

from danlu.client.client import Client
from danlu.embedded.apiserver.subresources.nodestreams import plain_connection
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.meta.wellknown import POD

Kubectl = Callable[..., Awaitable[Any]]
SERVER = """
    import http.server, os, socket, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302 if self.path == "/moved" else 200)
            if self.path == "/moved":
                self.send_header("Location", "/new")
            self.end_headers()
            self.wfile.write(f"{self.path} {self.headers.get('authorization')}".encode())
    server = http.server.ThreadingHTTPServer((os.environ["DANLU_POD_IP"], 0), Handler)
    print("port", server.server_address[1], flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    server.serve_forever()
"""


@pytest.fixture
def settings(tmp_path: Path) -> ClusterSettings:
    return ClusterSettings(data_dir=tmp_path / "danlu", port=0)


def pod(name: str, program: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "python:3.11", "command": ["python3", "-c", textwrap.dedent(program)]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [container],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


async def run(client: Client, made: dict[str, Any], *phases: str) -> None:
    await client.create(POD, made)
    async with asyncio.timeout(20):
        while True:
            found = await client.get(POD, made["metadata"]["name"], "default")
            if found.get("status", {}).get("phase") in phases:
                return
            await asyncio.sleep(0.02)


async def port_of(kubectl: Kubectl, name: str) -> int:
    async with asyncio.timeout(20):
        while True:
            shown = await kubectl("logs", name)
            if "port " in shown.stdout:
                return int(shown.stdout.split("port ")[1].split()[0])
            await asyncio.sleep(0.05)


async def test_logs(client: Client, kubectl: Kubectl) -> None:
    program = """
        import sys, time
        for n in range(5):
            print("line", n, flush=True)
            time.sleep(0.02)
        print("to stderr", file=sys.stderr)
    """
    await run(client, pod("p", program, restartPolicy="Never"), "Running", "Succeeded")
    followed = await kubectl("logs", "-f", "p")
    assert followed.stdout == "line 0\nline 1\nline 2\nline 3\nline 4\nto stderr\n"
    assert (await kubectl("logs", "p", "--tail=2")).stdout == "line 4\nto stderr\n"
    assert (await kubectl("logs", "p", "--limit-bytes=4")).stdout == "line"
    stamped = (await kubectl("logs", "p", "--timestamps", "--tail=1")).stdout
    assert stamped.split(" ", 1)[1] == "to stderr\n"
    assert (await kubectl("logs", "p", "--since=1h")).stdout == followed.stdout
    for words, message in (
        (("logs", "p", "-p"), 'previous terminated container "main" in pod "p" not found'),
        (("logs", "p", "-c", "other"), "container other is not valid for pod p"),
        (("logs", "none"), 'pods "none" not found'),
    ):
        failed = await kubectl(*words, check=False)
        assert failed.returncode == 1
        assert message in failed.stderr


async def test_exec_and_cp(client: Client, kubectl: Kubectl, tmp_path: Path) -> None:
    await run(client, pod("p", "import time; time.sleep(600)"), "Running")
    both = await kubectl("exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (both.returncode, both.stdout) == (3, "out\n")
    assert both.stderr == "err\ncommand terminated with exit code 3\n"
    large = "".join(f"{n}\n" for n in range(200_000))
    assert (await kubectl("exec", "-i", "p", "--", "cat", stdin=large)).stdout == large
    missing = await kubectl("exec", "p", "--", "no-such-program", check=False)
    assert 'exec: "no-such-program": executable file not found in $PATH' in missing.stderr
    wrong = await kubectl("exec", "p", "-c", "other", "--", "ls", check=False)
    assert "container other is not valid for pod p" in wrong.stderr
    (tmp_path / "here").write_bytes(os.urandom(2_000_000))
    await kubectl("cp", str(tmp_path / "here"), "p:/tmp/there")
    await kubectl("cp", "p:/tmp/there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == (tmp_path / "here").read_bytes()


@pytest.fixture
async def web(cluster: Cluster) -> AsyncIterator[aiohttp.ClientSession]:
    """What a client library would open: the admin's certificate and the server's CA."""
    config = yaml.safe_load(cluster.directory.kubeconfig.read_text())
    user, server = config["users"][0]["user"], config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(server["certificate-authority-data"]).decode())
    pair = cluster.directory.root / "admin.pem"
    pair.write_bytes(
        base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
    )
    context.load_cert_chain(pair)
    async with aiohttp.ClientSession(server["server"], connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield session


async def test_channels(client: Client, web: aiohttp.ClientSession) -> None:
    """Each version of the channel protocol, message by message."""
    await run(client, pod("p", "import time; time.sleep(600)"), "Running")
    path = "/api/v1/namespaces/default/pods/p/exec?stdin=1&stdout=1&stderr=1&command=cat"
    async with web.ws_connect(path, protocols=["v5.channel.k8s.io"]) as socket:
        await socket.send_bytes(b"\x00hello")
        await socket.send_bytes(b"\xff\x00")  # stdin has ended
        messages = [message.data async for message in socket]
        assert b"".join(m[1:] for m in messages if m[0] == 1) == b"hello"
        assert json.loads(messages[-1][1:]) == {"metadata": {}, "status": "Success"}
    failing = "/api/v1/namespaces/default/pods/p/exec?stdout=1&command=sh&command=-c&command=exit+7"
    async with web.ws_connect(failing, protocols=["v4.base64.channel.k8s.io"]) as socket:
        texts = [message.data async for message in socket]
        status = json.loads(base64.b64decode(texts[-1][1:]))
        assert texts[-1][0] == "3"
        assert (status["reason"], status["details"]["causes"][0]["message"]) == ("NonZeroExitCode", "7")
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await web.ws_connect(path, protocols=["unheard.of"])
    assert refused.value.status == 400


async def test_port_forward_and_proxy(
    cluster: Cluster, client: Client, kubectl: Kubectl, web: aiohttp.ClientSession
) -> None:
    await run(client, pod("p", SERVER), "Running")
    port = await port_of(kubectl, "p")
    environment = {**os.environ, "KUBECONFIG": str(cluster.directory.kubeconfig)}
    forwarding = await asyncio.create_subprocess_exec(
        "kubectl", "port-forward", "pod/p", f":{port}", stdout=-1, stderr=-1, env=environment
    )
    try:
        assert forwarding.stdout is not None
        async with asyncio.timeout(20):
            first = (await forwarding.stdout.readline()).decode()
        local = int(first.split("->")[0].rsplit(":", 1)[1])
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                async with session.get(f"http://127.0.0.1:{local}/x") as answer:
                    assert await answer.text() == "/x None"
    finally:
        forwarding.terminate()
        await forwarding.wait()
    async with web.ws_connect(
        f"/api/v1/namespaces/default/pods/p/portforward?ports={port}", protocols=["v4.channel.k8s.io"]
    ) as socket:
        starts = [(await socket.receive()).data, (await socket.receive()).data]
        assert starts == [b"\x00" + struct.pack("<H", port), b"\x01" + struct.pack("<H", port)]
        await socket.send_bytes(b"\x00GET /y HTTP/1.0\r\n\r\n")
        answer_bytes = b"".join([message.data[1:] async for message in socket if message.data[0] == 0])
        assert answer_bytes.endswith(b"/y None")
    base = f"/api/v1/namespaces/default/pods/p:{port}/proxy"
    async with web.get(f"{base}/a/b?c=d%20e", headers={"authorization": "Bearer secret"}) as answer:
        assert (answer.status, await answer.text()) == (200, "/a/b?c=d+e None")
    async with web.get(f"{base}/moved", allow_redirects=False) as answer:
        assert answer.headers["location"] == f"{base}/new"
    async with web.get("/api/v1/namespaces/default/pods/p:1/proxy/") as answer:
        assert answer.status == 503
        assert "connection refused" in (await answer.json())["message"].lower()


async def test_proxy_carries_websockets_and_cookies(
    client: Client, web: aiohttp.ClientSession, cluster: Cluster
) -> None:
    """To a server in this process, which a pod object of a machine elsewhere points at."""

    async def echo(request: aiohttp.web.Request) -> aiohttp.web.WebSocketResponse:
        socket = aiohttp.web.WebSocketResponse(protocols=["talk"])
        await socket.prepare(request)
        async for message in socket:
            if message.type == aiohttp.WSMsgType.TEXT:
                await socket.send_str(f"{request.query_string} {message.data}")
            else:
                await socket.send_bytes(message.data)
        return socket

    async def cookies(_request: aiohttp.web.Request) -> aiohttp.web.Response:
        answer = aiohttp.web.Response(text="x")
        for name in ("a", "b", "c"):
            answer.set_cookie(name, "1")
        return answer

    app = aiohttp.web.Application()
    app.add_routes([aiohttp.web.get("/echo", echo), aiohttp.web.get("/cookies", cookies)])
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    await client.create(POD, pod("p", "", nodeName="elsewhere"))
    status = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    await client.patch(POD, "p", "default", status, subresource="status")
    base = f"/api/v1/namespaces/default/pods/p:{port}/proxy"
    async with web.get(f"{base}/cookies") as answer:
        assert answer.status == 503  # the node sees that this process is no pod of its own
    cluster.server.connect = plain_connection
    async with web.ws_connect(f"{base}/echo?q=1", protocols=["talk"]) as socket:
        assert socket.protocol == "talk"
        await socket.send_str("hello")
        assert (await socket.receive()).data == "q=1 hello"
        await socket.send_bytes(b"\x00" * 100_000)
        assert (await socket.receive()).data == b"\x00" * 100_000
    async with web.get(f"{base}/cookies") as answer:
        assert sorted(answer.cookies) == ["a", "b", "c"]
    await runner.cleanup()
