"""What an agent's pods get from the machine besides processes: GPUs, names, the way to services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from danlu.embedded.node.context import ContainerDevices
from danlu.embedded.settings import NodeShare
from danlu.meta.kind import Object


class NodeServices(Protocol):
    """`MachineServices` is what `danlu up` has; `NoNodeServices` gives nothing."""

    def extended_resources(self, share: NodeShare, nodes: int) -> dict[str, int]: ...
    def node_labels(self, share: NodeShare, nodes: int) -> dict[str, str]: ...
    def assign(self, node: str, pod: Object, container: Object) -> ContainerDevices: ...
    def release(self, pod_uid: str) -> None: ...
    async def hosts_file(self, pod: Object, address: str) -> str: ...
    def api_address(self) -> tuple[str, int] | None: ...
    def cluster_dns(self) -> str: ...
    @property
    def addressed_services(self) -> Callable[[str], Sequence[Object]] | None: ...


class NoNodeServices:
    addressed_services: Callable[[str], Sequence[Object]] | None = None

    def extended_resources(self, share: NodeShare, nodes: int) -> dict[str, int]:
        return {"nvidia.com/gpu": share.gpus} if share.gpus else {}

    def node_labels(self, share: NodeShare, nodes: int) -> dict[str, str]:
        return {"nvidia.com/gpu.present": "true"} if share.gpus else {}

    def assign(self, node: str, pod: Object, container: Object) -> ContainerDevices:
        return ContainerDevices()

    def release(self, pod_uid: str) -> None:
        return None

    async def hosts_file(self, pod: Object, address: str) -> str:
        return ""

    def api_address(self) -> tuple[str, int] | None:
        return None

    def cluster_dns(self) -> str:
        return ""
