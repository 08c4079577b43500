"""An Ingress on `danlu up`: from this machine to pods, and `danlu status` says where."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from tests.running import Danlu

pytestmark = pytest.mark.e2e

SERVER = "mkdir /tmp/site && cd /tmp/site && echo served > index.html && exec python3 -m http.server 8000"


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found


def objects() -> str:
    container = {"name": "web", "image": "python", "command": ["sh", "-c", SERVER], "ports": [{"containerPort": 8000}]}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": "web.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
         "spec": {"containers": [container], "terminationGracePeriodSeconds": 1}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
         "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
         "spec": {"rules": [rule], "tls": [{"hosts": ["web.example.com"]}]}},
    ]  # fmt: skip
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def fetch(url: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(url, headers={"Host": "web.example.com"})
    try:
        with urllib.request.urlopen(asked, context=context if url.startswith("https") else None, timeout=10) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


def test_an_ingress_leads_to_a_pod(make_danlu: Callable[..., Danlu]) -> None:
    plain, secure = free_ports(2)
    danlu = make_danlu("--ingress-port", str(plain), "--ingress-tls-port", str(secure))
    urls = [f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{secure}"]
    assert [fetch(url) for url in urls] == ["", ""]
    danlu.kubectl("apply", "-f", "-", stdin=objects())
    for url in urls:
        danlu.wait(f"an answer at {url}", lambda url=url: fetch(url) == "served\n")  # type: ignore[misc]
    assert json.loads(danlu.command("status", "--json").stdout)["ingress"] == urls
    address = danlu.kubectl("get", "ingress", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
    assert address == "127.0.0.1"
    danlu.kubectl("delete", "ingress", "web")
    danlu.wait("nobody to listen", lambda: fetch(urls[0]) == "")
    # It is written down after the last listener has closed.
    danlu.wait("status to say so", lambda: "ingress" not in json.loads(danlu.command("status", "--json").stdout))
