"""One person's requests do not starve those of another: seats, turns, streams and connections."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from tests.attack.conftest import NewPerson, Person

from danlu.client.client import Client
from danlu.embedded.apiserver.app import App
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings, RequestLimits
from danlu.meta.wellknown import CONFIG_MAP
from danlu.net import listener

WORDS = "Too many requests, please try again later."
A = "/api/v1/namespaces/a"


@pytest.fixture
def limits() -> RequestLimits:
    return RequestLimits(seats=6, seats_per_user=2, waiting_per_user=3, wait_seconds=60, streams_per_user=3)


@pytest.fixture
def settings(tmp_path: Path, limits: RequestLimits) -> ClusterSettings:
    return ClusterSettings(
        data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False, request_limits=limits
    )


async def until(condition: Any) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come about")


@contextlib.asynccontextmanager
async def connection(person: Person) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare one: to send half of something, or to read nothing."""
    parts = urlsplit(person.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()


def head(person: Person, method: str, path: str, *lines: str) -> bytes:
    token = f"Authorization: Bearer {person.token}"
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: danlu", token, *lines, "", ""]).encode()


async def hold_seats(stack: contextlib.AsyncExitStack, cluster: Cluster, person: Person, count: int = 2) -> None:
    """Requests whose bodies do not come."""
    fairness = cluster.server.fairness
    for number in range(count):
        _, writer = await stack.enter_async_context(connection(person))
        writer.write(head(person, "POST", f"{A}/configmaps", "Content-Length: 10", "Content-Type: application/json"))
        await until(lambda held=number + 1: fairness._seats >= held)


# -- turns


def asgi(person: Person, path: str) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {person.token}".encode())], "state": {},
        "client": ("127.0.0.1", 1),
    }  # fmt: skip


@pytest.mark.parametrize("limits", [RequestLimits()])
async def test_one_request_overtakes_somebodys_thousands(
    cluster: Cluster, client: Client, new_person: NewPerson
) -> None:
    mallory, bob = await new_person(), await new_person("bob", namespace="b")
    for number in range(300):
        meta = {"name": f"m-{number}", "namespace": "a"}
        await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}})
    app, finished = App(cluster.server), []

    async def ask(person: Person, path: str) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert message["status"] == 200

        async def receive() -> Any:
            return {"type": "http.request"}

        await app(asgi(person, path), receive, send)
        finished.append(person.name)

    # Tables are made of decoded objects: 300 of these take seconds.
    lists = [asyncio.create_task(ask(mallory, f"{A}/configmaps?pretty=true")) for _ in range(300)]
    one = asyncio.create_task(ask(bob, "/api/v1/namespaces/b/configmaps"))
    await one
    assert finished.count(mallory.name) < 150, "bob waited for most of what mallory had asked before"
    await asyncio.gather(*lists)
    assert finished.count(mallory.name) == 300
    assert cluster.server.fairness._seats == 0
    assert cluster.server.fairness._waiting == 0


# -- seats


async def test_who_holds_all_own_seats_waits_alone(cluster: Cluster, new_person: NewPerson) -> None:
    mallory, bob = await new_person(), await new_person("bob", namespace="b")
    async with contextlib.AsyncExitStack() as stack:
        await hold_seats(stack, cluster, mallory)
        waiting = [asyncio.create_task(mallory.request("GET", f"{A}/pods")) for _ in range(3)]
        await until(lambda: cluster.server.fairness._waiting == 3)
        async with mallory.session.get(
            f"{mallory.url}{A}/pods", headers={"authorization": f"Bearer {mallory.token}"}
        ) as answer:
            assert answer.status == 429
            assert answer.headers["retry-after"] == "1"
            status = await answer.json()
        assert (status["message"], status["reason"]) == (WORDS, "TooManyRequests")
        assert (await bob.request("GET", "/api/v1/namespaces/b/pods"))[0] == 200
        assert (await mallory.request("GET", "/healthz"))[0] == 200
        assert not any(task.done() for task in waiting)
        other = await new_person("mallory2")  # another account of the same project is no other flow
        assert (await other.request("GET", f"{A}/pods"))[0] == 429
    assert [status for status, _ in await asyncio.gather(*waiting)] == [200, 200, 200]
    await until(lambda: cluster.server.fairness._seats == 0)


async def test_everybody_gets_a_seat_when_all_are_taken(cluster: Cluster, new_person: NewPerson) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for number in range(3):
            held = await new_person("mallory", namespace=f"held-{number}")
            before = cluster.server.fairness._seats
            for _ in range(2):
                _, writer = await stack.enter_async_context(connection(held))
                writer.write(head(held, "POST", f"{A}/configmaps", "Content-Length: 10"))
            await until(lambda wanted=before + 2: cluster.server.fairness._seats == wanted)
        bob = await new_person("bob", namespace="b")
        assert cluster.server.fairness._seats == 6
        assert (await bob.request("GET", "/api/v1/namespaces/b/pods"))[0] == 200


async def test_who_does_not_read_keeps_the_seat(cluster: Cluster, client: Client, new_person: NewPerson) -> None:
    mallory, bob = await new_person(), await new_person("bob", namespace="b")
    for number in range(40):
        meta = {"name": f"m-{number}", "namespace": "a"}
        large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b" * 900_000}}
        await client.create(CONFIG_MAP, large)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(2):
            _, writer = await stack.enter_async_context(connection(mallory))
            cast(asyncio.Transport, writer.transport).pause_reading()
            writer.write(head(mallory, "GET", f"{A}/configmaps"))
            await until(lambda held=number + 1: cluster.server.fairness._seats >= held)
        await asyncio.sleep(0.2)
        assert cluster.server.fairness._seats == 2
        assert (await bob.request("GET", "/api/v1/namespaces/b/pods"))[0] == 200
    await until(lambda: cluster.server.fairness._seats == 0)


@pytest.mark.parametrize("limits", [RequestLimits(seats=6, seats_per_user=2, wait_seconds=0.01)])
async def test_who_waits_too_long_is_told(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    async with contextlib.AsyncExitStack() as stack:
        await hold_seats(stack, cluster, mallory)
        status, answer = await mallory.request("GET", f"{A}/pods")
        assert (status, answer["message"]) == (429, WORDS)
    await until(lambda: cluster.server.fairness._seats == 0)
    assert (await mallory.request("GET", f"{A}/pods"))[0] == 200


async def test_administrators_wait_for_nobody(cluster: Cluster, client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    async with contextlib.AsyncExitStack() as stack:
        await hold_seats(stack, cluster, mallory)
        assert (await client.list(CONFIG_MAP, "a")).items == []
        certificates = cluster.directory.certificates
        context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        parts = urlsplit(cluster.url)
        for _ in range(3):  # more than others may have at once
            _, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
            stack.callback(writer.close)
            writer.write(f"POST {A}/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n".encode())
        for _ in range(20):
            async with mallory.session.get(f"{cluster.url}{A}/pods", ssl=context) as answer:
                assert answer.status == 200
        assert cluster.server.fairness._waiting == 0


# -- streams


async def test_streams_are_bounded_for_each_user(cluster: Cluster, new_person: NewPerson) -> None:
    mallory, bob = await new_person(), await new_person("bob", namespace="b")
    watch = "?watch=1&timeoutSeconds=60"
    async with contextlib.AsyncExitStack() as stack:
        opened = []
        for _ in range(3):
            reader, writer = await stack.enter_async_context(connection(mallory))
            writer.write(head(mallory, "GET", f"{A}/pods{watch}"))
            assert b"200" in await reader.readline()
            opened.append(writer)
        assert cluster.server.fairness._seats == 0  # watches hold no seats
        status, answer = await mallory.request("GET", f"{A}/pods{watch}")
        assert (status, answer["message"]) == (429, WORDS)
        assert (await mallory.request("GET", f"{A}/pods/x/proxy/"))[0] == 429
        assert (await mallory.request("GET", f"{A}/pods"))[0] == 200
        bobs, writer = await stack.enter_async_context(connection(bob))
        writer.write(head(bob, "GET", f"/api/v1/namespaces/b/pods{watch}"))
        assert b"200" in await bobs.readline()
        opened[0].close()
        flow = cluster.server.fairness._flows["system:serviceaccount:a"]
        await until(lambda: flow.streams == 2)
        assert (await mallory.request("GET", f"{A}/pods?watch=1&timeoutSeconds=1"))[0] == 200
    await until(lambda: not flow.streams)


# -- connections


@pytest.mark.parametrize("limits", [RequestLimits(connections=6)])
async def test_idle_connections_keep_nobody_out(
    cluster: Cluster, new_person: NewPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEAD_S", 10_000.0)  # nobody goes by himself
    mallory = await new_person()
    async with contextlib.AsyncExitStack() as stack:
        busy, writer = await stack.enter_async_context(connection(mallory))
        writer.write(head(mallory, "GET", f"{A}/pods?watch=1&timeoutSeconds=60"))
        assert b"200" in await busy.readline()
        idle = [await stack.enter_async_context(connection(mallory)) for _ in range(30)]
        assert (await mallory.request("GET", f"{A}/pods"))[0] == 200
        async with asyncio.timeout(30):
            assert await idle[0][0].read() == b""  # the oldest was closed
        state = cluster.listener._server.server_state
        await until(lambda: len(state.connections) <= 6)
        meta = {"name": "x", "namespace": "a"}
        await cluster.client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        assert not busy.at_eof()
