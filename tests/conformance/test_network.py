"""Services by name and address, headless services, names of pods, endpoints that follow readiness."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.servers import free_port
from tests.conformance.conftest import Kube

Make = Callable[..., dict[str, Any]]

IP = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
SERVE = "cd /tmp; hostname > index.html; exec python3 -m http.server $PORT --bind $IP"
FETCH = (
    "import sys, urllib.request as u; "
    "[sys.stdout.write(u.urlopen(a, timeout=10).read().decode()) for a in sys.argv[1:]]"
)


def service(name: str, app: str, port: int, target: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"port": port, "targetPort": target}], **spec},
    }  # fmt: skip


def server(pod: Make, name: str, port: int, **spec: Any) -> dict[str, Any]:
    ready = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    env = [IP, {"name": "PORT", "value": str(port)}]
    return pod(name, SERVE, image="python:3.12-slim", env=env, readinessProbe=ready, spec=spec)


def addresses(kube: Kube, name: str) -> list[str]:
    return kube.value(f"endpoints/{name}", "{.subsets[*].addresses[*].ip}").split()


@pytest.mark.node
def test_services_are_reached_by_name_and_address(kube: Kube, pod: Make) -> None:
    port = free_port()
    kube.apply(service("web", "web", 80, port), server(pod, "web", port))
    kube.running("web")
    address = kube.value("service/web", "{.spec.clusterIP}")
    kube.wait("the endpoint", lambda: addresses(kube, "web"))
    urls = ["http://web/", "http://web:80/", f"http://web.{kube.namespace}/", f"http://web.{kube.namespace}.svc/",
            f"http://web.{kube.namespace}.svc.cluster.local/", f"http://{address}/"]  # fmt: skip
    script = f'python3 -c "{FETCH}" {" ".join(urls)}; echo $WEB_SERVICE_HOST:$WEB_SERVICE_PORT'
    kube.apply(pod("client", script, image="python:3.12-slim"))
    assert kube.output("client").splitlines() == ["web"] * len(urls) + [f"{address}:80"]


@pytest.mark.node
def test_names_of_pods(kube: Kube, pod: Make) -> None:
    port = free_port()
    kube.apply(
        service(
            "peers", "none", port, port, clusterIP="None", selector={"group": "peers"}, publishNotReadyAddresses=True
        )
    )
    for name in ("one", "two"):
        made = server(pod, name, port, hostname=name, subdomain="peers")
        made["metadata"]["labels"]["group"] = "peers"
        kube.apply(made)
    kube.running("one", "two")
    urls = [f"http://one.peers:{port}/", f"http://two.peers.{kube.namespace}.svc.cluster.local:{port}/"]
    find = "import socket; print(sorted({a[4][0] for a in socket.getaddrinfo('peers', 1)}))"
    kube.apply(pod("client", f'python3 -c "{FETCH}" {" ".join(urls)}; python3 -c "{find}"', image="python:3.12-slim"))
    said = kube.output("client").splitlines()
    assert said[:2] == ["one", "two"]
    known = sorted(kube.value(f"pod/{name}", "{.status.podIP}") for name in ("one", "two"))
    assert said[2] == str(known)


DNS_CLIENT = r"""
import random, socket, struct, sys

server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))

def labels(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"

def ask(name, kind, tcp):
    number = random.randrange(65536)
    question = struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + labels(name) + struct.pack("!2H", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect((server, 53))
        client.sendall(struct.pack("!H", len(question)) + question if tcp else question)
        answer = client.recv(65536)[2 if tcp else 0:]
    assert answer[:2] == question[:2]
    flags, _, answers = struct.unpack_from("!3H", answer, 2)
    return f"{flags & 15}:{answers}", answer

for word in sys.argv[1:]:
    name, kind, wanted = word.split("=")
    for tcp in (False, True):
        code, answer = ask(name, int(kind), tcp)
        found = not wanted or (socket.inet_aton(wanted) if wanted[0].isdigit() else labels(wanted)[:-15]) in answer
        print(name, kind, code, found)
"""


@pytest.mark.node
def test_names_are_asked_of_a_server(kube: Kube, pod: Make) -> None:
    """What /etc/hosts cannot say, by UDP and TCP: SRV, PTR, no such name against none of this type."""
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    kube.apply(service("web", "web", 0, 0, ports=ports), service("group", "one", 0, 0, ports=ports, clusterIP="None"))
    kube("create", "service", "externalname", "alias", f"--external-name=web.{kube.namespace}.svc.cluster.local")
    kube.apply(pod("one", spec={"hostname": "one", "subdomain": "group"}))
    kube.running("one")
    kube.wait("the endpoint", lambda: addresses(kube, "group"))
    zone = f"{kube.namespace}.svc.cluster.local"
    web, one = kube.value("service/web", "{.spec.clusterIP}"), kube.value("pod/one", "{.status.podIP}")
    reverse = ".".join(reversed(web.split("."))) + ".in-addr.arpa"
    wanted = {
        f"web.{zone}=1={web}": "0:1 True",
        f"web.{zone}=28=": "0:0 True",
        f"no.{zone}=1=": "3:0 True",
        f"group.{zone}=1={one}": "0:1 True",
        f"one.group.{zone}=1={one}": "0:1 True",
        f"_http._tcp.web.{zone}=33=web.{zone}": "0:1 True",
        f"_http._tcp.group.{zone}=33=one.group.{zone}": "0:1 True",
        f"{reverse}=12=web.{zone}": "0:1 True",
        f"alias.{zone}=1={web}": "0:2 True",
    }
    kube.apply(pod("asks", env=[{"name": "PROGRAM", "value": DNS_CLIENT}], image="python:3.12-slim",
                   script=f'python3 -c "$PROGRAM" {" ".join(wanted)}'))  # fmt: skip
    expected = [
        f"{word.rpartition('=')[0].replace('=', ' ')} {said}" for word, said in wanted.items() for _ in range(2)
    ]
    assert kube.output("asks").splitlines() == expected
    kube.apply(pod("reads", "cat /etc/resolv.conf"))
    lines = kube.output("reads").splitlines()
    assert lines[0].startswith(f"search {zone} svc.cluster.local cluster.local")
    assert "options ndots:5" in lines
    assert len([line for line in lines if line.startswith("nameserver ")]) == 1


@pytest.mark.node
def test_a_pod_knows_its_whole_name(kube: Kube, pod: Make) -> None:
    kube.apply(service("group", "one", 80, 80, clusterIP="None"))
    kube.apply(pod("one", "hostname; hostname -f", spec={"subdomain": "group"}))
    assert kube.output("one").splitlines() == ["one", f"one.group.{kube.namespace}.svc.cluster.local"]


@pytest.mark.node
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.1"])
def test_two_pods_have_one_port(kube: Kube, pod: Make, host: str) -> None:
    """Each has its own server there, and no probe of one is answered by the other."""
    port = free_port()
    ready = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    here = "[::1]" if ":" in host else "127.0.0.1"
    serve = f"cd /tmp; hostname > index.html; exec python3 -m http.server {port} --bind {host}"
    for name in ("one", "two"):
        kube.apply(
            pod(name, serve, image="python:3.12-slim", **({"readinessProbe": ready} if host == "0.0.0.0" else {}))
        )
    kube.apply(pod("idle", "sleep 3600", readinessProbe=ready))
    kube.running("one", "two")
    fetch = f"import urllib.request as u; print(u.urlopen('http://{here}:{port}/', timeout=5).read().decode().strip())"
    for name in ("one", "two"):
        asked = ("exec", name, "--", "python3", "-c", fetch)
        assert kube.wait(f"the server of {name}", functools.partial(_printed, kube, asked)) == f"{name}\n"
    assert kube.value("pod/two", "{.status.containerStatuses[0].restartCount}") == "0"
    assert kube.value("pod/idle", '{.status.conditions[?(@.type=="Ready")].status}') == "False"


def _printed(kube: Kube, words: tuple[str, ...]) -> str:
    return kube.run(*words, check=False).stdout


@pytest.mark.node
def test_endpoints_follow_readiness(kube: Kube, pod: Make) -> None:
    ready = {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1}
    kube.apply(service("s", "s", 80, 8080), pod("s", "sleep 600", readinessProbe=ready))
    kube.until("pod/s", "{.status.phase}", "Running")
    address = kube.value("pod/s", "{.status.podIP}")
    kube.wait("the address", lambda: kube.value("endpoints/s", "{.subsets[*].notReadyAddresses[*].ip}") == address)
    slices = ("endpointslice", "-l", "kubernetes.io/service-name=s")
    assert kube.get(*slices)["items"][0]["endpoints"][0]["conditions"]["ready"] is False
    kube("exec", "s", "--", "touch", "/tmp/ready")
    kube.wait("the address to be ready", lambda: addresses(kube, "s") == [address])
    one = kube.get(*slices)["items"][0]
    assert one["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert one["endpoints"][0]["targetRef"]["name"] == "s"
    assert one["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    kube("delete", "pod", "s")
    kube.wait("the address to go", lambda: not addresses(kube, "s"))


def test_services_have_addresses_and_rules(kube: Kube) -> None:
    kube("create", "service", "clusterip", "a", "--tcp=80:8080")
    kube("create", "service", "nodeport", "b", "--tcp=80:8080")
    kube("create", "service", "externalname", "c", "--external-name=example.com")
    kube("create", "service", "clusterip", "d", "--clusterip=None")
    kube("create", "service", "loadbalancer", "e", "--tcp=80:8080")
    a, b = kube.get("service", "a"), kube.get("service", "b")
    assert a["spec"]["clusterIP"] == a["spec"]["clusterIPs"][0]
    assert a["spec"]["selector"] == {"app": "a"}
    assert 30000 <= b["spec"]["ports"][0]["nodePort"] <= 32767
    assert "clusterIP" not in kube.get("service", "c")["spec"]
    assert kube.get("service", "d")["spec"]["clusterIP"] == "None"
    rows = {line.split()[0]: line.split()[1:4] for line in kube("get", "services", "--no-headers").splitlines()}
    assert rows["c"] == ["ExternalName", "<none>", "example.com"]
    assert rows["e"][2] == "<pending>"
    problem = kube.fails("patch", "service", "a", "-p", '{"spec":{"clusterIP":"10.96.77.77"}}')
    assert "spec.clusterIPs[0]: Invalid value" in problem
    assert "may not change once set" in problem
    taken = service("f", "f", 80, 80, clusterIP=b["spec"]["clusterIP"])
    assert "provided IP is already allocated" in kube.fails("create", "-f", "-", stdin=taken)
