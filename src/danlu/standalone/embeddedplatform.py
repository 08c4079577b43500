"""The platform's kinds on the embedded cluster: their CRDs and controllers, as an operator would run them elsewhere.

The embedded scheduler also plays the T9k scheduler: it is handed the rules that stand in Queue and PodGroup objects.
"""

from __future__ import annotations

import dataclasses
import os

from danlu.embedded.cluster import Cluster
from danlu.kinds import registry
from danlu.kinds._gang.markers import POD_GROUP, QUEUE
from danlu.kinds._gang.queuepolicy import T9kPolicy
from danlu.kinds._operators.definitions import Definitions
from danlu.kinds._operators.watching import OtherOperators
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.queue import admission, default
from danlu.meta.wellknown import NAMESPACE
from danlu.runtime.manager import Manager

EMBEDDED = PlatformSettings(shared_network=True, shared_cores=os.cpu_count() or 1, gang="t9k", autoscaling=False)
KINDS = tuple(kind for kind in registry.EVERY if kind.engine in ("", EMBEDDED.gang))


async def start_platform(cluster: Cluster, console_url: str = "") -> Manager:
    """Returns when all kinds are served and looked after. `console_url`: where notebooks are opened."""
    first, directory = cluster.starting_as("danlu-operator"), cluster.directory
    await registry.install(first, KINDS)
    await default.ensure(first)
    await admission.ensure(first)
    manager = Manager(cluster.component("danlu-operator"), set_aside=cluster.set_aside)
    registry.add_controllers(manager, dataclasses.replace(EMBEDDED, console_url=console_url), KINDS)
    directory.write_operators([])
    manager.add(Definitions(manager, KINDS, registry.MANAGER).controller)
    manager.add(OtherOperators(manager, [kind.kind for kind in KINDS], directory.write_operators).controller)
    rules = T9kPolicy(manager.informer(QUEUE), manager.informer(POD_GROUP), manager.informer(NAMESPACE))
    await manager.start()
    cluster.scheduler.use(rules)
    return manager
