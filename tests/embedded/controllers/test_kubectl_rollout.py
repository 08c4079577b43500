"""`kubectl rollout`, `scale`, `wait` and `create job` as people type them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.embedded.controllers.conftest import World

from danlu.meta.wellknown import POD

Kubectl = Callable[..., Awaitable[subprocess.CompletedProcess[str]]]


@pytest.fixture
async def kubelet(world: World) -> AsyncIterator[None]:
    """Every pod runs as soon as it is there, and goes when it is asked to."""

    async def live() -> None:
        while True:
            await world.bury()
            pods = [pod for pod in await world.pods() if pod["status"]["phase"] == "Pending"]
            await world.run(*pods)
            await asyncio.sleep(0.05)

    living = asyncio.create_task(live())
    yield
    living.cancel()
    await asyncio.gather(living, return_exceptions=True)


@pytest.mark.usefixtures("kubelet")
async def test_the_life_of_a_deployment(world: World, kubectl: Kubectl) -> None:
    await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    done = await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert 'deployment "web" successfully rolled out' in done.stdout
    await kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    history = await kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.stdout.splitlines()[2:] if line.strip()] == ["1", "2"]
    undone = await kubectl("rollout", "undo", "deployment/web")
    assert "rolled back" in undone.stdout
    await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    images = {pod["spec"]["containers"][0]["image"] for pod in await world.pods(app="web")}
    assert images == {"nginx:1"}
    before = {pod["metadata"]["name"] for pod in await world.pods(app="web")}
    await kubectl("rollout", "restart", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert not before & {pod["metadata"]["name"] for pod in await world.pods(app="web")}
    await kubectl("scale", "deployment/web", "--replicas=3")
    await kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web", "--timeout=30s")
    shown = await kubectl("get", "deployment", "web", "--no-headers")
    assert shown.stdout.split()[:4] == ["web", "3/3", "3", "3"]


@pytest.mark.usefixtures("kubelet")
async def test_undo_of_a_stateful_set(world: World, kubectl: Kubectl) -> None:
    manifest = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "db:1"}]}
"""
    await kubectl("apply", "-f", "-", stdin=manifest)
    await kubectl("rollout", "status", "statefulset/db", "--timeout=30s")
    await kubectl("apply", "-f", "-", stdin=manifest.replace("db:1", "db:2"))
    await kubectl("rollout", "status", "statefulset/db", "--timeout=30s")
    await kubectl("rollout", "undo", "statefulset/db")
    await kubectl("rollout", "status", "statefulset/db", "--timeout=30s")
    assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods(app="db")} == {"db:1"}


async def test_waiting_for_a_job(world: World, kubectl: Kubectl) -> None:
    await kubectl("create", "job", "hello", "--image=busybox", "--", "true")
    (pod,) = await world.some_pods(1)
    await world.finish(pod)
    await kubectl("wait", "--for=condition=complete", "job/hello", "--timeout=30s")
    described = await kubectl("describe", "job", "hello")
    assert "Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed" in described.stdout
    assert "SuccessfulCreate" in described.stdout
    assert len((await world.client.list(POD, "default")).items) == 1
