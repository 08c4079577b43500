"""`/k8s/…` of the console with paths that two readers could read differently.

The console decides by the path as it was sent that a request is for the API, cuts its prefix off and passes the rest on
as it is. So whatever a path looks like, the API server reads what the person sent, and nobody gets farther through the
console than with the same token straight at the API; nor to another page of the console, or to another server.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from tests.console.browsing import PROOF, Browser
from tests.console.conftest import browser, console, danlu, link, new_browser, token_for
from tests.running import Api, Danlu

from danlu.client.config import Config
from danlu.console import kubeproxy, watchsocket
from danlu.console.kubeapi import OverHttp, http_scope
from danlu.console.sessions import Identity, Session
from danlu.console.tokenrefresh import Renewals

__all__ = ["browser", "console", "danlu", "link", "new_browser", "token_for"]

OWN = "/api/v1/namespaces/mine"
# Each leads, read in one of the wrong ways, to what belongs to others.
ELSEWHERE = [
    "/api/v1/namespaces/kube-system/secrets",
    "/api/v1/secrets",
    f"{OWN}/../kube-system/secrets",
    f"{OWN}/%2e%2e/kube-system/secrets",
    f"{OWN}/..%2fkube-system/secrets",
    f"{OWN}%2f..%2fkube-system%2fsecrets",
    f"{OWN}/configmaps/../../kube-system/secrets",
    f"{OWN}//secrets/../../kube-system/secrets",
    "/api/v1/namespaces//kube-system/secrets",
    "//api/v1/namespaces/kube-system/secrets",
    "/%2fapi/v1/namespaces/kube-system/secrets",
    "/./api/v1/namespaces/kube-system/secrets",
    "/api/v1/namespaces/mine%00/../kube-system/secrets",
    "/api/v1/namespaces/kube%2dsystem/secrets",
    "/api/v1/namespaces/mine;/../kube-system/secrets",
    "/api/v1/namespaces/mine%3f/../kube-system/secrets",
    "/api/v1/namespaces/mine%23/../kube-system/secrets",
    "/../k8s/api/v1/namespaces/kube-system/secrets",
    "/..",
    "/%2e%2e/console/session",
    "/apis/../api/v1/namespaces/kube-system/secrets",
    "/api/v1/namespaces/mine\\..\\kube-system/secrets",
    "/API/v1/namespaces/kube-system/secrets",
]
THERE_IS_NO_SUCH_PATH = f"{OWN}/namespaces/kube-system"
# None of these is below /k8s/ as it was sent: the API is not asked.
NOT_THE_API = ["/%6b8s/version", "/k8s%2fversion", "/k8s", "//k8s/version", "/./k8s/version", "/x/../k8s/version"]


@pytest.fixture
def token(danlu: Danlu, token_for: Callable[[str, str, str], str]) -> str:
    danlu.kubectl("-n", "kube-system", "create", "secret", "generic", "others", "--from-literal=k=hidden")
    return token_for("mallory", "mine", "admin")


def _answer(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """As it stands in the request's line: http.client changes nothing of a path."""
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


@pytest.mark.e2e
@pytest.mark.timeout(180)
async def test_the_console_reads_a_path_as_the_api_does(
    danlu: Danlu, console: str, new_browser: Callable[[], Browser], token: str
) -> None:
    mallory = new_browser()
    assert (await mallory.ask("POST", "/console/sign-in", {"token": token}))[0] == 200
    cookies = "; ".join(f"{name}={value}" for name, value in mallory.cookies("/").items())
    signed_in = {"cookie": cookies, PROOF: mallory.proof, "sec-fetch-site": "same-origin", "accept": "*/*"}
    api = Api(danlu.kubeconfig)
    host, _, port = api.url.removeprefix("https://").rpartition(":")

    def through(path: str) -> tuple[int, str]:
        return _answer(http.client.HTTPConnection(urlsplit(console).netloc), path, signed_in)

    def straight(path: str) -> tuple[int, str]:
        context = ssl.create_default_context(cadata=api.context.get_ca_certs(binary_form=True)[0])
        bearer = {"authorization": f"Bearer {token}", "accept": "*/*"}
        return _answer(http.client.HTTPSConnection(host, int(port), context=context), path, bearer)

    status, said = await asyncio.to_thread(through, f"/k8s{OWN}/secrets")
    assert (status, json.loads(said)["kind"]) == (200, "SecretList")
    for path in ELSEWHERE:
        status, said = await asyncio.to_thread(through, f"/k8s{path}")
        assert (status, said) == await asyncio.to_thread(straight, path), path
        assert status == 403, path
        assert "aGlkZGVu" not in said
    status, said = await asyncio.to_thread(through, f"/k8s{THERE_IS_NO_SUCH_PATH}")
    assert (status, said) == await asyncio.to_thread(straight, THERE_IS_NO_SUCH_PATH)
    assert status == 404
    for path in NOT_THE_API:
        status, said = await asyncio.to_thread(through, path)
        assert "gitVersion" not in said, path


# -- on a cluster: what arrives at the API server


@asynccontextmanager
async def api_server() -> AsyncIterator[tuple[str, list[str]]]:
    """(its address, the lines of all requests that came)."""
    lines: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines.append(head.split(b"\r\n")[0].decode("latin-1"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server:
        yield f"http://{host}:{port}", lines


WITHOUT_A_NAME = [
    *ELSEWHERE, "/@127.0.0.1:1/x", "/:1@127.0.0.1/", "//127.0.0.1:1/x", "/%2f%2f127.0.0.1:1/x", "/http://127.0.0.1:1/",
]  # fmt: skip


@pytest.mark.parametrize("path", WITHOUT_A_NAME)
async def test_another_server_is_sent_the_path_as_it_came(path: str) -> None:
    identity = Identity(token="mallorys")
    answers: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answers.append(message)

    async with api_server() as (url, lines):
        api = OverHttp(Config(url))
        raw = f"/k8s{path}".encode()
        scope = {**http_scope("GET", raw.decode(), "limit=1&x=%2f"), "raw_path": raw}
        await kubeproxy.serve(api, identity, scope, receive, send)
        await api.close()
    assert lines == [f"GET {path}?limit=1&x=%2f HTTP/1.1"]
    assert answers[0]["status"] == 200


@pytest.mark.parametrize(
    "text", ["\r\nx-remote-user: admin\r\n\r\n", " HTTP/1.1\r\nauthorization: Bearer x", "\x00", "é丹"]
)
async def test_a_watch_is_one_request_whatever_its_path_has_in_it(text: str) -> None:
    """Paths of watches come as JSON: any character can be in them, the end of a line too."""
    session = Session(Identity(token="mallorys"), int(time.time()) + 3600, "")
    received: list[Any] = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": json.dumps({"open": 1, "path": f"/k8s/api/v1/pods{text}?watch=1"})},
    ]
    told = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> Any:
        if received:
            return received.pop(0)
        await told.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "websocket.send":
            told.set()

    async with api_server() as (url, lines):
        api = OverHttp(Config(url))
        async with asyncio.timeout(30):
            await watchsocket.serve(api, Renewals(3600), session, (), receive, send)
        await api.close()
    assert lines == [f"GET /api/v1/pods{quote(text, safe='/:')}?watch=1 HTTP/1.1"]
