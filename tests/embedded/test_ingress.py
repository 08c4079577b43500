"""Ingresses: which service answers for a host and path, and requests on their way there, with TLS and without."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from danlu.embedded.apiserver.auth.certificateauthority import KeyPair
from danlu.embedded.cluster import Cluster
from danlu.embedded.ingress import controller
from danlu.embedded.ingress.routes import RouteBackend, routes
from danlu.embedded.settings import IngressSettings
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT, INGRESS, INGRESS_CLASS, SECRET, SERVICE
from danlu.runtime import Manager

TIMEOUT_S = 20.0


def to(service: str, port: int | str = 80) -> Object:
    named = {"name": port} if isinstance(port, str) else {"number": port}
    return {"service": {"name": service, "port": named}}


def path(text: str, service: str, sort: str = "Prefix") -> Object:
    return {"path": text, "pathType": sort, "backend": to(service)}


def ingress(name: str, *rules: tuple[str, list[Object]], created: str = "2030-01-01T00:00:00Z", **spec: Any) -> Object:
    made = [{"host": host, "http": {"paths": paths}} if host else {"http": {"paths": paths}} for host, paths in rules]
    meta = {"name": name, "namespace": "default", "creationTimestamp": created}
    return {"metadata": meta, "spec": {**({"rules": made} if made else {}), **spec}}


class TestRoutes:
    def found(self, made: list[Object], host: str, text: str) -> str | None:
        backend = routes(made).find(host, text)
        return backend.service if backend is not None else None

    @pytest.mark.parametrize(
        ("text", "service"),
        [
            ("/", "root"),
            ("/elsewhere", "root"),
            ("/api", "exact"),
            ("/api/", "prefix"),
            ("/api/v1", "prefix"),
            ("/apis", "root"),
            ("/api/v2/x", "deep"),
            ("/api/v2x", "prefix"),
        ],
    )
    def test_the_longest_path_and_an_exact_one_first(self, text: str, service: str) -> None:
        paths = [
            path("/", "root"),
            path("/api", "prefix"),
            path("/api", "exact", "Exact"),
            path("/api/v2/", "deep", "ImplementationSpecific"),
        ]
        assert self.found([ingress("x", ("a.com", paths))], "a.com", text) == service

    def test_the_most_particular_host(self) -> None:
        rules = [(host, [path("/only", host or "any")]) for host in ("a.b.com", "*.b.com", "")]
        made = [ingress("x", *rules, defaultBackend=to("default"))]
        assert self.found(made, "a.b.com", "/only") == "a.b.com"
        assert self.found(made, "c.b.com", "/only") == "*.b.com"
        assert self.found(made, "d.c.b.com", "/only") == "any"  # a wildcard stands for one label
        assert self.found(made, "a.b.com", "/other") == "default"
        assert self.found([ingress("x", rules[0])], "a.b.com", "/other") is None

    def test_the_older_ingress_has_it(self) -> None:
        old = ingress("z", ("", [path("/", "old")]), created="2029-01-01T00:00:00Z")
        assert self.found([ingress("a", ("", [path("/", "new")])), old], "x", "/") == "old"

    def test_a_port_by_its_name(self) -> None:
        made = routes([ingress("x", defaultBackend=to("web", "http"))])
        assert made.find("x", "/") == RouteBackend("default", "web", "http")

    def test_secrets_by_host(self) -> None:
        made = routes([ingress("x", tls=[{"hosts": ["a.com", "*.b.com"], "secretName": "s"}])])
        assert made.secret("a.com") == made.secret("x.b.com") == ("default", "s")
        assert made.secret("c.com") is None


# -- on an API server


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def certificate(name: str, folder: Path) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pair = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
    pair.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, plain))
    return pair


@dataclass
class Site:
    cluster: Cluster
    settings: IngressSettings
    folder: Path
    told: list[list[str]]
    asked: list[tuple[str, str, int]]

    async def create(self, obj: Object) -> Object:
        obj["metadata"].pop("creationTimestamp", None)
        return await self.cluster.client.create(INGRESS, obj)

    async def get(self, text: str, host: str, **headers: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.settings.http_port}{text}"
        async with aiohttp.request("GET", url, headers={"Host": host, **headers}) as answer:
            return answer.status, await answer.text()

    async def until(self, look: Callable[[], Any]) -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                if found := await look():
                    return found
                await asyncio.sleep(0.02)

    async def points(self, name: str) -> list[Object]:
        found = await self.cluster.client.get(INGRESS, name, "default")
        points: list[Object] = found["status"]["loadBalancer"].get("ingress") or []
        return points


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A pod that repeats what it was asked."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(head), head))
    await writer.drain()
    writer.close()


@pytest.fixture
async def site(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Site]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    pod = server.sockets[0].getsockname()
    settings = IngressSettings(http_port=free_port(), https_port=free_port())
    site = Site(cluster, settings, tmp_path, [], [])

    async def connect(namespace: str, service: str, port: int) -> socket.socket:
        site.asked.append((namespace, service, port))
        if service != "web":
            raise ConnectionRefusedError
        made = socket.socket()
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, pod)
        return made

    ports = [{"name": "http", "port": 80}, {"name": "other", "port": 8000}]
    for name in ("web", "dead"):
        made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": ports}}
        await cluster.client.create(SERVICE, made)
    manager = Manager(cluster.component("system:kube-controller-manager"))
    services = controller.IngressServices(settings, connect, certificate("fallback", tmp_path), site.told.append)
    ingresses = controller.make(manager, services)
    await manager.start()
    yield site
    await manager.stop()
    await ingresses.stop()
    server.close()


async def refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:  # a listener that is just closing resets
        return True
    writer.close()
    return False


async def test_nothing_listens_but_while_there_is_an_ingress(site: Site) -> None:
    assert await refused(site.settings.http_port)
    made = await site.create(ingress("x", ("a.com", [path("/", "web")])))
    assert made["spec"]["ingressClassName"] == "danlu"
    (point,) = await site.until(lambda: site.points("x"))
    assert point == {"ip": "127.0.0.1", "ports": [{"port": site.settings.http_port, "protocol": "TCP"}]}
    assert site.told[-1] == [f"http://127.0.0.1:{site.settings.http_port}"]
    assert await refused(site.settings.https_port)
    await site.cluster.client.delete(INGRESS, "x", "default")
    await site.until(lambda: refused(site.settings.http_port))

    async def told() -> bool:
        return site.told[-1] == []

    await site.until(told)


async def test_a_request_reaches_the_service(site: Site) -> None:
    rules = [path("/", "web"), path("/dead", "dead"), {**path("/named", "web"), "backend": to("web", "other")}]
    await site.create(ingress("x", ("a.com", [*rules, {**path("/none", "web"), "backend": to("web", 99)}])))
    await site.until(lambda: site.points("x"))
    status, text = await site.get("/some%2Fpath?q=1", "a.com:8180", **{"X-Forwarded-For": "6.6.6.6", "Own": "kept"})
    head = text.lower()
    assert status == 200
    assert text.startswith("GET /some%2Fpath?q=1 HTTP/1.1")
    assert "host: a.com:8180" in head
    assert "own: kept" in head
    assert "x-forwarded-for: 127.0.0.1" in head
    assert "6.6.6.6" not in head
    assert "x-forwarded-proto: http\r" in head
    assert (await site.get("/named", "A.com"))[0] == 200
    assert site.asked[-1] == ("default", "web", 8000)
    assert (await site.get("/", "b.com"))[0] == 404
    assert (await site.get("/dead", "a.com"))[0] == 503
    assert (await site.get("/none", "a.com"))[0] == 503


async def test_tls_with_the_certificate_of_the_host(site: Site) -> None:
    pair = certificate("a.com", site.folder)
    files = (("tls.crt", pair.certificate), ("tls.key", pair.key))
    data = {name: base64.b64encode(file.read_bytes()).decode() for name, file in files}
    secret = {"metadata": {"name": "s", "namespace": "default"}, "type": "kubernetes.io/tls", "data": data}
    await site.cluster.client.create(SECRET, secret)
    tls = [{"hosts": ["a.com"], "secretName": "s"}]
    await site.create(ingress("x", ("a.com", [path("/", "web")]), ("b.com", [path("/", "web")]), tls=tls))
    await site.until(lambda: site.points("x"))
    assert [port["port"] for port in (await site.points("x"))[0]["ports"]] == [
        site.settings.http_port,
        site.settings.https_port,
    ]

    async def named(host: str) -> str:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        port = site.settings.https_port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
        shown = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(True))
        writer.write(b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host.encode())
        said = (await reader.read()).decode().lower()
        assert "x-forwarded-proto: https" in said
        writer.close()
        return str(shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    async def own() -> bool:
        return await named("a.com") == "a.com"

    await site.until(own)
    assert await named("b.com") == "fallback"


async def test_an_ingress_of_another_class_is_left_alone(site: Site) -> None:
    other = {"metadata": {"name": "other"}, "spec": {"controller": "example.com/other"}}
    await site.cluster.client.create(INGRESS_CLASS, other)
    made = ingress("theirs", ("a.com", [path("/", "web")]), ingressClassName="other")
    await site.create(made)
    await site.create(ingress("ours", ("b.com", [path("/", "web")])))
    await site.until(lambda: site.points("ours"))
    assert await site.points("theirs") == []
    assert (await site.get("/", "a.com"))[0] == 404


async def test_a_port_that_is_taken_is_told_and_tried_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "RETRY_S", 0.05)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", site.settings.http_port))
        taken.listen()
        await site.create(ingress("x", ("a.com", [path("/", "web")])))

        async def events() -> list[str]:
            found = await site.cluster.client.list(EVENT, "default", fields="involvedObject.name=x")
            return [event["message"] for event in found.items if event["reason"] == "FailedToListen"]

        (said,) = await site.until(events)
        assert "another program listens there" in said
        assert await site.points("x") == []
    await site.until(lambda: site.points("x"))
