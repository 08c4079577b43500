# ruff: noqa: ASYNC110, ASYNC240
from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from danlu.client.informer import Informer
from danlu.embedded.node.network import hosts, services
from danlu.embedded.node.network.forwarder import Destination, Rotation, TcpForwarder
from danlu.embedded.node.network.hosts import Hosts
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.network.services import ServiceProxy
from danlu.embedded.node.network.servicetable import ServiceTable
from danlu.meta.kind import Object
from danlu.meta.wellknown import ENDPOINT_SLICE, POD, SERVICE


class Events:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def warning(self, _about: Object, reason: str, message: str) -> None:
        self.seen.append(f"{reason}: {message}")


class World:
    """Informers that are fed by hand."""

    def __init__(self) -> None:
        self.informers = {kind.plural: Informer(None, kind) for kind in (SERVICE, ENDPOINT_SLICE, POD)}  # type: ignore[arg-type]
        self.version = 0
        for informer in self.informers.values():
            informer.replace([], "0")
        self.table = ServiceTable(None, self.informers["services"], self.informers["endpointslices"])  # type: ignore[arg-type]

    def put(self, plural: str, name: str, namespace: str = "ns", **fields: Any) -> Object:
        self.version += 1
        labels = fields.pop("labels", {})
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "resourceVersion": str(self.version),
            "labels": labels,
        }
        made: Object = {"metadata": meta, **fields}
        self.informers[plural]._put(made)
        return made

    def remove(self, plural: str, name: str, namespace: str = "ns") -> None:
        found = self.informers[plural].get(namespace, name)
        assert found is not None
        self.informers[plural]._remove(found)

    def service(
        self, name: str, ip: str, port: int, *backends: tuple[str, int], namespace: str = "ns", pods: bool = False
    ) -> None:
        self.put("services", name, namespace, spec={"clusterIP": ip, "ports": [{"port": port, "name": "main"}]})
        for address, number in backends:
            target = {"targetRef": {"kind": "Pod", "uid": f"uid-of-{address}"}} if pods else {}
            self.put(
                "endpointslices",
                f"{name}-{address}-{number}",
                namespace,
                labels={"kubernetes.io/service-name": name},
                ports=[{"name": "main", "port": number}],
                endpoints=[{"addresses": [address], "conditions": {"ready": True}, **target}],
            )


def sockets() -> PodSockets:
    """Of a machine without pods: backends are servers of this process."""
    return PodSockets.of(Path("/nowhere"), "127.64.0.0/11")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def named_server(name: bytes) -> tuple[asyncio.Server, int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read()
        writer.write(name + b":" + data)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, int(server.sockets[0].getsockname()[1])


async def ask(address: str, port: int, data: bytes = b"hello") -> bytes:
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


async def refused(address: str, port: int) -> bool:
    try:
        await ask(address, port)
    except ConnectionError:
        return True
    return False


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def proxy(world: World) -> AsyncIterator[ServiceProxy]:
    made = ServiceProxy(world.table, Events(), ("127.0.0.1", 1), sockets())  # type: ignore[arg-type]
    await made.start()
    yield made
    await made.stop()


async def test_a_cluster_ip_leads_to_its_backends_in_turn(world: World, proxy: ServiceProxy) -> None:
    (one, first), (two, second) = await named_server(b"one"), await named_server(b"two")
    port = free_port()
    world.service("web", "127.96.1.1", port, ("127.0.0.1", first), ("127.0.0.1", second))
    await until(lambda: bool(proxy._listeners))
    answers = {await ask("127.96.1.1", port) for _ in range(4)}
    assert answers == {b"one:hello", b"two:hello"}
    large = os.urandom(3_000_000)
    assert (await ask("127.96.1.1", port, large))[4:] == large
    one.close()
    await one.wait_closed()
    assert {await ask("127.96.1.1", port) for _ in range(4)} == {b"two:hello"}
    world.remove("services", "web")
    await until(lambda: not proxy._listeners)
    assert await refused("127.96.1.1", port)
    two.close()


def test_bytes_that_come_before_the_backend_is_reached() -> None:
    """Under uvloop, which reads before it is asked to."""

    async def check() -> None:
        world = World()
        proxy = ServiceProxy(world.table, Events(), ("127.0.0.1", 1), sockets())  # type: ignore[arg-type]
        await proxy.start()
        server, number = await named_server(b"one")
        port = free_port()
        world.service("web", "127.96.1.4", port, ("127.0.0.1", number))
        await until(lambda: bool(proxy._listeners))
        async with asyncio.timeout(5):
            for size in (1, 1_000_000):
                assert len(await ask("127.96.1.4", port, b"x" * size)) == size + 4
        await proxy.stop()
        server.close()

    uvloop.run(check())


def test_a_backend_that_speaks_first_is_heard() -> None:
    """As SSH does: its greeting is there before the task that connects to it has been woken."""

    async def check() -> None:
        rotation, front = Rotation(), free_port()
        with socket.create_server(("127.0.0.1", 0)) as backend:
            rotation.backends = [Destination("127.0.0.1", backend.getsockname()[1])]
            forwarder = TcpForwarder(rotation, lambda to: sockets().connect((to.host,), to.port))
            await forwarder.listen("127.0.0.1", front)

            def greet() -> None:
                for _ in range(50):
                    connection, _ = backend.accept()
                    with connection:
                        connection.sendall(b"SSH-2.0-hello")

            greeting = threading.Thread(target=greet, daemon=True)
            greeting.start()
            for _ in range(50):
                async with asyncio.timeout(20):
                    reader, writer = await asyncio.open_connection("127.0.0.1", front)
                    assert await reader.read() == b"SSH-2.0-hello"
                    writer.close()
            forwarder.abort()

    uvloop.run(check())


async def test_nothing_listens_without_a_ready_backend(world: World, proxy: ServiceProxy) -> None:
    port = free_port()
    world.service("web", "127.96.1.2", port)
    await asyncio.sleep(0.02)
    assert await refused("127.96.1.2", port)


@pytest.mark.parametrize("holder", ["uid-of-127.0.0.1", "another"])
async def test_a_pod_on_all_addresses_keeps_its_port(
    world: World, monkeypatch: pytest.MonkeyPatch, holder: str
) -> None:
    """Its own service's; somebody else's is named."""

    async def listener(*_at: Any) -> tuple[str, str]:
        return holder, "process 7 of pod b/hostile"

    around, events = sockets(), Events()
    monkeypatch.setattr(around, "listener", listener)
    proxy = ServiceProxy(world.table, events, ("127.0.0.1", 1), around)  # type: ignore[arg-type]
    await proxy.start()
    server = await asyncio.start_server(lambda _r, w: w.close(), "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    world.service("web", "127.96.1.3", port, ("127.0.0.1", port), pods=True)
    await asyncio.sleep(0.05)
    assert not proxy._listeners
    if holder == "another":
        assert events.seen == [
            f"FailedToListen: cannot listen on 127.96.1.3:{port}: process 7 of pod b/hostile has that port"
        ]
    else:
        assert (events.seen, proxy._failed) == ([], {})
    await proxy.stop()
    server.close()


async def test_a_port_that_cannot_be_had_is_told_once_and_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "RETRY_SECONDS", 0.02)
    events = Events()
    proxy = ServiceProxy(world.table, events, ("127.0.0.1", 6443), sockets())  # type: ignore[arg-type]
    await proxy.start()
    other, port = await named_server(b"other")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.96.1.5", 0))
        taken.listen()
        number = taken.getsockname()[1]
        world.service("web", "127.96.1.5", number, ("127.0.0.1", port))
        await until(lambda: len(events.seen) == 1)
        await asyncio.sleep(0.1)
        assert events.seen == [
            f"FailedToListen: cannot listen on 127.96.1.5:{number}: process {os.getpid()} "
            f"({Path('/proc/self/comm').read_text().strip()}) has that port"
        ]
        assert proxy.api_address() == ("127.0.0.1", 6443)
    await until(lambda: bool(proxy._listeners))
    assert await ask("127.96.1.5", number) == b"other:hello"
    await proxy.stop()
    other.close()


async def test_where_pods_find_the_api(world: World) -> None:
    events = Events()
    server, port = await named_server(b"api")
    proxy = ServiceProxy(world.table, events, ("127.0.0.1", port), sockets())  # type: ignore[arg-type]
    await proxy.start()
    with socket.socket() as taken:
        taken.bind(("127.96.1.6", 0))
        taken.listen()
        world.service("kubernetes", "127.96.1.6", taken.getsockname()[1], namespace="default")
        await until(lambda: bool(proxy._failed))
        assert proxy.api_address() == ("127.0.0.1", port)
        assert events.seen == []
    free = free_port()
    world.service("kubernetes", "127.96.1.7", free, namespace="default")
    await until(lambda: bool(proxy._listeners))
    assert proxy.api_address() == ("127.96.1.7", free)
    assert await ask("127.96.1.7", free) == b"api:hello"
    await proxy.stop()
    server.close()


async def test_hosts_file_is_rewritten_in_place(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "GATHER_SECONDS", 0.001)
    book = Hosts(world.table, str(tmp_path), None, world.informers["pods"])  # type: ignore[arg-type]
    await book.start()
    world.service("web", "127.96.0.9", 80)
    world.service("db", "127.96.0.10", 80, namespace="other")
    world.put("services", "group", spec={"clusterIP": "None"})
    pod = world.put(
        "pods", "w-0", spec={"hostname": "w-0", "subdomain": "group"}, status={"podIP": "127.0.0.5", "phase": "Running"}
    )
    path = book.file_for(pod)
    lines = Path(path).read_text().splitlines()
    assert "127.96.0.9 web" in lines
    assert "127.96.0.9 web.ns web.ns.svc web.ns.svc.cluster.local" in lines
    assert "127.96.0.10 db" not in lines
    assert "127.96.0.10 db.other db.other.svc db.other.svc.cluster.local" in lines
    assert "127.0.0.5 w-0.group.ns.svc.cluster.local w-0 w-0.group" in lines, "`hostname -f` says the first"
    assert "127.0.0.5 w-0.group.ns w-0.group.ns.svc w-0.group.ns.svc.cluster.local" in lines
    inode = os.stat(path).st_ino
    world.remove("services", "web")
    await until(lambda: "web" not in Path(path).read_text())
    assert os.stat(path).st_ino == inode
    aliased = {**pod, "spec": {**pod["spec"], "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}]}}
    world.service("late", "127.96.0.11", 80)
    for number, address in ((1, "127.0.0.6"), (2, "127.0.0.7"), (2, "127.0.0.8")):
        name = f"x-{number}"
        book.file_for(
            {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {}, "status": {"podIP": address}}
        )
        lines = Path(path).read_text().splitlines()
        assert {"127.96.0.11 late", "127.0.0.6 x-1"} <= set(lines)
        assert [line for line in lines if line.endswith(f" {name}")] == [f"{address} {name}"]
    own = book.file_for(aliased)
    assert own != path
    assert "10.0.0.1 a b" in Path(own).read_text()
    await book.stop()
