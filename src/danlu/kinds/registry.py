"""All kinds of the platform, found by walking the folders beside this file; how they are put on a Kubernetes and run.

A folder whose name begins with a letter is a kind's; its `kind.py` has `KIND`, or `KINDS` where people write it in
several ways or it brings a helper along. The order is the alphabet's: nothing depends on it, and nobody has to keep it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from danlu import kinds as package
from danlu.client.client import Client
from danlu.errors import ApiError
from danlu.kinds import platformroles
from danlu.kinds.crd import definition
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.suspension import OTHERS, Suspension
from danlu.meta import conditions
from danlu.meta.kind import Kind
from danlu.meta.wellknown import CLUSTER_ROLE, CUSTOM_RESOURCE_DEFINITION
from danlu.runtime.manager import Manager
from danlu.runtime.reconciler import Reconciler
from danlu.runtime.shell import add_controller

log = logging.getLogger("danlu.kinds")


def _discovered() -> Iterator[tuple[str, PlatformKind]]:
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
        if found.ispkg and not found.name.startswith("_"):
            module = importlib.import_module(f"{package.__name__}.{found.name}.kind")
            for kind in getattr(module, "KINDS", None) or (module.KIND,):
                yield found.name, kind


_FOUND = tuple(_discovered())
_FOLDERS = {kind.kind.resource: name for name, kind in _FOUND}
EVERY: tuple[PlatformKind, ...] = tuple(kind for _, kind in _FOUND)
REGISTRY: tuple[PlatformKind, ...] = tuple(kind for kind in EVERY if not kind.engine)
# The T9k scheduler's own: only for a place where something places pods by them. A cluster has its own engine.
T9K_SCHEDULER: tuple[PlatformKind, ...] = tuple(kind for kind in EVERY if kind.engine == "t9k")
SUSPENSIONS: Mapping[Kind, Suspension] = {
    **OTHERS,
    **{one.kind: one.suspension for one in EVERY if one.suspension is not None},
}
MANAGER = "danlu"
ESTABLISHED_SECONDS = 90.0  # a busy control plane takes its time


def folder_of(kind: PlatformKind) -> Path:
    """Where the kind's files lie: its example, form, words, README."""
    return Path(__file__).parent / _FOLDERS[kind.kind.resource]


async def install(client: Client, kinds: Sequence[PlatformKind] = REGISTRY) -> None:
    """Applies the CRDs and the roles of their users, and waits until all kinds are served. Idempotent."""
    await asyncio.gather(*(_install(client, kind) for kind in kinds))
    for role in platformroles.user_roles(kinds):
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
            add_controller(manager, reconciler(kind, settings))


def reconciler(kind: PlatformKind, settings: PlatformSettings) -> Reconciler[Any]:
    assert kind.controller is not None, f"{kind.kind.kind} has no controller"
    return kind.controller(replace(settings, suspensions=SUSPENSIONS))
