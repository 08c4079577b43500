"""Services by name and address, headless services, names of pods, endpoints that follow readiness."""

from __future__ import annotations

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
