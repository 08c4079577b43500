"""The kubelet: registers the machine as one node or several, and keeps a worker for each pod bound to it.

    registration              the Node objects, their status and leases
    pods.podmanager           a worker for each pod
    pressure.evictionmanager  memory and disk

Started after the API server; `stop(kill_pods=False)` leaves the pods running for the next start to adopt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.embedded import permissions
from danlu.embedded.node import machine, nodeobject
from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.images.imagemanager import ImageManager
from danlu.embedded.node.imagesource import ImageSource, MachineImages
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.nodeobject import HOST_ADDRESS, Offer
from danlu.embedded.node.nodeservices import NodeServices, NoNodeServices
from danlu.embedded.node.pods.podmanager import PodManager
from danlu.embedded.node.pressure.evictionmanager import EvictionManager
from danlu.embedded.node.registration import NodeRegistration
from danlu.embedded.node.sandbox.box import Capabilities
from danlu.embedded.node.settings import NodeSettings
from danlu.embedded.settings import NodeShare
from danlu.runtime.recorder import EventRecorder


@dataclass(frozen=True, slots=True)
class AgentParts:
    """What an agent is handed by whoever puts the machine together; without it, it does with less."""

    node_services: NodeServices | None = None
    images: ImageSource | None = None
    sockets: PodSockets | None = None
    port: int = 0  # where the API of this machine listens, for the Node's daemonEndpoints
    pods: Informer | None = None  # of all pods, which others keep; None: each node has its own
    disk_alarm: Callable[[], str] = lambda: ""  # why the store has no room, or nothing


class Agent:
    """Puts a machine's nodes together, starts them and stops them; what they do, its parts do."""

    def __init__(
        self,
        client: Client,
        data_dir: Path,
        *,
        shares: Sequence[NodeShare] = (),
        settings: NodeSettings | None = None,
        parts: AgentParts | None = None,
    ) -> None:
        parts = parts or AgentParts()
        self.data_dir = data_dir
        self.settings = settings = settings or NodeSettings()
        self.shares = list(shares) or [NodeShare("danlu")]
        self.node_services = parts.node_services or NoNodeServices()
        self.images = ImageManager(data_dir, parts.images or MachineImages(), shared=settings.shared)
        self.sockets = parts.sockets or PodSockets.of(data_dir, settings.pod_network)
        self.containers = self.sockets.containers
        self.spawner = self.containers.spawner
        self.images.layers_in_use = self._layers_in_use
        self.images.can_run = lambda: self.spawner.capabilities.mode != "none"
        self.offers = [self._offer(share) for share in self.shares]
        self._contexts = {offer.name: self._context(client, offer.name) for offer in self.offers}
        recorders = {name: context.recorder for name, context in self._contexts.items()}
        self.registration = NodeRegistration(client, self.offers, settings, recorders, self.spawner, parts.port)
        self.pods = PodManager(client, data_dir, self.sockets, self._contexts, self.registration, parts.pods)
        self.evictions = EvictionManager(
            data_dir, settings, self.pods, self.registration, self.images, parts.disk_alarm
        )
        self.pods.on_end = self.evictions.pod_ended
        self._loops: list[asyncio.Task[None]] = []

    @property
    def capabilities(self) -> Capabilities:
        return self.spawner.capabilities

    async def start(self) -> None:
        """Returns when the nodes are ready and all pods that are theirs are being looked after."""
        permissions.make_closed(self.data_dir / "pods")
        await self.spawner.start()
        self.pods.reserve_addresses()
        self.images.prepare()
        await self.registration.start()
        await self.pods.start()
        self._loops = [asyncio.create_task(loop) for loop in (self.registration.heartbeat(), self.evictions.run())]

    async def stop(self, *, kill_pods: bool = False) -> None:
        await self.pods.stop(kill_pods=kill_pods)  # which may take as long as their grace: the nodes stay well
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self.pods.let_go()
        await asyncio.gather(*(context.recorder.stop() for context in self._contexts.values()))
        await self.containers.close()
        await self.spawner.stop()

    def _layers_in_use(self) -> list[str]:
        return [layer for run in self.containers.running() for layer in run.spec["sandbox"].get("layers", ())]

    def _offer(self, share: NodeShare) -> Offer:
        count = len(self.shares)
        cpu = int(share.cpu * 1000) if share.cpu is not None else machine.cores() * 1000 // count
        memory = share.memory if share.memory is not None else machine.memory_total() // count
        return Offer(
            share.name,
            cpu,
            memory,
            nodeobject.storage_of(self.data_dir) // count,
            self.settings.pods,
            self.node_services.extended_resources(share, count),
            self.node_services.node_labels(share, count),
        )

    def _context(self, client: Client, name: str) -> NodeContext:
        given = self.node_services
        return NodeContext(
            client,
            str(self.data_dir),
            name,
            self.settings,
            EventRecorder(client, "kubelet", name),
            self.containers,
            self.images,
            self.sockets.addresses,
            self.sockets,
            HOST_ADDRESS,
            given.hosts_file,
            lambda pod, container: given.assign(name, pod, container),
            given.release,
            given.api_address,
            given.cluster_dns,
            given.addressed_services,
        )
