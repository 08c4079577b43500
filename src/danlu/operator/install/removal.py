"""Taking an installation away. What users made stays: definitions, their objects, the pods that run, volumes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from danlu import errors
from danlu.client.client import Client
from danlu.kinds.registry import REGISTRY
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    SECRET,
    STATEFUL_SET,
)
from danlu.operator.install.plan import KEPT_ROLES, MANAGED_BY, OURS, installed, kind_of, read
from danlu.operator.install.preflight import HELM_RELEASE, PART_OF

# What somebody may have put into Danlu's namespace; with any of it the namespace stays.
SOMEBODYS = (PERSISTENT_VOLUME_CLAIM, SECRET, CONFIG_MAP, DEPLOYMENT, STATEFUL_SET, JOB)
EVERY_NAMESPACE_HAS = ("kube-root-ca.crt",)
GONE_S = 120.0


@dataclass(frozen=True, slots=True)
class Removal:
    objects: list[Object]
    definitions: list[Object]  # ours, that exist
    counts: dict[str, int] = field(default_factory=dict)  # objects of each kind: "PyTorchJob" → 3
    namespace: Object | None = None
    others: list[str] = field(default_factory=list)  # what keeps the namespace
    helm_release: str = ""


async def look(client: Client, namespace: str) -> Removal:
    definitions = []
    counts: dict[str, int] = {}
    for platform in REGISTRY:
        kind = platform.kind
        found = await read(client, CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}")
        if found is None or (found["metadata"].get("labels") or {}).get(PART_OF) != "danlu":
            continue
        definitions.append(found)
        counts[kind.kind] = len((await client.list(kind, limit=500)).items)
    place = await read(client, NAMESPACE, namespace)
    others = await _others(client, namespace) if place is not None else []
    return Removal(
        await installed(client),
        definitions,
        {kind: count for kind, count in counts.items() if count},
        place if place is not None and (place["metadata"].get("labels") or {}).get(PART_OF) == "danlu" else None,
        others,
        await _helm_release(client, namespace),
    )


async def _helm_release(client: Client, namespace: str) -> str:
    found = await read(client, DEPLOYMENT, "danlu-operator", namespace)
    return str(((found or {}).get("metadata") or {}).get("annotations", {}).get(HELM_RELEASE) or "")


async def _others(client: Client, namespace: str) -> list[str]:
    kinds: Sequence[Kind] = (*SOMEBODYS, *(platform.kind for platform in REGISTRY if platform.kind.namespaced))
    found = []
    for kind in kinds:
        try:
            items = (await client.list(kind, namespace)).items
        except errors.NotFound:
            continue
        for one in items:
            meta = one["metadata"]
            ours = (meta.get("labels") or {}).get(MANAGED_BY) == OURS or meta.get("ownerReferences")
            if not ours and meta["name"] not in EVERY_NAMESPACE_HAS:
                found.append(f"{kind.kind} {meta['name']}")
    return found


async def take_away(client: Client, found: Removal, *, data: bool, tell: Callable[[str], None]) -> None:
    """The operator first, so that nobody makes anew what is deleted; then, if asked, everything of the users."""
    order = sorted(found.objects, key=lambda one: kind_of(one) != DEPLOYMENT)
    for one in order:
        await _delete(client, kind_of(one), one, tell)
    if data:
        for definition in found.definitions:
            await _delete(client, CUSTOM_RESOURCE_DEFINITION, definition, tell)
        for name in KEPT_ROLES:
            role = await read(client, CLUSTER_ROLE, name)
            if role is not None:
                await _delete(client, CLUSTER_ROLE, role, tell)
        await asyncio.gather(*(_gone(client, one["metadata"]["name"]) for one in found.definitions))
    if found.namespace is not None and not found.others:
        await _delete(client, NAMESPACE, found.namespace, tell)


async def _delete(client: Client, kind: Kind, obj: Object, tell: Callable[[str], None]) -> None:
    meta = obj["metadata"]
    try:
        await client.delete(kind, meta["name"], meta.get("namespace"), propagation="Background")
    except errors.NotFound:
        return
    place = f"{meta['namespace']}/" if meta.get("namespace") else ""
    tell(f"deleted {kind.kind} {place}{meta['name']}")


async def _gone(client: Client, name: str) -> None:
    """A definition goes when the last of its objects has gone."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + GONE_S
    while await read(client, CUSTOM_RESOURCE_DEFINITION, name) is not None:
        if loop.time() > ends:
            plural = name.partition(".")[0]
            raise errors.Timeout(f"objects of {name} are still being deleted; `kubectl get {plural} -A` shows them")
        await asyncio.sleep(0.2)
