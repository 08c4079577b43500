"""All kinds of the platform, in a literal tuple; and how they are put on a Kubernetes and run there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from danlu.client.client import Client
from danlu.errors import ApiError
from danlu.kinds import rbac
from danlu.kinds.crd import definition
from danlu.kinds.notebook import kind as notebook
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.podgroup import kind as podgroup
from danlu.kinds.project import kind as project
from danlu.kinds.project import quotaprofile
from danlu.kinds.pytorchjob import kind as pytorchjob
from danlu.kinds.pytorchtrainingjob import kind as pytorchtrainingjob
from danlu.kinds.queue import kind as queue
from danlu.kinds.tensorboard import kind as tensorboard
from danlu.kinds.tensorflowtrainingjob import kind as tensorflowtrainingjob
from danlu.kinds.tfjob import kind as tfjob
from danlu.meta import conditions
from danlu.meta.wellknown import CLUSTER_ROLE, CUSTOM_RESOURCE_DEFINITION
from danlu.runtime.manager import Manager

log = logging.getLogger("danlu.kinds")

REGISTRY: tuple[PlatformKind, ...] = (
    pytorchjob.KIND,
    tfjob.KIND,
    pytorchtrainingjob.KIND,
    tensorflowtrainingjob.KIND,
    tensorflowtrainingjob.OTHER_NAME,
    notebook.KIND,
    tensorboard.KIND,
    project.KIND,
    quotaprofile.PROFILE,
)
# The T9k scheduler's own: only for a place where something places pods by them. A cluster has its own engine.
T9K_SCHEDULER: tuple[PlatformKind, ...] = (queue.KIND, podgroup.KIND)
MANAGER = "danlu"
ESTABLISHED_SECONDS = 90.0  # a busy control plane takes its time


async def install(client: Client, kinds: Sequence[PlatformKind] = REGISTRY) -> None:
    """Applies the CRDs and the roles of their users, and waits until all kinds are served. Idempotent."""
    await asyncio.gather(*(_install(client, kind) for kind in kinds))
    for role in rbac.user_roles(kinds):
        name = role["metadata"]["name"]
        await client.patch(CLUSTER_ROLE, name, None, role, type="apply", manager=MANAGER, force=True)


async def _install(client: Client, kind: PlatformKind) -> None:
    wanted = definition(kind)
    name = wanted["metadata"]["name"]
    await client.patch(CUSTOM_RESOURCE_DEFINITION, name, None, wanted, type="apply", manager=MANAGER, force=True)
    await established(client, name)


async def established(client: Client, name: str) -> None:
    """Returns when the API server serves the kind."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + ESTABLISHED_SECONDS
    while True:
        found = await client.get(CUSTOM_RESOURCE_DEFINITION, name)
        if conditions.is_true((found.get("status") or {}).get("conditions"), "Established"):
            return
        if loop.time() > ends:
            raise ApiError(f"CustomResourceDefinition {name} was not established within {ESTABLISHED_SECONDS:.0f} s")
        await asyncio.sleep(0.05)


def add_controllers(manager: Manager, settings: PlatformSettings, kinds: Sequence[PlatformKind] = REGISTRY) -> None:
    for kind in kinds:
        if kind.controller is not None:
            manager.add(kind.controller(manager, settings))
