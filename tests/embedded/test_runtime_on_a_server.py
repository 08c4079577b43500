"""The controller machinery on a real API server: a pure function as a controller, shared informers, own writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from danlu.client import Client
from danlu.embedded.cluster import Cluster
from danlu.meta import owners
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, EVENT, SECRET, SERVICE_ACCOUNT
from danlu.runtime import Children, ChildrenReconciler, EventNote, Manager, Outcome, add_controller


def mirror(obj: Object, observed: Children, _now: datetime) -> Outcome:
    """A config map named `mirror…` wants one secret for each of its keys."""
    if not obj["metadata"]["name"].startswith("mirror"):
        return Outcome()
    keys = obj.get("data") or {}
    meta = obj["metadata"]
    wanted: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"{meta['name']}-{key}",
                "namespace": meta["namespace"],
                "ownerReferences": [owners.reference(obj, CONFIG_MAP)],
            },
            "type": "Opaque",
        }
        for key in keys
    ]
    names = {child["metadata"]["name"] for child in wanted}
    surplus = [child for child in observed[SECRET] if child["metadata"]["name"] not in names]
    return Outcome(apply=wanted, delete=surplus, events=[EventNote("Normal", "Mirrored", f"{len(wanted)} keys")])


class Mirror(ChildrenReconciler):
    kind = CONFIG_MAP
    owns = (SECRET,)

    def decide(self, obj: Object, seen: Children, now: datetime) -> Outcome:
        return mirror(obj, seen, now)


@pytest.fixture
async def manager(cluster: Cluster) -> AsyncIterator[Manager]:
    manager = Manager(cluster.component("mirror"))
    add_controller(manager, Mirror())
    await manager.start()
    yield manager
    await manager.stop()


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    for _ in range(500):
        if answer := await look():
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError("never came true")


async def secrets(client: Client) -> set[str]:
    return {item["metadata"]["name"] for item in (await client.list(SECRET, "default")).items}


@pytest.mark.usefixtures("manager")
async def test_a_pure_function_is_a_controller(client: Client, cluster: Cluster) -> None:
    made: Object = {"metadata": {"name": "mirror", "namespace": "default"}, "data": {"a": "1", "b": "2"}}
    await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", **made})

    async def both() -> bool:
        return await secrets(client) >= {"mirror-a", "mirror-b"}

    await until(both)
    await client.patch(CONFIG_MAP, "mirror", "default", {"data": {"b": None}})

    async def one() -> bool:
        return {name for name in await secrets(client) if name.startswith("mirror")} == {"mirror-a"}

    await until(one)
    await client.delete(SECRET, "mirror-a", "default")
    await until(one)  # a child that is taken away comes back

    async def told() -> bool:
        found = await client.list(EVENT, "default", fields="involvedObject.name=mirror")
        return any(event["reason"] == "Mirrored" for event in found.items)

    await until(told)
    before = cluster.store.revision
    await client.patch(CONFIG_MAP, "mirror", "default", {"metadata": {"labels": {"look": "again"}}})
    await asyncio.sleep(0.3)
    found = (await client.list(SECRET, "default")).items
    assert all(int(item["metadata"]["resourceVersion"]) <= before for item in found)  # nothing written anew


async def test_a_writer_reads_what_it_wrote(manager: Manager) -> None:
    accounts = manager.informer(SERVICE_ACCOUNT)
    await asyncio.wait_for(accounts.synced(), 10)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "me", "namespace": "default"}}
    made = await manager.client.create(SERVICE_ACCOUNT, account)
    assert accounts.get("default", "me") == made
    assert manager.informer(SERVICE_ACCOUNT) is accounts
    await manager.client.delete(SERVICE_ACCOUNT, "me", "default")
    async with asyncio.timeout(10):
        while (cached := accounts.get("default", "me")) is not None:
            assert cached["metadata"].get("deletionTimestamp"), "what was deleted is not taken for alive"
            await asyncio.sleep(0)
    await manager.forget(accounts)
