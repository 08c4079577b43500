"""The scheduler against a real API server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.scheduler.scheduler import Scheduler
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT, NODE, POD, PRIORITY_CLASS, SERVICE_ACCOUNT
from danlu.runtime.manager import Manager

from .gangworlds import NAME, Gang, Rules
from .worlds import node, pod


@pytest.fixture
async def scheduler(cluster: Cluster, client: Client) -> AsyncIterator[Scheduler]:
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": "default"}})
    manager = Manager(client)
    scheduler = Scheduler(manager, client)
    await manager.start()
    await scheduler.start()
    scheduler.use(Rules([Gang("default/t", "t", 3)]))
    yield scheduler
    await scheduler.stop()
    await manager.stop()


async def add_node(client: Client, made: Object) -> None:
    created = await client.create(NODE, made)
    await client.update_status(NODE, {**created, "status": {**created.get("status", {}), **made["status"]}})


async def add_pod(client: Client, made: Object) -> Object:
    made["metadata"].pop("uid", None)
    return await client.create(POD, made)


async def until(client: Client, name: str, holds: Callable[[Object], Any]) -> Object:
    async with asyncio.timeout(10):
        while True:
            found = await client.get(POD, name, "default")
            if holds(found):
                return found
            await asyncio.sleep(0.005)


def is_bound(found: Object) -> bool:
    return bool(found["spec"].get("nodeName"))


def why_not(found: Object) -> str:
    condition = conditions.get(found.get("status", {}).get("conditions"), "PodScheduled")
    return condition["message"] if condition and condition["status"] == "False" else ""


async def test_a_pod_is_bound(scheduler: Scheduler, client: Client) -> None:
    await add_node(client, node("n1"))
    await add_pod(client, pod("p"))
    found = await until(client, "p", is_bound)
    assert found["spec"]["nodeName"] == "n1"
    assert conditions.is_true(found["status"]["conditions"], "PodScheduled")
    async with asyncio.timeout(10):
        while not (events := (await client.list(EVENT, "default")).items):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert events[0]["reason"] == "Scheduled"
    assert events[0]["message"] == "Successfully assigned default/p to n1"


async def test_a_refused_pod_says_why_and_is_placed_when_there_is_room(scheduler: Scheduler, client: Client) -> None:
    await add_pod(client, pod("p", requests={"nvidia.com/gpu": "1"}))
    assert why_not(await until(client, "p", why_not)) == "no nodes available to schedule pods"
    await add_node(client, node("n1"))
    found = await until(client, "p", lambda found: why_not(found).startswith("0/1"))
    assert why_not(found) == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert (conditions.get(found["status"]["conditions"], "PodScheduled") or {})["reason"] == "Unschedulable"
    await add_node(client, node("n2", extended={"nvidia.com/gpu": "1"}))
    assert (await until(client, "p", is_bound))["spec"]["nodeName"] == "n2"


async def test_room_comes_back_when_a_pod_goes(scheduler: Scheduler, client: Client) -> None:
    await add_node(client, node("n1", cpu="1"))
    await add_pod(client, pod("p", requests={"cpu": "1"}))
    await until(client, "p", is_bound)
    await add_pod(client, pod("q", requests={"cpu": "1"}))
    await until(client, "q", why_not)
    await client.delete(POD, "p", "default", grace=0)
    await until(client, "q", is_bound)


async def test_preemption(scheduler: Scheduler, client: Client) -> None:
    await client.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 1000})
    await add_node(client, node("n1", cpu="1"))
    await add_pod(client, pod("low", requests={"cpu": "1"}))
    await until(client, "low", is_bound)
    await add_pod(client, pod("high", requests={"cpu": "1"}, priorityClassName="high"))
    low = await until(client, "low", lambda found: found["metadata"].get("deletionTimestamp"))
    assert conditions.is_true(low["status"]["conditions"], "DisruptionTarget")
    high = await until(client, "high", lambda found: found["status"].get("nominatedNodeName"))
    assert high["status"]["nominatedNodeName"] == "n1"
    assert why_not(high) == "0/1 nodes are available: 1 Insufficient cpu."
    await client.delete(POD, "low", "default", grace=0)
    await until(client, "high", is_bound)


async def test_other_schedulers_and_gates_are_left_alone(scheduler: Scheduler, client: Client) -> None:
    await add_node(client, node("n1"))
    await add_pod(client, pod("theirs", schedulerName="custom"))
    await add_pod(client, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    await add_pod(client, pod("ours"))
    await until(client, "ours", is_bound)
    assert not is_bound(await client.get(POD, "theirs", "default"))
    gated = await client.get(POD, "gated", "default")
    assert not is_bound(gated)
    await client.patch(POD, "gated", "default", {"spec": {"schedulingGates": None}})
    await until(client, "gated", is_bound)


async def test_a_gang_arrives_one_by_one(scheduler: Scheduler, client: Client) -> None:
    await add_node(client, node("n1", cpu="2"))
    for i in range(2):
        await add_pod(client, pod(f"g{i}", labels={"gang": "t"}, requests={"cpu": "1"}, schedulerName=NAME))
    await until(client, "g1", lambda found: "2 of at least 3 exist" in why_not(found))
    await add_pod(client, pod("g2", labels={"gang": "t"}, requests={"cpu": "1"}, schedulerName=NAME))
    await until(client, "g0", lambda found: "3 cpu asked at once, 2 exist" in why_not(found))
    await add_node(client, node("n2", cpu="1"))
    await asyncio.gather(*(until(client, f"g{i}", is_bound) for i in range(3)))
    async with asyncio.timeout(10):
        while True:
            events = (await client.list(EVENT, "default", fields="reason=Scheduled")).items
            if len(events) == 3:
                break
            await asyncio.sleep(0.005)
    assert {event["source"]["component"] for event in events} == {NAME}


async def test_eight_hundred_pods_on_fifty_nodes(scheduler: Scheduler, client: Client) -> None:
    await asyncio.gather(*(add_node(client, node(f"n{i}", cpu="64", memory="64Gi")) for i in range(50)))
    await asyncio.gather(*(add_pod(client, pod(f"p{i}", requests={"cpu": "1"})) for i in range(800)))
    async with asyncio.timeout(30):
        while len(scheduler.queue):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    counts = [len(info.pods) for info in scheduler.cache.real.values()]
    assert sum(counts) == 800
    assert max(counts) - min(counts) <= 1
