"""Queues and groups on the embedded cluster, without a node: placed pods stay as the scheduler left them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.kinds._gang import markers
from danlu.kinds._gang.markers import POD_GROUP, QUEUE, SYSTEM_NAMESPACE
from danlu.kinds.pytorchtrainingjob.schema import PYTORCHTRAININGJOB
from danlu.meta import conditions
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import DEPLOYMENT, EVENT, NAMESPACE, NODE, POD
from danlu.standalone.embeddedplatform import start_platform

GPU = "nvidia.com/gpu"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=True, run_node=False))
    await cluster.start()
    platform = await start_platform(cluster)
    yield cluster
    await platform.stop()
    await cluster.stop()


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return cluster.client


async def add_node(client: Client, name: str, gpus: int, **more: Any) -> None:
    room = {"cpu": "64", "memory": "256Gi", "pods": "500", GPU: str(gpus)}
    made = await client.create(NODE, {"metadata": {"name": name, **more}})
    ready = [{"type": "Ready", "status": "True"}]
    await client.update_status(NODE, {**made, "status": {"allocatable": room, "capacity": room, "conditions": ready}})


async def add_queue(client: Client, name: str, **spec: Any) -> None:
    made = {"metadata": {"name": name}, "spec": {"namespaceSelector": {}, **spec}}
    await client.create(QUEUE, made, SYSTEM_NAMESPACE)


async def add_group(client: Client, name: str, count: int, gpus: int = 1, **spec: Any) -> None:
    await client.create(POD_GROUP, {"metadata": {"name": name}, "spec": {"minMember": count, **spec}}, "default")
    await asyncio.gather(*(add_pod(client, f"{name}-{i}", name, gpus) for i in range(count)))


async def add_pod(client: Client, name: str, group: str = "", gpus: int = 1, queue: str = "") -> None:
    labels = {key: value for key, value in ((markers.GROUP_NAME, group), (markers.QUEUE_NAME, queue)) if value}
    asked = {"requests": {GPU: str(gpus), "cpu": "100m"}, "limits": {GPU: str(gpus)}}
    spec = {"schedulerName": markers.SCHEDULER, "containers": [{"name": "c", "image": "x", "resources": asked}]}
    await client.create(POD, {"metadata": {"name": name, "labels": labels}, "spec": spec}, "default")


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(15):
        while not (found := await look()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return found


async def placed(client: Client, group: str) -> int:
    pods = (await client.list(POD, "default", labels=f"{markers.GROUP_NAME}={group}")).items
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods if not pod["metadata"].get("deletionTimestamp"))


async def reason(client: Client, kind: Kind, name: str, type: str) -> str:
    found = conditions.get(((await client.get(kind, name, "default")).get("status") or {}).get("conditions"), type)
    return str(found["message"]) if found and found["status"] == "False" else ""


async def group_told(client: Client, name: str, words: str) -> None:
    async def told() -> bool:
        return words in await reason(client, POD_GROUP, name, "GroupScheduled")

    await until(told)


async def all_placed(client: Client, group: str, count: int) -> None:
    async def done() -> bool:
        return await placed(client, group) == count

    await until(done)


async def test_a_group_in_the_default_queue(client: Client) -> None:
    await add_node(client, "n1", 4)
    await add_group(client, "mnist", 4)
    await all_placed(client, "mnist", 4)

    async def counted() -> bool:
        status = (await client.get(POD_GROUP, "mnist", "default")).get("status") or {}
        queue = (await client.get(QUEUE, "default", SYSTEM_NAMESPACE)).get("status") or {}
        ready = conditions.is_true(status.get("conditions"), "GroupScheduled")
        return ready and (queue.get("allocated") or {}).get(GPU) == "4"

    await until(counted)


async def test_pods_may_come_before_their_group(client: Client) -> None:
    await add_node(client, "n1", 4)
    await add_pod(client, "early", "later")
    words = "PodGroup later does not exist in namespace default: the pod waits for it"

    async def told() -> bool:
        return await reason(client, POD, "early", "PodScheduled") == words

    await until(told)
    await client.create(POD_GROUP, {"metadata": {"name": "later"}, "spec": {"minMember": 1}}, "default")
    await all_placed(client, "later", 1)


async def test_why_a_group_waits(client: Client) -> None:
    await add_node(client, "n1", 4)
    await add_queue(client, "small", quota={"requests": {GPU: 2}})
    await add_queue(client, "shut", closed=True)
    await add_queue(client, "other", namespaceSelector={"matchLabels": {"team": "b"}})
    for queue, count in (("small", 3), ("shut", 1), ("other", 1), ("none", 1)):
        await add_group(client, queue, count, queue=queue)
    await add_group(client, "huge", 2, gpus=4)
    await group_told(client, "small", "group small can never run in queue small: 3 nvidia.com/gpu asked at once")
    await group_told(client, "shut", "queue shut is closed")
    await group_told(client, "other", "namespace default may not use queue other: its namespaceSelector does not")
    await group_told(client, "none", "queue none does not exist; there are: default, other, shut, small")
    await group_told(client, "huge", "never will be as they are: 8 nvidia.com/gpu asked at once, 4 exist.")
    await client.patch(QUEUE, "shut", SYSTEM_NAMESPACE, {"spec": {"closed": False}})
    await all_placed(client, "shut", 1)
    await client.patch(QUEUE, "small", SYSTEM_NAMESPACE, {"spec": {"quota": {"requests": {GPU: 3}}}})
    await all_placed(client, "small", 3)
    events = (await client.list(EVENT, "default", fields="involvedObject.kind=PodGroup,involvedObject.name=huge")).items
    assert any("8 nvidia.com/gpu asked" in event["message"] for event in events)


async def test_a_higher_queue_takes_the_room(client: Client) -> None:
    await add_node(client, "n1", 4)
    await add_queue(client, "prod", priority=80)
    await add_group(client, "low", 4)
    await all_placed(client, "low", 4)
    await add_group(client, "high", 2, queue="prod")

    async def cleared() -> bool:
        pods = (await client.list(POD, "default", labels=f"{markers.GROUP_NAME}=low")).items
        return all(pod["metadata"].get("deletionTimestamp") for pod in pods)

    await until(cleared)
    for i in range(4):
        await client.delete(POD, f"low-{i}", "default", grace=0)
    await all_placed(client, "high", 2)
    events = (await client.list(EVENT, "default", fields="reason=Preempted")).items
    assert events[0]["message"] == "Preempted: group high of queue prod (priority 80) needs the room"
    assert events[0]["source"]["component"] == markers.SCHEDULER


async def test_a_new_start_knows_the_groups_that_run(tmp_path: Path) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=True, run_node=False)
    for first in (True, False):
        cluster = Cluster(settings)
        await cluster.start()
        platform = await start_platform(cluster)
        client = cluster.client
        try:
            if first:
                await add_node(client, "n1", 4)
                await add_queue(client, "small", quota={"requests": {GPU: 3}})
                await add_group(client, "runs", 3, queue="small")
                await all_placed(client, "runs", 3)
                continue
            await add_group(client, "more", 1, queue="small")
            await group_told(client, "more", "quota of queue small: 1 nvidia.com/gpu asked at once, 0 of 3 left")
            await client.delete(POD, "runs-0", "default", grace=0)
            await all_placed(client, "more", 1)
            await client.delete(POD, "more-0", "default", grace=0)
            await add_pod(client, "runs-0", "runs")  # rejoins alone
            await all_placed(client, "runs", 3)
        finally:
            await platform.stop()
            await cluster.stop()


async def test_too_long_in_the_queue(client: Client) -> None:
    await add_node(client, "n1", 4)
    await add_queue(client, "short", maxDuration="1h")
    await add_pod(client, "alone", queue="short")
    labels = {"app": "x", markers.QUEUE_NAME: "short"}
    pod = {"schedulerName": markers.SCHEDULER, "containers": [{"name": "c", "image": "x"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    await client.create(DEPLOYMENT, {"metadata": {"name": "served"}, "spec": spec}, "default")

    async def both() -> list[Object]:
        pods = (await client.list(POD, "default")).items
        return pods if len(pods) == 2 and all(pod["spec"].get("nodeName") for pod in pods) else []

    for found in await until(both):
        status = {"phase": "Running", "startTime": "2020-01-01T00:00:00Z"}
        await client.patch(POD, found["metadata"]["name"], "default", {"status": status}, subresource="status")

    async def ended() -> bool:
        deployment = await client.get(DEPLOYMENT, "served", "default")
        alone = (await client.get(POD, "alone", "default"))["metadata"]
        return deployment["spec"]["replicas"] == 0 and bool(alone.get("deletionTimestamp"))

    await until(ended)


@pytest.mark.slow
async def test_two_hundred_groups_of_four(cluster: Cluster, client: Client) -> None:
    """All of them wait at first; then there is room for all."""
    began = time.perf_counter()
    await asyncio.gather(*(add_group(client, f"g{i}", 4) for i in range(200)))
    created = time.perf_counter()
    for i in range(10):
        await add_node(client, f"n{i}", 80)
    async with asyncio.timeout(60):
        while len(cluster.scheduler.queue):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    took = time.perf_counter() - created
    print(f"created in {created - began:.1f} s, placed in {took:.2f} s: {800 / took:.0f} pods/s")
    assert sum(len(node.pods) for node in cluster.scheduler.cache.real.values()) == 800


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"team": "vision"}}, True),
        ({"matchLabels": {"team": "speech"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["vision", "speech"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["vision"]}]}, False),
        ({"matchExpressions": [{"key": "room", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "room", "operator": "Exists"}]}, False),
    ],
)
async def test_who_may_not_use_a_queue_hears_it_at_once(
    client: Client, selector: dict[str, Any] | None, allowed: bool
) -> None:
    await client.create(NAMESPACE, {"metadata": {"name": "demo", "labels": {"team": "vision"}}})
    spec = {"namespaceSelector": selector} if selector is not None else {}
    await client.create(QUEUE, {"metadata": {"name": "gpu"}, "spec": spec}, SYSTEM_NAMESPACE)
    container = {"name": "pytorch", "image": "x"}
    replicas = [{"type": "worker", "template": {"spec": {"containers": [container]}}}]
    job: Object = {"metadata": {"name": "mnist"}, "spec": {"replicaSpecs": replicas}}
    await client.create(PYTORCHTRAININGJOB, job, "demo")  # asks for no queue
    asks = {"metadata": {"name": "asks"}, "spec": {**job["spec"], "scheduler": {"t9kScheduler": {"queue": "gpu"}}}}
    if allowed:
        await client.create(PYTORCHTRAININGJOB, asks, "demo")
        return
    with pytest.raises(errors.Forbidden, match="R001: namespace demo may not use queue gpu"):
        await client.create(PYTORCHTRAININGJOB, asks, "demo")
