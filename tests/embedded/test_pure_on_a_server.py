"""Children that are made once, and what becomes of a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from danlu.client.client import Client
from danlu.meta import owners
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, EVENT, RESOURCE_QUOTA, SECRET
from danlu.runtime.manager import Manager
from danlu.runtime.pure import Children, observing_controller
from danlu.runtime.reconcile import Creation, EventNote, Outcome, Refusal


def a_secret(parent: Object) -> Object:
    meta = {"name": "child", "namespace": "default", "ownerReferences": [owners.reference(parent, CONFIG_MAP)]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}


async def reconciled(client: Client, seen: list[list[str]]) -> Manager:
    """A controller that wants one Secret for the ConfigMap `parent`; what it saw is put into `seen`."""

    def observe(_obj: Object, children: Children, refused: Sequence[Refusal]) -> list[str]:
        return [*(one["metadata"]["name"] for one in children[SECRET]), *(one.message for one in refused)]

    def reconcile(obj: Object, observed: list[str], _now: datetime) -> Outcome:
        if obj["metadata"]["name"] != "parent":
            return Outcome()
        seen.append(observed)
        made = EventNote("Normal", "Made", "made child")
        return Outcome() if "child" in observed else Outcome(create=[Creation(a_secret(obj), made, "NotMade")])

    manager = Manager(client)
    manager.add(observing_controller(manager, "test", CONFIG_MAP, [SECRET], observe, reconcile))
    await manager.start()
    parent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parent", "namespace": "default"}}
    await client.create(CONFIG_MAP, parent)
    return manager


async def until(look: Callable[[], bool]) -> None:
    for _ in range(200):
        if look():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


async def reasons(client: Client) -> list[str]:
    return [event["reason"] for event in (await client.list(EVENT, "default")).items]


async def test_a_child_is_made_once_and_told(client: Client) -> None:
    seen: list[list[str]] = []
    manager = await reconciled(client, seen)
    await until(lambda: ["child"] in seen)
    await manager.stop()
    assert seen.count([]) == 1
    assert await reasons(client) == ["Made"]


async def test_a_refusal_is_told_and_shown_in_a_second_look(client: Client) -> None:
    hard = {"metadata": {"name": "none", "namespace": "default"}, "spec": {"hard": {"secrets": "0"}}}
    await client.create(RESOURCE_QUOTA, {"apiVersion": "v1", "kind": "ResourceQuota", **hard, "status": {"hard": {}}})
    quota = await client.get(RESOURCE_QUOTA, "none", "default")
    await client.update_status(
        RESOURCE_QUOTA, {**quota, "status": {"hard": {"secrets": "0"}, "used": {"secrets": "0"}}}
    )
    seen: list[list[str]] = []
    manager = await reconciled(client, seen)
    await until(lambda: any("exceeded quota" in text for one in seen for text in one))
    await manager.stop()
    assert "NotMade" in await reasons(client)


async def test_a_name_that_belongs_to_somebody_else_is_left_alone(client: Client) -> None:
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child", "namespace": "default"}}
    await client.create(SECRET, theirs)
    seen: list[list[str]] = []
    manager = await reconciled(client, seen)
    await until(lambda: any("already exists" in text for one in seen for text in one))
    await manager.stop()
    assert not (await client.get(SECRET, "child", "default"))["metadata"].get("ownerReferences")
