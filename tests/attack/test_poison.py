"""Poison objects: specs whose numbers ask for more than any machine has. They cost what exists, and can be deleted.

A person with rights in one project writes them all. None may stop the API, fill the memory, or outlive a restart as
something that stops the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.controllers import pods as states
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from danlu.settings import ClusterSettings

BILLION = 1_000_000_000
LARGEST_INT32, LARGEST_INT64 = 2**31 - 1, 2**63 - 1
WAIT_S = 60.0


@pytest.fixture
def settings(tmp_path: Any) -> ClusterSettings:
    """With controllers and scheduler, and no node: nothing of what is asked for finds a place."""
    return ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_node=False)


async def until(what: str, look: Callable[[], Any]) -> Any:
    """Asks until the answer is true; `look` may be a coroutine function."""
    for _ in range(int(WAIT_S / 0.05)):
        answer = look()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited {WAIT_S:.0f} s in vain for {what}")


def template(**more: Any) -> Object:
    spec = {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}], **more}
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


def workload(kind: Kind, name: str = "poison", **spec: Any) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec},
    }


ASKING_FOR_A_BILLION = {
    "statefulset": (STATEFUL_SET, workload(STATEFUL_SET, replicas=BILLION, serviceName="x")),
    "statefulset at once": (
        STATEFUL_SET,
        workload(STATEFUL_SET, replicas=BILLION, serviceName="x", podManagementPolicy="Parallel"),
    ),
    "statefulset from the last ordinal on": (
        STATEFUL_SET,
        workload(STATEFUL_SET, replicas=LARGEST_INT32, serviceName="x", ordinals={"start": LARGEST_INT32 - 1}),
    ),
    "replicaset": (REPLICA_SET, workload(REPLICA_SET, replicas=LARGEST_INT32)),
    "replicationcontroller": (
        REPLICATION_CONTROLLER,
        workload(REPLICATION_CONTROLLER, replicas=BILLION, selector={"app": "x"}),
    ),
    "deployment": (
        DEPLOYMENT,
        workload(
            DEPLOYMENT,
            replicas=BILLION,
            strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": BILLION, "maxUnavailable": "100%"}},
        ),
    ),
    "job": (
        JOB,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "poison", "namespace": "default"},
            "spec": {
                "parallelism": BILLION,
                "completions": LARGEST_INT32,
                "backoffLimit": LARGEST_INT32,
                "activeDeadlineSeconds": LARGEST_INT32,
                "ttlSecondsAfterFinished": LARGEST_INT32,
                "template": template(restartPolicy="Never"),
            },
        },
    ),
    "indexed job": (
        JOB,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "poison", "namespace": "default"},
            "spec": {
                "completionMode": "Indexed",
                "parallelism": 10_000,
                "completions": BILLION,
                "template": template(restartPolicy="Never"),
            },
        },
    ),
}


@pytest.mark.parametrize("poison", ASKING_FOR_A_BILLION)
async def test_a_billion_replicas_cost_what_exists(client: Client, poison: str) -> None:
    kind, obj = ASKING_FOR_A_BILLION[poison]
    await client.create(kind, obj)
    some = await until("the first pod", lambda: _pods(client))
    # The API goes on answering, and what is made stays within bounds, however often the controller looks.
    for _ in range(20):
        await asyncio.sleep(0.1)
        some = await _pods(client)
        assert len(some) <= states.MOST_UNPLACED
    await client.delete(kind, "poison", "default", propagation="Background")
    await until("the poison to be gone", lambda: _is_gone(client, kind))


async def _pods(client: Client) -> list[Object]:
    return (await client.list(POD, "default")).items


async def _is_gone(client: Client, kind: Kind) -> bool:
    try:
        await client.get(kind, "poison", "default")
    except errors.NotFound:
        return True
    return False
