"""ReplicaSets, Deployments, StatefulSets and DaemonSets on a real API server."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.embedded.controllers.conftest import World, template

from danlu.meta import conditions, objects, owners
from danlu.meta.kind import Object
from danlu.meta.wellknown import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    RESOURCE_QUOTA,
    STATEFUL_SET,
)


def selected(**fields: Any) -> Object:
    return {"selector": {"matchLabels": {"app": "a"}}, "template": template(app="a"), **fields}


async def settle(world: World, rounds: int = 40) -> None:
    """Plays kubelet until nothing moves: every pod runs, every deleted pod goes."""
    quiet = 0
    while quiet < 8 and rounds:
        rounds -= 1
        await world.bury()
        waiting = [pod for pod in await world.pods() if pod["status"]["phase"] == "Pending"]
        await world.run(*waiting)
        quiet = 0 if waiting else quiet + 1
        await asyncio.sleep(0.05)


# -- ReplicaSet


async def test_a_replica_set_keeps_its_number(world: World) -> None:
    await world.create(REPLICA_SET, "r", selected(replicas=3))
    pods = await world.some_pods(3, app="a")
    assert all(owners.controller_of(pod)["name"] == "r" for pod in pods)  # type: ignore[index]
    await world.run(*pods)
    await world.status(REPLICA_SET, "r", replicas=3, readyReplicas=3, availableReplicas=3, fullyLabeledReplicas=3)
    await world.client.delete(POD, pods[0]["metadata"]["name"], "default", grace=0)
    await world.until(lambda: _other_pods(world, pods))
    await world.client.patch(REPLICA_SET, "r", "default", {"spec": {"replicas": 1}})
    await world.some_pods(1)
    await world.status(REPLICA_SET, "r", replicas=1)


async def _other_pods(world: World, before: list[Object]) -> bool:
    names = {pod["metadata"]["name"] for pod in before}
    now = {pod["metadata"]["name"] for pod in await world.pods()}
    return len(now) == 3 and now != names


async def test_pods_that_match_are_adopted_and_released(world: World) -> None:
    stray = await world.create(POD, "stray", template(app="a")["spec"], labels={"app": "a"})
    await world.create(REPLICA_SET, "r", selected(replicas=1))

    async def owned() -> bool:
        return owners.controller_of(await world.get(POD, "stray")) is not None

    await world.until(owned)
    assert [pod["metadata"]["uid"] for pod in await world.pods()] == [stray["metadata"]["uid"]]
    await world.client.patch(POD, "stray", "default", {"metadata": {"labels": {"app": "b"}}})
    await world.some_pods(1, app="a")

    async def released() -> bool:
        return owners.controller_of(await world.get(POD, "stray")) is None

    await world.until(released)


# -- Deployment


async def change(world: World, image: str) -> None:
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await world.client.patch(DEPLOYMENT, "d", "default", body, type="strategic")


async def images(world: World) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in await world.pods()}


async def test_a_rolling_update_and_back(world: World) -> None:
    await world.create(DEPLOYMENT, "d", selected(replicas=3))
    await settle(world)
    deployment = await world.status(DEPLOYMENT, "d", readyReplicas=3, availableReplicas=3, updatedReplicas=3)
    assert objects.annotations_of(deployment)["deployment.kubernetes.io/revision"] == "1"
    progressing = conditions.get(deployment["status"]["conditions"], "Progressing")
    assert progressing is not None
    assert progressing["reason"] == "NewReplicaSetAvailable"
    await change(world, "busybox:2")
    await settle(world)
    await world.status(DEPLOYMENT, "d", updatedReplicas=3, availableReplicas=3, replicas=3)
    assert await images(world) == {"busybox:2"}
    sets = (await world.client.list(REPLICA_SET, "default")).items
    revisions = {objects.annotations_of(one)["deployment.kubernetes.io/revision"] for one in sets}
    assert revisions == {"1", "2"}
    assert all(one["metadata"]["labels"]["pod-template-hash"] in one["metadata"]["name"] for one in sets)
    await change(world, "busybox")
    await settle(world)
    assert await images(world) == {"busybox"}
    sets = (await world.client.list(REPLICA_SET, "default")).items
    assert len(sets) == 2  # the old replica set is used again, as revision 3
    assert max(int(objects.annotations_of(one)["deployment.kubernetes.io/revision"]) for one in sets) == 3
    assert "ScalingReplicaSet" in await world.reasons("d")


async def test_recreate_waits_for_the_last_old_pod(world: World) -> None:
    await world.create(DEPLOYMENT, "d", selected(replicas=2, strategy={"type": "Recreate"}))
    await settle(world)
    await change(world, "busybox:2")
    await world.some_pods(0)
    await asyncio.sleep(0.1)
    assert await world.pods() == []  # the old ones are still ending
    await world.bury()
    await world.some_pods(2)
    assert await images(world) == {"busybox:2"}


async def test_scaling_pausing_and_history(world: World) -> None:
    await world.create(DEPLOYMENT, "d", selected(replicas=1, revisionHistoryLimit=1))
    await settle(world)
    await world.client.patch(DEPLOYMENT, "d", "default", {"spec": {"replicas": 2}})
    await settle(world)
    await world.status(DEPLOYMENT, "d", replicas=2, availableReplicas=2)
    await world.client.patch(DEPLOYMENT, "d", "default", {"spec": {"paused": True}})
    paused = await world.condition(DEPLOYMENT, "d", "Progressing", "Unknown")
    assert paused["reason"] == "DeploymentPaused"
    await change(world, "busybox:2")
    await settle(world)
    assert await images(world) == {"busybox"}
    await world.client.patch(DEPLOYMENT, "d", "default", {"spec": {"paused": False}})
    await settle(world)
    assert await images(world) == {"busybox:2"}
    await change(world, "busybox:3")
    await settle(world)

    async def truncated() -> bool:
        return len((await world.client.list(REPLICA_SET, "default")).items) == 2

    await world.until(truncated)


async def test_a_rollout_that_does_not_move_is_called_stuck(world: World) -> None:
    await world.create(DEPLOYMENT, "d", selected(replicas=1, progressDeadlineSeconds=5))
    await world.some_pods(1)
    await world.condition(DEPLOYMENT, "d", "Progressing")
    world.ahead += timedelta(seconds=10)
    await world.client.patch(DEPLOYMENT, "d", "default", {"metadata": {"labels": {"look": "again"}}})
    stuck = await world.condition(DEPLOYMENT, "d", "Progressing", "False")
    assert stuck["reason"] == "ProgressDeadlineExceeded"
    assert stuck["message"].endswith("has timed out progressing.")


# -- StatefulSet


def stateful(**fields: Any) -> Object:
    return selected(serviceName="s", **fields)


async def test_pods_of_a_stateful_set_come_in_order(world: World) -> None:
    await world.create(STATEFUL_SET, "s", stateful(replicas=2))
    (first,) = await world.some_pods(1)
    assert first["metadata"]["name"] == "s-0"
    assert first["spec"]["hostname"] == "s-0"
    assert first["spec"]["subdomain"] == "s"
    assert first["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "s-0"
    assert first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    await asyncio.sleep(0.1)
    assert len(await world.pods()) == 1  # s-1 waits for s-0
    await world.run(first)
    await world.some_pods(2)
    await settle(world)
    await world.status(STATEFUL_SET, "s", replicas=2, readyReplicas=2, currentReplicas=2, updatedReplicas=2)
    await world.client.patch(STATEFUL_SET, "s", "default", {"spec": {"replicas": 1}})
    (left,) = await world.some_pods(1)
    assert left["metadata"]["name"] == "s-0"


async def test_parallel_pods_come_together(world: World) -> None:
    await world.create(STATEFUL_SET, "s", stateful(replicas=3, podManagementPolicy="Parallel"))
    assert {pod["metadata"]["name"] for pod in await world.some_pods(3)} == {"s-0", "s-1", "s-2"}


async def test_an_update_goes_from_the_highest_down_to_the_partition(world: World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    await world.create(STATEFUL_SET, "s", stateful(replicas=3, updateStrategy=strategy))
    await settle(world)
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}}}
    await world.client.patch(STATEFUL_SET, "s", "default", body, type="strategic")
    await settle(world, 80)
    shown = {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await world.pods()}
    assert shown == {"s-0": "busybox", "s-1": "busybox:2", "s-2": "busybox:2"}
    stateful_set = await world.status(STATEFUL_SET, "s", updatedReplicas=2, currentReplicas=1)
    assert stateful_set["status"]["currentRevision"] != stateful_set["status"]["updateRevision"]
    await world.client.patch(
        STATEFUL_SET, "s", "default", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    )
    await settle(world, 80)
    done = await world.status(STATEFUL_SET, "s", updatedReplicas=3, currentReplicas=3)
    assert done["status"]["currentRevision"] == done["status"]["updateRevision"]
    numbers = [one["revision"] for one in (await world.client.list(CONTROLLER_REVISION, "default")).items]
    assert sorted(numbers) == [1, 2]


async def test_claims_outlive_pods_unless_the_policy_says_otherwise(world: World) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await world.create(STATEFUL_SET, "s", stateful(replicas=1, volumeClaimTemplates=[claim]))
    (pod,) = await world.some_pods(1)
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-s-0"
    made = await world.get(PERSISTENT_VOLUME_CLAIM, "data-s-0")
    assert made["metadata"]["labels"] == {"app": "a"}
    assert not made["metadata"].get("ownerReferences")
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    await world.run(pod)
    await world.client.patch(STATEFUL_SET, "s", "default", {"spec": {"persistentVolumeClaimRetentionPolicy": policy}})

    async def is_owned() -> bool:
        held = owners.references(await world.get(PERSISTENT_VOLUME_CLAIM, "data-s-0"))
        return [reference["kind"] for reference in held] == ["StatefulSet"]

    await world.until(is_owned)


# -- DaemonSet


async def add_node(world: World, name: str, **spec: Any) -> None:
    labels = {"kubernetes.io/hostname": name}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}
    await world.client.create(NODE, node)


async def test_one_pod_on_each_node_that_may_have_one(world: World) -> None:
    await add_node(world, "n1")
    await add_node(world, "n2")
    await add_node(world, "n3", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    await world.create(DAEMON_SET, "ds", selected())
    pods = await world.some_pods(2)
    assert {_bound_to(pod) for pod in pods} == {"n1", "n2"}
    keys = {toleration["key"] for toleration in pods[0]["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in keys
    await world.run(*pods)
    await world.status(
        DAEMON_SET,
        "ds",
        desiredNumberScheduled=2,
        currentNumberScheduled=2,
        numberReady=2,
        numberAvailable=2,
        updatedNumberScheduled=2,
        numberMisscheduled=0,
    )
    await add_node(world, "n4")
    await world.some_pods(3)


def _bound_to(pod: Object) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


async def test_a_daemon_set_rolls_node_by_node(world: World) -> None:
    for name in ("n1", "n2"):
        await add_node(world, name)
    await world.create(DAEMON_SET, "ds", selected())
    await settle(world)
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}}}
    await world.client.patch(DAEMON_SET, "ds", "default", body, type="strategic")
    await world.some_pods(1)  # maxUnavailable 1: the other one serves on
    await settle(world)
    assert await images(world) == {"busybox:2"}
    await world.status(DAEMON_SET, "ds", updatedNumberScheduled=2, numberAvailable=2)


async def test_a_quota_that_refuses_pods_is_told(world: World) -> None:
    await world.create(RESOURCE_QUOTA, "q", {"hard": {"pods": "0"}})
    await world.client.patch(
        RESOURCE_QUOTA, "q", "default", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}, subresource="status"
    )
    await world.create(REPLICA_SET, "r", selected(replicas=5))
    failed = await world.condition(REPLICA_SET, "r", "ReplicaFailure")
    assert failed["reason"] == "FailedCreate"
    assert "exceeded quota" in failed["message"]
