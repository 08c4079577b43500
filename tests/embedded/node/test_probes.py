"""Probe handlers against real sockets."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.pods import probes
from danlu.embedded.node.sandbox.processes import Container, Containers
from danlu.meta.kind import Object

HOST = "127.0.0.1"


async def connect(host: str, port: int) -> socket.socket:
    return await PodSockets.of(Path("/nowhere"), "127.64.0.0/11").connect((host,), port)


class Target:
    """A container without a process: enough for what asks over the network."""

    containers: Containers
    container: Container

    def __init__(self, spec: Object | None = None) -> None:
        self.address = HOST
        self.connect = connect
        self.spec = spec or {}


async def answer_with(data: bytes) -> tuple[asyncio.Server, int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    return server, server.sockets[0].getsockname()[1]


@pytest.fixture
async def closed_port() -> int:
    server, port = await answer_with(b"")
    server.close()
    await server.wait_closed()
    return port


@pytest.mark.parametrize(
    ("line", "passed", "said"),
    [
        (b"HTTP/1.1 200 OK", True, ""),
        (b"HTTP/1.1 302 Found", True, ""),
        (b"HTTP/1.1 503 Busy", False, "HTTP probe failed with statuscode: 503"),
    ],
)
async def test_http(line: bytes, passed: bool, said: str) -> None:
    server, port = await answer_with(line + b"\r\n\r\n")
    found = await probes.ask({"httpGet": {"path": "/healthz", "port": port}}, Target(), 5)
    assert (found.passed, found.said) == (passed, said)
    server.close()


async def test_nobody_listens(closed_port: int) -> None:
    found = await probes.ask({"httpGet": {"path": "/x", "port": closed_port}}, Target(), 5)
    dialled = f"dial tcp {HOST}:{closed_port}: connect: connection refused"
    assert found.said == f'Get "http://{HOST}:{closed_port}/x": {dialled}'
    found = await probes.ask({"tcpSocket": {"port": closed_port}}, Target(), 5)
    assert (found.passed, found.said) == (False, dialled)


async def test_ports_have_names() -> None:
    server, port = await answer_with(b"")
    target = Target(spec={"ports": [{"name": "web", "containerPort": port}]})
    assert (await probes.ask({"tcpSocket": {"port": "web"}}, target, 5)).passed
    server.close()


async def test_a_slow_answer_is_none() -> None:
    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(keep_silent, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    found = await probes.ask({"httpGet": {"port": port}}, Target(), 0.05)
    assert not found.passed
    assert "Client.Timeout exceeded while awaiting headers" in found.said
    server.close()


@pytest.mark.parametrize(("status", "passed"), [(1, True), (2, False)])
async def test_grpc_health(status: int, passed: bool) -> None:
    message = b"\0" + (2).to_bytes(4, "big") + bytes([8, status])
    frames = b"\0\0\0\4\0\0\0\0\0" + len(message).to_bytes(3, "big") + b"\0\1\0\0\0\1" + message
    server, port = await answer_with(frames)
    assert (await probes.ask({"grpc": {"port": port}}, Target(), 5)).passed is passed
    server.close()


async def test_thresholds() -> None:
    answers = [True, False, False, True, True]
    verdicts: list[bool] = []
    failures: list[str] = []

    async def scripted(handler: Object, target: Any, timeout: float) -> probes.ProbeAnswer:
        if not answers:
            raise asyncio.CancelledError
        return probes.ProbeAnswer(answers.pop(0), "no")

    settings = {"periodSeconds": 0.001, "failureThreshold": 2, "successThreshold": 2}
    original = probes.ask
    probes.ask = scripted
    try:
        with pytest.raises(asyncio.CancelledError):
            await probes.watch(settings, Target(), initially=True, changed=verdicts.append, failed=failures.append)
    finally:
        probes.ask = original
    assert verdicts == [False, True]
    assert failures == ["no", "no"]
