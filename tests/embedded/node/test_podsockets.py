# ruff: noqa: ASYNC110, ASYNC220
"""Who answers at a pod's address. The pod is what descends from this process; the stranger is this process itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from danlu.embedded.node.network import podsockets, sockdiag
from danlu.embedded.node.network.podaddresses import Addresses
from danlu.embedded.node.network.podsockets import ForeignSocket, PodSockets

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel whose a socket is")
ADDRESS = "127.64.200.7"
UID = "uid-of-a"

SERVER = """
import socket, sys, threading, time
host, port, how = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if "dual" in how:
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
if "shared" in how:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
if "deferred" in how:
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30)
listener.bind((host, port))
listener.listen(64)
print(listener.getsockname()[1], flush=True)
if "lazy" in how:
    time.sleep(600)
while True:
    connection, _ = listener.accept()
    if "once" in how:
        listener.close()
    connection.sendall(b"pod:" + connection.recv(100))
    connection.close()
    if "once" in how:
        time.sleep(600)
"""

Serve = Callable[..., tuple[subprocess.Popen[str], int]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server in the pod: serve(host, port, how) → its process and its port."""
    made: list[subprocess.Popen[str]] = []

    def start(host: str = ADDRESS, port: int = 0, how: str = "") -> tuple[subprocess.Popen[str], int]:
        words = [sys.executable, "-c", SERVER, host, str(port), how]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        made.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield start
    for process in made:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(params=["netlink", "procnet"])
def sockets(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodSockets:
    if request.param == "procnet":
        monkeypatch.setattr(sockdiag, "source", sockdiag.ProcNet)
    containers: Any = SimpleNamespace(
        is_adopted=lambda uid: True,
        running_in=lambda uid: [SimpleNamespace(shim_pid=os.getpid())] if uid == UID else [],
        running=list,
    )
    addresses = Addresses("127.64.0.0/11", tmp_path)
    assert addresses.take(UID, ADDRESS) == ADDRESS
    return PodSockets(containers, addresses)


class Stranger:
    """Listens in this process and keeps what it is sent."""

    def __init__(self, host: str, port: int, *options: int) -> None:
        self.listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        for option in (socket.SO_REUSEADDR, *options):
            self.listener.setsockopt(socket.SOL_SOCKET, option, 1)
        self.listener.bind((host, port))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                self.accepted.append(self.listener.accept()[0])
            except OSError:
                return

    def stop_listening(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.listener.close()

    def received(self) -> bytes:
        found = b""
        for connection in self.accepted:
            connection.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                found += connection.recv(100)
            connection.close()
        return found


async def ask(made: socket.socket, data: bytes = b"secret") -> bytes:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(made, data)
    answer = await loop.sock_recv(made, 100)
    made.close()
    return answer


WAYS = [
    (ADDRESS, ""),
    ("0.0.0.0", ""),
    ("::", "dual"),
    (f"::ffff:{ADDRESS}", "dual"),
    (ADDRESS, "shared"),
    (ADDRESS, "once"),
    (ADDRESS, "deferred,shared"),
]


@pytest.mark.parametrize(("host", "how"), WAYS)
async def test_the_pod_is_reached(sockets: PodSockets, serve: Serve, host: str, how: str) -> None:
    _, port = serve(host, 0, how)
    for uid in (UID, "") if how != "once" else (UID,):
        assert await ask(await sockets.connect((ADDRESS,), port, uid)) == b"pod:secret"


async def test_a_server_that_accepts_nobody_yet_is_connected_to(sockets: PodSockets, serve: Serve) -> None:
    for how in ("lazy", "lazy,shared"):
        _, port = serve(ADDRESS, 0, how)
        (await sockets.connect((ADDRESS,), port, UID)).close()


@pytest.mark.parametrize("host", [ADDRESS, "0.0.0.0", "::"])
async def test_a_stranger_is_not_even_connected_to(sockets: PodSockets, host: str) -> None:
    told: list[tuple[str, str, str]] = []
    sockets.report = lambda *words: told.append(words)
    stranger = Stranger(host, 0)
    with pytest.raises(ForeignSocket) as refused:
        await sockets.connect((ADDRESS,), stranger.port, UID)
    words = f"port {stranger.port} of {ADDRESS} is held by process {os.getpid()} ("
    assert refused.value.message.startswith(words)
    assert refused.value.message.endswith("), not by this pod")
    assert [(uid, reason) for uid, reason, _ in told] == [(UID, "AddressTaken")]
    stranger.stop_listening()
    assert stranger.accepted == []


async def test_addresses_of_nobody_and_of_no_pod(sockets: PodSockets) -> None:
    stranger = Stranger("0.0.0.0", 0)
    with pytest.raises(ConnectionRefusedError):
        await sockets.connect(("127.64.200.8",), stranger.port)
    with pytest.raises(ForeignSocket):
        await sockets.connect((ADDRESS,), stranger.port)  # the address says which pod is meant
    with pytest.raises(ConnectionRefusedError):
        await sockets.connect(("127.0.0.1",), stranger.port, "uid-of-a-pod-that-does-not-run")
    (await sockets.connect(("127.0.0.1",), stranger.port)).close()  # no pod is meant: a program of the machine
    stranger.stop_listening()
    assert stranger.received() == b""


async def test_a_listener_on_another_address_is_tried_next(sockets: PodSockets, serve: Serve) -> None:
    """`kubectl port-forward` to a server that listens on the pod's 127.0.0.1, while a stranger has the others."""
    _, port = serve("127.0.0.1")
    stranger = Stranger(ADDRESS, port)
    assert await ask(await sockets.connect((ADDRESS, "127.0.0.1"), port, UID)) == b"pod:secret"
    stranger.stop_listening()
    assert stranger.accepted == []


async def test_a_stranger_takes_the_place_while_we_connect(
    sockets: PodSockets, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, port = serve()
    assert await ask(await sockets.connect((ADDRESS,), port, UID)) == b"pod:secret"
    there: list[Stranger] = []
    really = podsockets._open

    async def swap_and_open(host: str, port: int) -> socket.socket:
        process.kill()
        process.wait()
        there.append(Stranger(ADDRESS, port))
        return await really(host, port)

    monkeypatch.setattr(podsockets, "_open", swap_and_open)
    with pytest.raises(ForeignSocket):
        await sockets.connect((ADDRESS,), port, UID)
    assert there[0].received() == b""
    there[0].stop_listening()


async def test_a_stranger_accepts_and_gives_the_place_back(
    sockets: PodSockets, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When we look again the pod listens; but what we hold is a connection to the stranger."""
    there: list[Stranger] = []
    really = podsockets._open

    async def open_and_swap(host: str, port: int) -> socket.socket:
        there.append(Stranger(ADDRESS, port))
        made = await really(host, port)
        while not there[0].accepted:
            await asyncio.sleep(0.001)
        there[0].stop_listening()
        serve(ADDRESS, port)
        return made

    with socket.create_server((ADDRESS, 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(podsockets, "_open", open_and_swap)
    with pytest.raises(ForeignSocket):
        await sockets.connect((ADDRESS,), port, UID)
    assert there[0].received() == b""


async def test_a_stranger_shares_the_port(sockets: PodSockets, serve: Serve) -> None:
    """SO_REUSEPORT: the kernel deals connections to both. What reaches the stranger is not used."""
    _, port = serve(ADDRESS, 0, "shared")
    assert await ask(await sockets.connect((ADDRESS,), port, UID)) == b"pod:secret"
    stranger = Stranger(ADDRESS, port, socket.SO_REUSEPORT)
    for _ in range(40):
        try:
            assert await ask(await sockets.connect((ADDRESS,), port, UID)) == b"pod:secret"
        except ForeignSocket:
            continue
    stranger.stop_listening()
    assert stranger.received() == b""
    assert await ask(await sockets.connect((ADDRESS,), port, UID)) == b"pod:secret"


async def test_datagrams(sockets: PodSockets, serve: Serve) -> None:
    own = ("127.0.0.1", 40000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind((ADDRESS, 0))
        at = stranger.getsockname()
        assert not sockets.receives(at, own, UID)
        with pytest.raises(ForeignSocket):
            await sockets.require_receiver(at, own, UID)
        program = (
            "import socket, sys, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            "s.bind((sys.argv[1], 0)); print(s.getsockname()[1], flush=True); time.sleep(600)"
        )
        with subprocess.Popen([sys.executable, "-c", program, ADDRESS], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            at = (ADDRESS, int(process.stdout.readline()))
            await sockets.require_receiver(at, own, UID)
            assert sockets.receives(at, own, UID)
            assert not sockets.receives(at, own, "another")
            process.kill()
        with pytest.raises(ConnectionRefusedError):
            await sockets.require_receiver(at, own, UID)
