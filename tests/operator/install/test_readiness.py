"""Why a Deployment does not work yet, in words; and installing on the embedded Kubernetes. No controllers run here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.meta.kind import Object
from danlu.meta.wellknown import DEPLOYMENT, POD, SERVICE_ACCOUNT
from danlu.operator.install import plan, planexecution, preflight, readiness, removal
from danlu.operator.install.manifests import parts
from danlu.operator.install.options import InstallOptions

NAME = "danlu-operator"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False)
    cluster = Cluster(settings)
    await cluster.start()
    yield cluster.client
    await cluster.stop()


async def deployment(client: Client, status: Object) -> Object:
    (wanted,) = [
        part.object
        for part in parts(InstallOptions(namespace="default"))
        if part.object["kind"] == "Deployment" and part.object["metadata"]["name"] == NAME
    ]
    made = await client.create(DEPLOYMENT, wanted)
    return await client.patch(DEPLOYMENT, NAME, "default", {"status": status}, subresource="status") | {
        "spec": made["spec"]
    }


async def pod(client: Client, made: Object, status: Object) -> None:
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": NAME, "namespace": "default"}})
    template = made["spec"]["template"]
    wanted = {"metadata": {**template["metadata"], "name": "p", "namespace": "default"}, "spec": template["spec"]}
    await client.create(POD, wanted)
    await client.patch(POD, "p", "default", {"status": status}, subresource="status")


def waiting(reason: str, message: str = "", restarts: int = 0) -> Object:
    container = {
        "name": "operator",
        "image": "danlu:1",
        "imageID": "",
        "ready": False,
        "restartCount": restarts,
        "state": {"waiting": {"reason": reason, "message": message}},
    }
    return {"containerStatuses": [container]}


UNPLACED = {
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 cordoned."}]
}


@pytest.mark.parametrize(
    ("status", "reason", "remedy"),
    [
        (waiting("ImagePullBackOff", "not found"), "cannot get its image danlu:1: not found", "--image"),
        (waiting("CrashLoopBackOff", "back-off", 3), "ends again and again: back-off", "--previous"),
        (waiting("CreateContainerConfigError", "no secret"), "CreateContainerConfigError: no secret", "describe pod"),
        (UNPLACED, "finds no node: 0/3 nodes are available", "kubectl describe nodes"),
        ({}, "0 of 2 ready", ""),
    ],
)
async def test_the_reason(client: Client, status: Object, reason: str, remedy: str) -> None:
    made = await deployment(client, {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2})
    await pod(client, made, status)
    state = await readiness.look(client, "default", NAME)
    assert not state.ready
    assert reason in state.reason
    assert remedy in state.remedy


async def test_pods_that_cannot_be_made(client: Client) -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}
    await deployment(client, {"observedGeneration": 1, "conditions": [failure]})
    assert "exceeded quota: small" in (await readiness.look(client, "default", NAME)).reason


async def test_ready_and_what_is_told(client: Client) -> None:
    said: list[str] = []
    await deployment(
        client,
        {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1},
    )
    with pytest.raises(readiness.NotInstalled, match="1 of 2 ready"):
        await readiness.wait(client, [("default", NAME)], 0, said.append)
    whole = {"status": {"availableReplicas": 2}}
    await client.patch(DEPLOYMENT, NAME, "default", whole, subresource="status")
    await readiness.wait(client, [("default", NAME)], 10, said.append)
    assert said[-1] == "danlu-operator is ready"


# ---------------------------------------------------------------- on the embedded Kubernetes


async def install(client: Client, **options: Any) -> plan.InstallPlan:
    chosen = InstallOptions(**options)
    made = await plan.make(client, [*parts(chosen), planexecution.memory(chosen.namespace, {})])
    await planexecution.carry_out(client, made, lambda _: None)
    return made


async def test_the_embedded_kubernetes_is_a_cluster_too(client: Client) -> None:
    first = await install(client)
    assert {change.action for change in first.changes} == {"create"}
    second = await plan.make(client, [*parts(InstallOptions()), planexecution.memory("danlu-system", {})])
    assert not second.wanted
    changed = await install(client, replicas=1, console=False)
    assert {change.title for change in changed.wanted if change.action == "delete"} >= {
        "Deployment danlu-system/danlu-console",
        "Service danlu-system/danlu-console",
    }
    assert [one.namespace for one in await planexecution.remembered(client)] == ["danlu-system"]
    found = await removal.look(client, "danlu-system")
    await removal.take_away(client, found, data=False, tell=lambda _: None)
    assert not await plan.installed(client)


async def test_danlu_up_is_told_from_a_cluster(client: Client) -> None:
    """It looks after the kinds itself: a second operator is refused, definitions alone are not."""
    await install(client)
    options = InstallOptions()
    found = await preflight.findings(preflight.CheckAnswer(client, options, parts(options)))
    assert [one for one in found if one.fatal and "danlu up" in one.what]
    definitions = [part for part in parts(options) if part.component == "crds"]
    assert not [
        one for one in await preflight.findings(preflight.CheckAnswer(client, options, definitions)) if one.fatal
    ]


@pytest.mark.parametrize(("version", "old"), [("v1.28.15-gke.1", True), ("v1.29.0", False), ("v1.36.3+k3s1", False)])
async def test_an_old_cluster_is_refused(client: Client, version: str, old: bool) -> None:
    options = InstallOptions()
    asked = preflight.CheckAnswer(client, options, parts(options))
    found = [one async for one in preflight.about_version(asked, {"gitVersion": version})]
    assert [one.fatal for one in found] == ([True] if old else [])
