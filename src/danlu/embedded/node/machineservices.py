"""What all nodes of a machine share around their pods: GPUs, names, and the way to services."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.embedded.node.context import ContainerDevices
from danlu.embedded.node.network import lowports
from danlu.embedded.node.network.clusterdns import ClusterDns
from danlu.embedded.node.network.hostports import HostPorts
from danlu.embedded.node.network.hosts import Hosts
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.network.services import ServiceProxy
from danlu.embedded.node.network.servicetable import ServiceTable
from danlu.embedded.node.pods.adoption import pods_on_disk
from danlu.embedded.node.sandbox import devices
from danlu.embedded.settings import NodeShare
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import ENDPOINT_SLICE, POD, SERVICE
from danlu.runtime.recorder import EventRecorder


@dataclass(frozen=True, slots=True)
class ServiceNetwork:
    """How pods reach services."""

    api: tuple[str, int]  # where the API server listens
    sockets: PodSockets
    networks: Sequence[str]  # of pods and services
    write_held: Callable[[list[str]], None]  # is told which addresses of services others hold


class MachineServices:
    def __init__(
        self,
        client: Client,
        data_dir: Path,
        shares: Sequence[NodeShare],
        network: ServiceNetwork,
        fake_gpus: int = 0,
        shared: Callable[[Kind], Informer] | None = None,
    ) -> None:
        """`shared` gives informers that others keep; without it there are own ones."""
        table = ServiceTable(client, *(shared(kind) if shared else None for kind in (SERVICE, ENDPOINT_SLICE)))
        self._table = table
        self.addressed_services: Callable[[str], Sequence[Object]] | None = table.with_address
        self._recorder = EventRecorder(client, "service-proxy")
        self._hosts = Hosts(table, str(data_dir), client, shared(POD) if shared else None)
        self._proxy = ServiceProxy(table, self._recorder, network.api, network.sockets)
        self._host_ports = HostPorts(
            client, self._recorder, network.sockets, network.networks, shared(POD) if shared else None
        )
        self._proxy.write_held = network.write_held
        self._sockets = network.sockets
        self._dns = ClusterDns(client, table, network.networks, network.sockets)
        # A node that is said to have GPUs which the machine has not is a node for trying out scheduling.
        asked = sum(share.gpus or 0 for share in shares)
        found = devices.discover(fake_gpus)
        if asked > len(found):
            found = devices.discover(asked)
        self._devices = _deal(found, shares, str(data_dir))
        alive = pods_on_disk(data_dir)
        for one in self._devices.values():
            one.restore(alive)

    async def start(self) -> None:
        await asyncio.gather(self._table.start(), self._sockets.containers.spawner.start())
        if self._sockets.containers.spawner.capabilities.own_ports:
            self._sockets.first_free = lowports.first_free()
        await self._dns.start()
        await self._hosts.start()
        await self._proxy.start()
        await self._host_ports.start()

    async def stop(self) -> None:
        await self._dns.stop()
        await self._host_ports.stop()
        await self._proxy.stop()
        await self._hosts.stop()
        await self._table.stop()
        await self._recorder.stop()

    # -- what the agent asks for

    def extended_resources(self, share: NodeShare, nodes: int) -> dict[str, int]:
        return {name: int(count) for name, count in self._devices[share.name].capacity.items()}

    def node_labels(self, share: NodeShare, nodes: int) -> dict[str, str]:
        return self._devices[share.name].labels

    def assign(self, node: str, pod: Object, container: Object) -> ContainerDevices:
        given = self._devices[node].assign(pod, container)
        return ContainerDevices(given.env, given.nodes)

    def release(self, pod_uid: str) -> None:
        for one in self._devices.values():
            one.release(pod_uid)
        self._hosts.forget(pod_uid)

    async def hosts_file(self, pod: Object, address: str) -> str:
        return self._hosts.file_for(pod)

    async def connect(self, namespace: str, service: str, port: int) -> socket.socket:
        """To a pod behind a service, verified. Raises OSError."""
        return await self._proxy.connect((namespace, service), port)

    def api_address(self) -> tuple[str, int] | None:
        return self._proxy.api_address()

    def cluster_dns(self) -> str:
        return self._dns.address


def _deal(found: list[devices.Gpu], shares: Sequence[NodeShare], data_dir: str) -> dict[str, devices.Devices]:
    """GPUs to nodes: as many as each was given; what is left over, to those that were given no number, evenly."""
    open_shares = [share for share in shares if share.gpus is None]
    left = len(found) - sum(share.gpus or 0 for share in shares)
    counts = []
    for share in shares:
        if share.gpus is not None:
            counts.append(share.gpus)
        else:
            place = open_shares.index(share)
            counts.append(left // len(open_shares) + (1 if place < left % len(open_shares) else 0))
    dealt = devices.share(found, counts)
    return {share.name: devices.Devices(data_dir, gpus) for share, gpus in zip(shares, dealt, strict=True)}
