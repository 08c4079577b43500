"""The platform's kinds on the embedded cluster: their CRDs and controllers, as an operator would run them elsewhere."""

from __future__ import annotations

from danlu.embedded.cluster import Cluster
from danlu.kinds import registry
from danlu.kinds.platform import PlatformSettings
from danlu.runtime.manager import Manager

EMBEDDED = PlatformSettings(shared_network=True, gang="t9k")


async def start_platform(cluster: Cluster) -> Manager:
    """Returns when all kinds are served and looked after."""
    client = cluster.component("danlu-operator")
    await registry.install(client)
    manager = Manager(client)
    registry.add_controllers(manager, EMBEDDED)
    await manager.start()
    return manager
