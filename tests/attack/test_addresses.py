"""A pod of project b takes what belongs to project a: the address of its pod, of its service, the machine's own ports.

Whatever it binds, no byte that was meant for the other may reach it: while a backend is missing, after a port was freed
that the proxies knew, after `kill -9` and a new start, after the pod was deleted and made again; as root, as an
ordinary account, and where the machine has no namespaces at all.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from benchmarks.servers import free_port
from tests.attack.conftest import NewPerson
from tests.console.browsing import Browser
from tests.running import ORDINARY, Api, Danlu

from danlu.client.client import Client
from danlu.meta.wellknown import POD

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
ACCOUNT = ORDINARY if os.geteuid() == 0 else None
PORT, SERVICE_PORT = 8888, 8080
SECRET = "token-of-project-a"

VICTIM = """
    import http.server, os, threading, time

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from a")
            if self.path.startswith("/free"):
                threading.Thread(target=free).start()

    def free():
        server.shutdown()
        server.server_close()
        print("port is free", flush=True)

    server = http.server.ThreadingHTTPServer((os.environ["DANLU_POD_IP"], 8888), Handler)
    print("listens", flush=True)
    server.serve_forever()
    time.sleep(3600)
"""

HOSTILE = """
    import json, os, socket, threading, time

    def say(text):
        os.write(1, (text + chr(10)).encode())  # whole lines, whichever thread

    def hold(host, port, options):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        shown = f"{host}|{port}|{options}"
        for attempt in range(100000):
            listener = socket.socket(family)
            try:
                for option in options.split():
                    listener.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                listener.bind((host, port))
                listener.listen(64)
                break
            except OSError as error:
                listener.close()
                if attempt == 0:
                    say(f"refused {shown} {error.strerror}")
                if attempt % 20 == 0:
                    say(f"tried {shown} {attempt}")
                time.sleep(0.02)
        say(f"bound {shown} as {listener.getsockname()}")
        while True:
            connection, peer = listener.accept()
            threading.Thread(target=hear, args=(shown, connection), daemon=True).start()

    def hear(shown, connection):
        say(f"connected {shown}")
        if data := connection.recv(65536):
            say(f"got {shown} {data!r}")
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nstolen")
        connection.close()

    for target in json.loads(os.environ["TARGETS"]):
        threading.Thread(target=hold, args=target).start()
"""


def pod(name: str, namespace: str, program: str, *, env: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
    command = ["python3", "-u", "-c", textwrap.dedent(program)]
    container = {"name": "main", "image": "python:3.11", "command": command, "env": variables}
    meta = {"name": name, "namespace": namespace, "labels": {"app": name}}
    settled = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**settled, **spec}}


class Scene:
    """Project a with its pod and service, project b with an attacker."""

    def __init__(self, danlu: Danlu) -> None:
        self.danlu = danlu
        for namespace in ("a", "b"):
            danlu.kubectl("create", "namespace", namespace)
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "a"},
            "spec": {"selector": {"app": "victim"}, "ports": [{"port": SERVICE_PORT, "targetPort": PORT}]},
        }
        self.apply(service)
        self.service_ip = json.loads(danlu.kubectl("get", "svc", "web", "-n", "a", "-o", "json"))["spec"]["clusterIP"]
        self.start_victim()

    def apply(self, obj: dict[str, Any]) -> None:
        self.danlu.kubectl("apply", "-f", "-", stdin=json.dumps(obj))

    def logs(self, name: str, namespace: str) -> str:
        return self.danlu.kubectl("logs", name, "-n", namespace, check=False)

    def said(self, name: str, namespace: str, word: str) -> None:
        self.danlu.wait(f"{namespace}/{name} to say {word!r}", lambda: word in self.logs(name, namespace))

    def start_victim(self) -> None:
        self.apply(pod("victim", "a", VICTIM))
        self.said("victim", "a", "listens")
        self.victim_ip = self.address("victim", "a")
        self.danlu.wait("the service to lead to the pod", lambda: "hello from a" in self.through_service_proxy("/"))

    def address(self, name: str, namespace: str) -> str:
        found = json.loads(self.danlu.kubectl("get", "pod", name, "-n", namespace, "-o", "json"))
        return str(found["status"]["podIP"])

    def start_hostile(self, wildcards: bool = True, **spec: Any) -> None:
        """Wants all that is a's, in every way that a socket can be bound to it."""
        addresses = [
            (host, port)
            for ip, port in ((self.victim_ip, PORT), (self.service_ip, SERVICE_PORT))
            for host in (ip, f"::ffff:{ip}", *(("0.0.0.0", "::") if wildcards else ()))
        ]
        options = ("", "SO_REUSEADDR", "SO_REUSEADDR SO_REUSEPORT")
        targets = [(host, port, chosen) for host, port in addresses for chosen in options]
        self.apply(pod("hostile", "b", HOSTILE, env={"TARGETS": json.dumps(targets)}, **spec))
        self.said("hostile", "b", "tried")

    def free_port(self) -> None:
        """The proxies have just used it; the pod stays Ready, so it stays the backend."""
        assert "hello from a" in self.through_service_proxy("/free")
        self.said("victim", "a", "port is free")
        self.wait_for_attempts()

    def wait_for_attempts(self) -> None:
        """Until the attacker has either bound, or been refused anew, whatever it wants."""

        def attempts() -> dict[str, str]:
            lines = [line.split(" ", 1) for line in self.logs("hostile", "b").splitlines()]
            found: dict[str, str] = {}
            for word, rest in lines:
                if word == "tried":
                    shown, _, number = rest.rpartition(" ")
                    found[shown] = number
                elif word == "bound":
                    found[rest.partition(" as ")[0]] = "bound"
            return found

        before = attempts()
        self.danlu.wait(
            "a new attempt at everything",
            lambda: all(state == "bound" or state != before.get(at) for at, state in attempts().items()),
        )

    # -- the ways to a's pod, each with a secret

    def through_service_proxy(self, path: str = f"/?token={SECRET}") -> str:
        return self._raw(f"/api/v1/namespaces/a/services/web:{SERVICE_PORT}/proxy{path}")

    def through_pod_proxy(self) -> str:
        return self._raw(f"/api/v1/namespaces/a/pods/victim:{PORT}/proxy/?token={SECRET}")

    def _raw(self, path: str) -> str:
        return str(Api(self.danlu.kubeconfig).request("GET", path)[1])

    def through_cluster_ip(self) -> str:
        connection = http.client.HTTPConnection(self.service_ip, SERVICE_PORT, timeout=10)
        try:
            connection.request("GET", f"/?token={SECRET}")
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            return f"no answer: {error}"
        finally:
            connection.close()

    def through_port_forward(self) -> str:
        words = ["kubectl", "port-forward", "-n", "a", "pod/victim", f":{PORT}"]
        running = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.danlu.environment
        )
        try:
            assert running.stdout is not None
            local = int(running.stdout.readline().split(":")[1].split(" ")[0])
            connection = http.client.HTTPConnection("127.0.0.1", local, timeout=10)
            connection.request("GET", f"/?token={SECRET}")
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            return f"no answer: {error}"
        finally:
            running.terminate()
            running.wait()

    def through_console(self) -> str:
        link = next(
            line.split()[1] for line in self.danlu.command("status").stdout.splitlines() if line.startswith("console ")
        )
        return asyncio.run(_open_in_console(link))

    def send_secrets(self) -> list[str]:
        return [
            self.through_service_proxy(),
            self.through_pod_proxy(),
            self.through_port_forward(),
            self.through_console(),
        ]

    # -- what came of it

    def stolen(self) -> list[str]:
        return [line for line in self.logs("hostile", "b").splitlines() if line.startswith("got ")]

    def bound(self) -> set[str]:
        lines = self.logs("hostile", "b").splitlines()
        return {line.split(" ", 1)[1].partition(" as ")[0] for line in lines if line.startswith("bound ")}

    def events(self, kind: str, name: str, namespace: str = "a") -> str:
        selector = f"involvedObject.kind={kind},involvedObject.name={name}"
        return self.danlu.kubectl("get", "events", "-n", namespace, "--field-selector", selector)

    def check_prevention(self) -> None:
        """Of all that it wanted it has got its own address only."""
        lines = [line for line in self.logs("hostile", "b").splitlines() if line.startswith("bound ")]
        own = self.address("hostile", "b")
        assert lines
        for line in lines:
            asked, _, got = line.removeprefix("bound ").partition(" as ")
            assert asked.startswith(("0.0.0.0|", "::|"))
            assert own in got
        refused = f"address {self.victim_ip} with port {PORT} is not this pod's"
        self.danlu.wait("the event", lambda: refused in self.events("Pod", "hostile", "b"))


async def _open_in_console(link: str) -> str:
    async with Browser(link.partition("/?")[0]) as browser:
        await browser.sign_in(link)
        url = await browser.open_app("a", "service", f"web:{SERVICE_PORT}")
        answer = await browser.visit(url)
        return await answer.text()


MODES = {
    "root": ({}, None),
    "ordinary": ({}, ACCOUNT),
    "degraded": ({"DANLU_SANDBOX": "none"}, None),
    "degraded-ordinary": ({"DANLU_SANDBOX": "none"}, ACCOUNT),
}


@pytest.fixture(scope="module", params=list(MODES) if os.geteuid() == 0 else ["ordinary", "degraded-ordinary"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(mode: str, make_danlu: Callable[..., Danlu]) -> Iterator[Scene]:
    variables, user = MODES[mode]
    danlu = make_danlu(user=user, variables=variables)
    yield Scene(danlu)
    danlu.command("down", check=False)


def test_a_port_that_was_freed(scene: Scene, mode: str) -> None:
    """The proxies know the pod's socket when it goes, and the attacker's takes its place."""
    assert all("hello from a" in answer for answer in [*scene.send_secrets(), scene.through_cluster_ip()])
    scene.start_hostile()
    scene.free_port()
    answers = [*scene.send_secrets(), scene.through_cluster_ip()]
    assert scene.stolen() == []
    assert not any("hello" in answer for answer in answers)
    if not mode.startswith("degraded"):
        scene.check_prevention()
    elif f"{scene.victim_ip}|{PORT}|" in scene.bound():
        told = scene.danlu.wait("the event", lambda: scene.events("Pod", "victim"))
        assert "AddressTaken" in str(told)
        assert f"port {PORT} of {scene.victim_ip} is held by process" in str(told)
        assert "of pod b/hostile, not by this pod: nothing was sent to it" in str(told)


def test_while_the_server_is_down(scene: Scene, mode: str) -> None:
    """Services are not listened on then. What the attacker holds at the next start is not taken for the pod's."""
    # Where pods do not have their own ports, who has one of all addresses keeps it from the pod that is made again.
    scene.start_hostile(wildcards=not mode.startswith("degraded"))
    scene.free_port()
    # Somebody with all rights in b says that their pod has the other's address, which the next start must not believe.
    claim = {"status": {"podIP": scene.victim_ip, "podIPs": [{"ip": scene.victim_ip}]}}
    scene.danlu.kubectl("patch", "pod", "hostile", "-n", "b", "--subresource=status", "-p", json.dumps(claim))
    scene.danlu.kill()
    if mode.startswith("degraded"):
        wait_until_held(scene.service_ip, SERVICE_PORT)
    else:
        time.sleep(1.0)  # the attacker tries fifty times meanwhile
        assert "no answer" in scene.through_cluster_ip()  # a client of a's, straight to the address
    scene.danlu.up()
    if mode.startswith("degraded"):
        words = f"{scene.service_ip}:{SERVICE_PORT} of service a/web is held by process"
        scene.danlu.wait("danlu status to say it", lambda: words in scene.danlu.command("status").stdout)
        # A start names the process, and the pod when the node has found its pods again.
        named = "of pod b/hostile has that port"
        scene.danlu.wait("the event", lambda: named in scene.events("Service", "web"))
    assert scene.address("victim", "a") == scene.victim_ip
    assert scene.address("hostile", "b") != scene.victim_ip
    scene.wait_for_attempts()
    answers = scene.send_secrets()
    assert scene.stolen() == []
    assert not any("hello" in answer for answer in answers)
    # The pod is made again: it has another address, and is found there although its old one is held.
    scene.danlu.kubectl("delete", "pod", "victim", "-n", "a")
    scene.start_victim()
    assert all("hello from a" in answer for answer in scene.send_secrets())
    assert scene.stolen() == []


def wait_until_held(host: str, port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((host, port)) == 0:
                return
        threading.Event().wait(0.1)
    raise AssertionError(f"nobody takes {host}:{port}")


RESERVED = """
    import errno, json, os, socket, time

    while True:
        found = []
        for host, port in json.loads(os.environ["TARGETS"]):
            listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, port))
                listener.listen()
                found.append(f"bound:{host}:{port}")
            except OSError as error:
                found.append(errno.errorcode[error.errno])
            listener.close()
        print("round", *found, flush=True)
        time.sleep(0.2)
"""


@pytest.mark.parametrize("account", [None, ACCOUNT] if ACCOUNT else [None])
def test_ports_of_the_api_and_the_console_while_the_server_is_down(
    make_danlu: Callable[..., Danlu], account: int | None
) -> None:
    """Whoever had them would be shown the console's cookie, which browsers send to whatever answers."""
    # A port that no other test's server takes while this one is down: it would come back with another.
    danlu = make_danlu("--console-port", str(free_port()), user=account)
    lines = [line.split() for line in danlu.command("status").stdout.splitlines()]
    places = {words[0]: urlsplit(words[1]) for words in lines if words and words[0] in ("url", "console")}
    console = places["console"].port
    assert console
    kept = [places["url"].port, console, json.loads((danlu.data / "console.json").read_text())["appsPort"], 30000]
    targets = [(host, port) for port in kept for host in ("127.0.0.1", "::ffff:127.0.0.1")]
    targets.append(("::1", console))
    made = pod("p", "default", RESERVED, env={"TARGETS": json.dumps(targets)})
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    danlu.wait("the pod to try", lambda: "round" in danlu.kubectl("logs", "p", check=False))
    before = danlu.kubectl("logs", "p").count("round")
    danlu.kill()
    time.sleep(2.0)
    danlu.up()
    rounds = danlu.kubectl("logs", "p").splitlines()
    assert len(rounds) > before + 5
    assert {outcome for line in rounds for outcome in line.split()[1:]} == {"EADDRINUSE"}


async def test_names_of_others_through_a_pods_status(new_person: NewPerson, client: Client) -> None:
    """A pod's address is written into the hosts files of all pods: a line break in it would be another line there."""
    mallory = await new_person(namespace="b")
    made = pod("p", "b", "", hostname="h", subdomain="s")
    await client.create(POD, made)
    evil = "127.0.0.1 x\n127.0.0.1 web.a.svc"
    for field in ({"podIP": evil}, {"podIPs": [{"ip": evil}]}):
        status, answer = await mallory.request(
            "PATCH", "/api/v1/namespaces/b/pods/p/status", {"status": field}, "application/merge-patch+json"
        )
        assert status == 422
        assert "status.podIPs[0]: Invalid value" in answer["message"]
