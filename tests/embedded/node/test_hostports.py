# ruff: noqa: ASYNC110
"""hostPort leads to the pod's own port, for as long as the pod is there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.embedded.node.test_services import Events, World, ask, free_port, named_server, refused, sockets, until

from danlu.embedded.node.network.hostports import HostPorts

NETWORKS = ("127.64.0.0/11", "127.96.0.0/12")


class Scene:
    def __init__(self) -> None:
        self.world, self.events = World(), Events()
        self.ports = HostPorts(None, self.events, sockets(), NETWORKS, self.world.informers["pods"])  # type: ignore[arg-type]

    def pod(self, name: str, *ports: dict[str, Any], phase: str = "Running", **spec: Any) -> None:
        # Servers of this process stand for those of pods: of an address of no pod nothing is verified.
        body = {"containers": [{"name": "c", "ports": [*ports]}], **spec}
        made = self.world.put("pods", name, spec=body, status={"podIP": "127.0.0.1", "phase": phase})
        self.ports._pod_changed("MODIFIED", made, None)

    def remove(self, name: str) -> None:
        found = self.world.informers["pods"].get("ns", name)
        assert found is not None
        self.ports._pod_changed("DELETED", found, None)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr("danlu.embedded.node.network.hostports.RETRY_SECONDS", 0.05)
    made = Scene()
    monkeypatch.setattr(made.ports._sockets, "connect", lambda hosts, port, _uid: type(made.ports._sockets).connect(
        made.ports._sockets, hosts, port, ""))  # fmt: skip
    await made.ports.start()
    yield made
    await made.ports.stop()


async def answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        return await ask(host, port) == b"pod:hello"
    except ConnectionError:
        return False


async def eventually(port: int, expected: bool, host: str = "127.0.0.1") -> None:
    async with asyncio.timeout(5):
        while await answers(port, host) != expected:
            await asyncio.sleep(0.01)


async def test_a_port_of_the_machine_leads_to_the_pod_while_it_is_there(scene: Scene) -> None:
    server, number = await named_server(b"pod")
    port = free_port()
    given = {"containerPort": number, "hostPort": port}
    scene.pod("p", given)
    await eventually(port, True)
    assert await refused("127.0.0.2", port), "the address that no pod has named stays closed"
    scene.pod("p", given, phase="Succeeded")
    await eventually(port, False)
    scene.pod("q", {**given, "hostIP": "127.0.0.2"})
    await eventually(port, True, "127.0.0.2")
    assert await refused("127.0.0.1", port)
    scene.remove("q")
    await eventually(port, False, "127.0.0.2")
    scene.pod("r", given, hostNetwork=True)
    assert await refused("127.0.0.1", port), "such a pod has the port itself"
    server.close()


async def test_a_port_that_cannot_be_had_is_told_and_tried_again(scene: Scene) -> None:
    server, number = await named_server(b"pod")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        scene.pod("p", {"containerPort": number, "hostPort": port})
        await until(lambda: bool(scene.events.seen))
        assert scene.events.seen[0].startswith(f"FailedToListen: cannot listen on 127.0.0.1:{port}: ")
    await eventually(port, True)
    assert len(scene.events.seen) == 1
    scene.pod("second", {"containerPort": number, "hostPort": port})
    await until(lambda: len(scene.events.seen) == 2)
    scene.remove("p")
    await eventually(port, True)
    server.close()


@pytest.mark.parametrize("host", ["127.96.0.1", "127.64.1.1", "127.32.1.1"])
async def test_addresses_of_pods_and_services_are_not_to_be_had(scene: Scene, host: str) -> None:
    scene.pod("p", {"containerPort": 80, "hostPort": 18880, "hostIP": host})
    await until(lambda: bool(scene.events.seen))
    assert f"{host}:18880" in scene.events.seen[0]
    assert await refused(host, 18880)
