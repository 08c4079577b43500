"""`NodeContext`: what the parts of one node share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from danlu.client.client import Client
from danlu.embedded.node.images.imagemanager import ImageManager
from danlu.embedded.node.network.podaddresses import Addresses
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.sandbox.processes import Containers
from danlu.embedded.node.settings import NodeSettings
from danlu.meta.kind import Object
from danlu.runtime.recorder import EventRecorder


@dataclass(frozen=True, slots=True)
class ContainerDevices:
    """What a container gets of the machine's accelerators."""

    env: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)  # device files


def no_devices(pod: Object, container: Object) -> ContainerDevices:
    return ContainerDevices()


async def no_hosts_file(pod: Object, address: str) -> str:
    return ""


@dataclass(slots=True)
class NodeContext:
    client: Client
    data_dir: str
    node_name: str
    settings: NodeSettings
    recorder: EventRecorder
    containers: Containers
    images: ImageManager
    addresses: Addresses
    sockets: PodSockets
    host_ip: str = "127.0.0.1"
    hosts_file: Callable[[Object, str], Awaitable[str]] = no_hosts_file  # (pod, its address) -> file for /etc/hosts
    devices: Callable[[Object, Object], ContainerDevices] = no_devices
    release_devices: Callable[[str], None] = lambda pod_uid: None
    api_address: Callable[[], tuple[str, int] | None] = lambda: None  # where pods reach the API; None: its service
    cluster_dns: Callable[[], str] = lambda: ""  # the address of the cluster's DNS server; "" where there is none
    addressed_services: Callable[[str], Sequence[Object]] | None = None  # of a namespace; None: they are listed

    @property
    def mode(self) -> str:
        return self.containers.spawner.capabilities.mode

    def pod_folder(self, pod_uid: str) -> Path:
        return self.containers.pod_folder(pod_uid)
