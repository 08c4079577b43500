"""A pod of project b wants the datagrams that are sent to a service of project a, in every way that UDP can be bound.

A pod may not bind another's address, and 0.0.0.0 is its own. Where ports are shared, 0.0.0.0 is the whole machine (as
differences.md says), so what a service carries is verified: the pod that is meant receives it, or nobody does.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator

import pytest
from tests.attack.test_addresses import ACCOUNT, MODES, PORT, SECRET, SERVICE_PORT, pod
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

VICTIM = """
    import os, socket, time

    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind((os.environ["DANLU_POD_IP"], PORT))
    print("listens", flush=True)
    while True:
        data, client = own.recvfrom(65536)
        own.sendto(b"hello from a", client)
        if data == b"free":
            break
    own.close()
    print("port is free", flush=True)
    time.sleep(3600)
""".replace("PORT", str(PORT))

HOSTILE = """
    import json, os, socket, threading, time

    def say(text):
        os.write(1, (text + chr(10)).encode())  # whole lines, whichever thread

    def hold(host, port, options):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        shown = f"{host}|{port}|{options}"
        for attempt in range(100000):
            own = socket.socket(family, socket.SOCK_DGRAM)
            try:
                for option in options.split():
                    own.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
                if family == socket.AF_INET6:
                    own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                own.bind((host, port))
                break
            except OSError as error:
                own.close()
                if attempt % 20 == 0:
                    say(f"tried {shown} {error.strerror}")
                time.sleep(0.02)
        say(f"bound {shown}")
        while True:
            data, client = own.recvfrom(65536)
            say(f"got {shown} {data!r}")
            own.sendto(b"stolen", client)

    for target in json.loads(os.environ["TARGETS"]):
        threading.Thread(target=hold, args=target).start()
"""
OPTIONS = ("", "SO_REUSEADDR", "SO_REUSEADDR SO_REUSEPORT")


class Scene:
    def __init__(self, danlu: Danlu) -> None:
        self.danlu = danlu
        for namespace in ("a", "b"):
            danlu.kubectl("create", "namespace", namespace)
        port = {"port": SERVICE_PORT, "targetPort": PORT, "protocol": "UDP"}
        service = {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "names", "namespace": "a"},
            "spec": {"selector": {"app": "victim"}, "ports": [port]},
        }  # fmt: skip
        danlu.kubectl("apply", "-f", "-", stdin=json.dumps(service))
        self.service_ip = danlu.kubectl("get", "svc", "names", "-n", "a", "-o", "jsonpath={.spec.clusterIP}")
        self.start("victim", "a", VICTIM, "listens")
        self.victim_ip = danlu.kubectl("get", "pod", "victim", "-n", "a", "-o", "jsonpath={.status.podIP}")
        danlu.wait("the service to lead to the pod", lambda: self.send(b"first") == b"hello from a")

    def start(self, name: str, namespace: str, program: str, word: str, **env: str) -> None:
        made = pod(name, namespace, program, env=env)
        self.danlu.kubectl("apply", "-f", "-", stdin=json.dumps(made))
        self.danlu.wait(f"{name} to say {word!r}", lambda: word in self.logs(name, namespace))

    def logs(self, name: str, namespace: str) -> str:
        return self.danlu.kubectl("logs", name, "-n", namespace, check=False)

    def send(self, data: bytes = SECRET.encode()) -> bytes:
        """What the service answers; b"" when nothing does."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(2)
            client.connect((self.service_ip, SERVICE_PORT))
            try:
                client.send(data)
                return client.recv(65536)
            except OSError:
                return b""

    def hostile_lines(self, word: str) -> list[str]:
        lines = self.logs("hostile", "b").splitlines()
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]


@pytest.fixture(params=list(MODES) if os.geteuid() == 0 else ["ordinary", "degraded-ordinary"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(mode: str, make_danlu: Callable[..., Danlu]) -> Iterator[Scene]:
    variables, user = MODES[mode]
    assert user == ACCOUNT or user is None
    danlu = make_danlu("--no-console", user=user, variables=variables)
    yield Scene(danlu)
    danlu.command("down", check=False)


def test_datagrams_to_a_service_reach_its_pod_or_nobody(scene: Scene, mode: str) -> None:
    # The service's own address first, then the pod's; all addresses of the machine last, where those were refused.
    hosts = [(scene.service_ip, SERVICE_PORT), (scene.victim_ip, PORT)]
    named = [(host, port) for ip, port in hosts for host in (ip, f"::ffff:{ip}")]
    everywhere = [(host, PORT) for host in ("0.0.0.0", "::")]
    targets = [(*at, options) for at in (*named, *everywhere) for options in OPTIONS]
    scene.start("hostile", "b", HOSTILE, "tried", TARGETS=json.dumps(targets))
    assert scene.send() == b"hello from a"
    assert scene.send(b"free") == b"hello from a"
    scene.danlu.wait("the port to be free", lambda: "port is free" in scene.logs("victim", "a"))
    scene.danlu.wait("somebody else to have it", lambda: f"|{PORT}|" in "".join(scene.hostile_lines("bound")))
    assert [scene.send() for _ in range(3)] == [b"", b"", b""]
    assert scene.hostile_lines("got") == []
    if not mode.startswith("degraded"):
        bound = {line.split("|")[0] for line in scene.hostile_lines("bound")}
        assert bound <= {"0.0.0.0", "::"}
        return  # those are its own address: nothing of the victim's is held
    selector = "involvedObject.kind=Pod,involvedObject.name=victim,reason=AddressTaken"
    told = scene.danlu.wait(
        "the event", lambda: scene.danlu.kubectl("get", "events", "-n", "a", "--field-selector", selector)
    )
    assert f"port {PORT} of {scene.victim_ip} is held by process" in str(told)
    assert "of pod b/hostile, not by this pod: nothing was sent to it" in str(told)
