"""What the API server asks of the machine about its use; as with `NodeStreams`, it does not know who answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class Usage(Protocol):
    @property
    def cpu_nano(self) -> int:
        """Billionths of a core."""
        ...

    @property
    def cpu_seconds(self) -> float:
        """All that it has had so far."""
        ...

    @property
    def memory(self) -> int: ...

    @property
    def window(self) -> float:
        """Seconds that the rate was taken over."""
        ...

    @property
    def at(self) -> float:
        """Seconds since 1970."""
        ...


class NodeUsage(Protocol):
    async def of_pods(self, uids: Collection[str]) -> Mapping[str, Mapping[str, Usage]]:
        """pod uid -> container -> what it uses; pods and containers that do not run are left out."""
        ...

    async def of_nodes(self, pods: Mapping[str, Collection[str]]) -> Mapping[str, Usage]:
        """`pods`: the nodes that are asked for, each with the uids of its pods."""
        ...
