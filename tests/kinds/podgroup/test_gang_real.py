"""Gangs on a real Kubernetes: kube-scheduler reads the PodGroup that the job kinds write, and holds to it.

No node: nodes are objects that the test makes. Without the binaries of scripts/real-kubernetes the test is skipped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.servers import RealControlPlane
from tests.kinds.jobs import job

from danlu.client.client import Client
from danlu.client.config import load
from danlu.client.http import HttpTransport
from danlu.kinds import registry
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.pytorchjob.kind import KIND as PYTORCHJOB
from danlu.meta.kind import Object
from danlu.meta.wellknown import NODE, POD
from danlu.runtime.manager import Manager

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CACHE = Path(os.environ.get("DANLU_CACHE") or Path("~/.cache/danlu").expanduser()) / "go-binaries"
GATES = ("--feature-gates", "GenericWorkload=true,GangScheduling=true")
GPU = "nvidia.com/gpu"


class WithGangs(RealControlPlane):
    def _spawn(self, *words: object, log: str) -> None:
        more: tuple[object, ...] = GATES if log in ("kube-apiserver", "kube-scheduler") else ()
        if log == "kube-apiserver":
            more = (*more, "--runtime-config", "scheduling.k8s.io/v1alpha2=true")
        super()._spawn(*words, *more, log=log)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    folders = [*CACHE.glob("kubernetes-*"), *CACHE.glob("etcd-*")]
    if len(folders) < 2:
        pytest.skip("no real Kubernetes on this machine; scripts/real-kubernetes builds one")
    plane = WithGangs(tmp_path_factory.mktemp("real"), ":".join([*map(str, folders), os.environ["PATH"]]))
    plane.start()
    yield plane
    plane.stop()


@pytest.fixture
async def client(real: RealControlPlane) -> AsyncIterator[Client]:
    client = Client(HttpTransport(load(real.kubeconfig)))
    yield client
    await client.close()


async def add_node(client: Client, name: str, gpus: int) -> None:
    room = {"cpu": "8", "memory": "8Gi", "pods": "110", GPU: str(gpus)}
    made = await client.create(NODE, {"metadata": {"name": name}})
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is"}]
    status: Object = {"allocatable": room, "capacity": room, "conditions": ready}
    await client.patch(NODE, name, None, {"status": status}, subresource="status")
    await client.patch(NODE, made["metadata"]["name"], None, {"spec": {"taints": None}})


def role(replicas: int) -> dict[str, Any]:
    container = {"name": "pytorch", "image": "a", "resources": {"limits": {GPU: 1}}}
    anywhere = [{"operator": "Exists"}]  # nobody sends heartbeats for these nodes
    return {"replicas": replicas, "template": {"spec": {"containers": [container], "tolerations": anywhere}}}


async def pods(client: Client) -> list[Object]:
    return (await client.list(POD, "default")).items


async def test_all_pods_of_a_job_are_placed_at_once(client: Client) -> None:
    await registry.install(client, (PYTORCHJOB, *registry.T9K_SCHEDULER))  # their rules hold on a real server too
    manager = Manager(client)
    registry.add_controllers(manager, PlatformSettings(gang="kube"), (PYTORCHJOB,))
    await manager.start()
    try:
        await add_node(client, "n1", 2)
        roles = {"Master": role(1), "Worker": role(2)}
        await client.create(PYTORCHJOB.kind, job("PyTorchJob", "gang", roles), "default")
        async with asyncio.timeout(120):
            while not await _all_refused(client):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        assert not any(pod["spec"].get("nodeName") for pod in await pods(client))
        await add_node(client, "n2", 1)
        async with asyncio.timeout(120):
            while not all(pod["spec"].get("nodeName") for pod in await pods(client)):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    finally:
        await manager.stop()


async def _all_refused(client: Client) -> bool:
    """Each of the three has been tried, and told that it does not fit."""
    found = await pods(client)
    told = [
        one
        for pod in found
        for one in (pod.get("status") or {}).get("conditions") or ()
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
    return len(told) == 3
