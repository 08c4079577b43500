"""`danlu console` beside a cluster, which it reaches over HTTPS: here a `danlu up` is that cluster."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.console.browsing import Browser, until
from tests.console.provider import Provider
from tests.console.starting import danlu_console
from tests.running import Danlu

pytestmark = pytest.mark.timeout(120)

PAGE = """
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write((self.path + " " + self.headers.get("Cookie", "") + " 丹炉").encode())
http.server.HTTPServer((os.environ["MY_ADDRESS"], 8000), Page).serve_forever()
"""
Start = Callable[..., str]


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu("--no-console")


@pytest.fixture(scope="module")
def start(danlu: Danlu) -> Iterator[Start]:
    """Starts a console and returns its address."""
    with ExitStack() as started:

        def make(*options: str, kubeconfig: Path | None = None) -> str:
            console = danlu_console(
                kubeconfig or danlu.kubeconfig, *options, environment=danlu.environment, folder=danlu.home
            )
            return started.enter_context(console)

        yield make


@pytest.fixture(scope="module")
def token(danlu: Danlu) -> str:
    """Of somebody who may do what they like in the namespace `lab`, and nothing elsewhere."""
    danlu.kubectl("create", "namespace", "lab")
    danlu.kubectl("-n", "lab", "create", "serviceaccount", "sun")
    danlu.kubectl("-n", "lab", "create", "rolebinding", "sun", "--clusterrole=admin", "--serviceaccount=lab:sun")
    return danlu.kubectl("-n", "lab", "create", "token", "sun").strip()


async def test_the_consoles_own_rights_are_never_used(start: Start, token: str) -> None:
    """Its kubeconfig is an administrator's; whoever signs in has what their own token gives them."""
    async with Browser(start()) as browser:
        assert (await browser.ask("GET", "/k8s/api/v1/namespaces"))[0] == 401
        assert (await browser.ask("POST", "/console/sign-in", {"token": "wrong"}))[0] == 401
        status, told = await browser.ask("POST", "/console/sign-in", {"token": token})
        assert (status, told["user"]["name"], told["target"]) == (200, "system:serviceaccount:lab:sun", "cluster")
        await browser.session()
        assert (await browser.ask("GET", "/k8s/api/v1/secrets"))[0] == 403
        path = "/k8s/api/v1/namespaces/lab/configmaps"
        version = (await browser.json("GET", path))["metadata"]["resourceVersion"]
        async with (
            browser.stream(f"{path}?watch=1&resourceVersion={version}") as watch,
            browser.socket("/console/watch") as channel,
        ):
            await channel.send_str(json.dumps({"open": 1, "path": f"{path}?watch=1&resourceVersion={version}"}))
            await browser.json("POST", path, {"metadata": {"name": "seen"}})
            assert json.loads(await watch.content.readline())["object"]["metadata"]["name"] == "seen"
            assert '"seen"' in await channel.receive_str(timeout=20)


async def test_exec_and_a_service_through_the_api_server(start: Start, token: str) -> None:
    async with Browser(start()) as browser:
        await browser.ask("POST", "/console/sign-in", {"token": token})
        await browser.session()
        address = [{"name": "MY_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        container = {"name": "page", "image": "python:3", "command": ["python3", "-c", PAGE], "env": address}
        pod = {"metadata": {"name": "page", "labels": {"app": "page"}}, "spec": {"containers": [container]}}
        await browser.json("POST", "/k8s/api/v1/namespaces/lab/pods", pod)
        ports = [{"port": 80, "targetPort": 8000}]
        service = {"metadata": {"name": "page"}, "spec": {"selector": {"app": "page"}, "ports": ports}}
        await browser.json("POST", "/k8s/api/v1/namespaces/lab/services", service)

        async def answers() -> Any:
            answer = await browser.visit(await browser.open_app("lab", "service", "page:80"))
            # What the API server says when it does not reach the pod yet is not shown to a person.
            assert answer.headers["content-type"].startswith("text/html")
            return answer if answer.status == 200 else None

        answer = await until("the service to answer", answers)
        assert answer.url.path == "/t9k/services/projects/lab/name/page:80/"
        assert answer.url.host.endswith(".localhost")
        assert await answer.text() == "/  丹炉"
        cookies = {**browser.cookies(str(answer.url)), "theirs": "1"}
        told = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        assert await (await browser.raw("GET", str(answer.url), headers=told)).text() == "/ theirs=1 丹炉"
        path = "/k8s/api/v1/namespaces/lab/pods/page/exec?command=echo&command=hello&stdout=true"
        async with browser.socket(path, protocols=("v5.channel.k8s.io", "v4.channel.k8s.io")) as terminal:
            assert terminal.protocol == "v5.channel.k8s.io"
            said = b""
            while not said:
                message = await terminal.receive_bytes(timeout=20)
                said = message[1:] if message[0] == 1 else b""
            assert said == b"hello\n"


async def test_two_replicas_with_one_key_know_the_same_people(start: Start, token: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("a secret that both of them have\n")
    first = start("--session-key-file", str(key))
    second = start("--session-key-file", str(key), "--url", first)
    stranger = start("--url", first)
    async with Browser(first) as browser:
        await browser.ask("POST", "/console/sign-in", {"token": token})
        browser.console = second
        assert (await browser.session())["user"]["name"] == "system:serviceaccount:lab:sun"
        browser.console = stranger
        assert (await browser.ask("GET", "/console/session"))[0] == 401


async def test_a_session_ends(start: Start, token: str) -> None:
    async with Browser(start("--session-hours", "0.002")) as browser:
        await browser.ask("POST", "/console/sign-in", {"token": token})
        async with browser.socket("/console/watch") as channel:
            path = "/k8s/api/v1/namespaces/lab/configmaps?watch=1&labelSelector=no%3Dne"
            await channel.send_str(json.dumps({"open": 1, "path": path}))
            said = await channel.receive_str(timeout=20)
            assert json.loads(said.removeprefix("1!"))["code"] == 401
        assert (await browser.ask("GET", "/console/session"))[0] == 401


async def test_a_cluster_that_is_gone_is_said_to_be(start: Start, danlu: Danlu, tmp_path: Path, token: str) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(re.sub(r"https://127.0.0.1:\d+", "https://127.0.0.1:1", danlu.kubeconfig.read_text()))
    async with Browser(start(kubeconfig=nowhere)) as browser:
        status, said = await browser.ask("POST", "/console/sign-in", {"token": token})
        assert status == 503
        assert "the cluster at https://127.0.0.1:1 cannot be reached" in said["message"]
        assert (
            await browser.raw("GET", "/readyz")
        ).status == 200  # it serves; what is missing is the cluster's business


async def test_sign_in_with_an_identity_provider(start: Start, token: str) -> None:
    provider = Provider("danlu-console", access_token=token)
    provider.start()
    try:
        oidc = ["--oidc-issuer", provider.issuer, "--oidc-client-id", "danlu-console", "--oidc-token", "access_token"]
        address = start(*oidc)
        async with Browser(address) as browser:
            said = await browser.raw("GET", "/console/session")
            assert (await said.json())["signIn"] == ["token", "oidc"]
            assert await browser.sign_in_with_provider("/build/jobs?a=b") == (200, {"next": "/build/jobs?a=b"})
            assert (await browser.session())["user"]["name"] == "system:serviceaccount:lab:sun"
        async with Browser(address) as other:
            for elsewhere in ("https://evil.example", "//evil.example", "/\\evil.example"):
                assert (await other.sign_in_with_provider(elsewhere))[1] == {"next": "/"}
        async with Browser(address) as third:
            # Begun by one browser, finished by another: somebody would be signed in as somebody else.
            begun = await third.json("POST", "/console/oidc/start", {"next": "/"})
            back = await third.visit(begun["address"])
        async with Browser(address) as victim:
            # Coming back is a page that holds nothing, and sets no cookie.
            assert not (await victim.raw("GET", str(back.url))).headers.getall("set-cookie", [])
            status, said = await victim.ask("POST", "/console/oidc/finish", dict(back.url.query))
            assert (status, "in another browser" in said["message"]) == (400, True)
            assert (await victim.ask("GET", "/console/session"))[0] == 401
            for site in ({"sec-fetch-site": "same-site"}, {"origin": "http://127.0.0.1:1"}):
                assert (await victim.ask("POST", "/console/oidc/start", {"next": "/"}, headers=site))[0] == 403
            for wrong in ({"aud": "another"}, {"iss": "https://evil.example"}, {"exp": 1}, {"sub": None}):
                provider.claims = {"sub": "1"} | wrong
                assert "is not for this sign-in" in (await victim.sign_in_with_provider("/"))[1]["message"], wrong
            provider.claims = {"sub": "1"}
            for signed_as in ("none", "HS256", "stranger"):
                provider.signed_as = signed_as
                assert "is not for this sign-in" in (await victim.sign_in_with_provider("/"))[1]["message"], signed_as
            provider.signed_as = ""
            provider.change_key()
            assert (await victim.sign_in_with_provider("/"))[0] == 200, "providers change their keys"
            provider.nonce = "another"
            assert "is not for this sign-in" in (await victim.sign_in_with_provider("/"))[1]["message"]
            provider.refuses = "<b>not today</b>"
            assert "did not sign you in: <b>not today" in (await victim.sign_in_with_provider("/"))[1]["message"]
    finally:
        provider.stop()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--url", "danlu.example.com"], 2, "is no origin; write for instance https://danlu.example.com"),
        (["--url", "http://a", "--apps-url", "http://a"], 2, "must not be of the console's own origin"),
        (["--oidc-issuer", "https://x"], 2, "--oidc-issuer and --oidc-client-id belong together"),
        (["--session-key-file", "/no/such/file"], 2, "/no/such/file: No such file or directory"),
        (["--kubeconfig", "/no/such/file"], 1, "no kubeconfig at /no/such/file; name a cluster with --kubeconfig FILE"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(danlu: Danlu, words: list[str], code: int, said: str) -> None:
    ports = ["--port", "0", "--apps-port", "0"]
    done = danlu.run(sys.executable, "-m", "danlu", "console", *ports, *words, check=False)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
