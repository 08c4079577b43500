"""The shell around a reconciler: children that are made once, refusals, missing rights, statuses of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from danlu.client.client import Client
from danlu.meta import owners
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, DEPLOYMENT, EVENT, RESOURCE_QUOTA, SECRET
from danlu.runtime import (
    Children,
    ChildrenReconciler,
    CreatedNote,
    Creation,
    Outcome,
    Reconciler,
    Refusal,
    add_controller,
)
from danlu.runtime.blocked import MissingRights
from danlu.runtime.manager import Manager


def a_secret(parent: Object) -> Object:
    meta = {"name": "child", "namespace": "default", "ownerReferences": [owners.reference(parent, CONFIG_MAP)]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}


class OneSecret(Reconciler[list[str]]):
    """Wants one Secret for the ConfigMap `parent`."""

    kind = CONFIG_MAP
    owns = (SECRET,)

    def __init__(self, looks: list[list[str]]) -> None:
        self.looks = looks  # what it saw

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> list[str]:
        return [*(one["metadata"]["name"] for one in children[SECRET]), *(one.message for one in refused)]

    def decide(self, obj: Object, seen: list[str], now: datetime) -> Outcome:
        if obj["metadata"]["name"] != "parent":
            return Outcome()
        self.looks.append(seen)
        made = CreatedNote("Made", "DL-POD-CREATED")
        return Outcome() if "child" in seen else Outcome(create=[Creation(a_secret(obj), made, "NotMade")])


async def reconciled(client: Client, looks: list[list[str]]) -> Manager:
    manager = Manager(client)
    add_controller(manager, OneSecret(looks))
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


class Counts(ChildrenReconciler):
    """Writes into a Deployment's status how many replicas it wants."""

    kind = DEPLOYMENT

    def __init__(self) -> None:
        self.looks = 0

    def decide(self, obj: Object, seen: Children, now: datetime) -> Outcome:
        self.looks += 1
        return Outcome(status={**(obj.get("status") or {}), "replicas": obj["spec"]["replicas"]})


async def test_a_status_of_our_own_wakes_nobody_and_that_of_another_does(client: Client) -> None:
    manager, counts = Manager(client), Counts()
    controller = add_controller(manager, counts)
    await manager.start()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}}
    await client.create(DEPLOYMENT, {**made, "spec": spec})
    cache = manager.informer(DEPLOYMENT)

    def written() -> bool:
        found = cache.get("default", "d") or {}
        return (found.get("status") or {}).get("replicas") == 3 and controller.queue.idle

    await until(written)
    assert counts.looks == 1
    found = await client.get(DEPLOYMENT, "d", "default")
    await client.update_status(DEPLOYMENT, {**found, "status": {"replicas": 4}})
    await until(lambda: counts.looks == 2 and written())
    await manager.stop()
    assert counts.looks == 2


async def test_a_missing_right_is_told_beside_what_is_decided(client: Client) -> None:
    manager, counts = Manager(client), Counts()
    add_controller(manager, counts)
    manager.informer(DEPLOYMENT).forbidden = 'User "u" cannot list resource "deployments"'
    recorder = manager.recorder(counts.name)
    rights = MissingRights(manager, recorder, counts.watched, str.upper)
    meta = {"name": "d", "namespace": "default"}
    obj: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "status": {}}
    outcome = Outcome(status={"conditions": [{"type": "Running", "status": "True"}]}, status_delay_s=1.0)
    rights.tell(obj, outcome, rights.unreadable(obj))
    assert outcome.status is not None
    [blocked, running] = outcome.status["conditions"]
    assert (blocked["type"], blocked["reason"], running["type"]) == ("Blocked", "MissingRight", "Running")
    assert blocked["message"] == 'USER "U" CANNOT LIST RESOURCE "DEPLOYMENTS"'
    assert outcome.status_delay_s == 0.0, "that is new"
    over = {"metadata": obj["metadata"], "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    assert rights.unreadable(over) == ""
    freed = Outcome(status={"conditions": [blocked, running]})
    rights.tell(obj, freed, "")
    assert freed.status == {"conditions": [running]}
    await manager.stop()
