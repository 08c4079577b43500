"""Controllers on a real API server, with the test in the place of scheduler and kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.controllers import daemonset, deployment, job, replicaset, statefulset
from danlu.embedded.controllers.daemonset import eligibility
from danlu.meta import conditions, objects
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import EVENT, POD
from danlu.runtime import Manager, utc_now

TIMEOUT_S = 20.0


class World:
    """The cluster as a test sees it: objects, pods that do what they are told, and a clock that can be turned."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ahead = timedelta()

    def clock(self) -> datetime:
        return utc_now() + self.ahead

    async def create(self, kind: Kind, name: str, spec: Object, **meta: Any) -> Object:
        metadata = {"name": name, "namespace": "default", **meta}
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        return await self.client.create(kind, made)

    async def get(self, kind: Kind, name: str) -> Object:
        return await self.client.get(kind, name, "default")

    async def pods(self, **labels: str) -> list[Object]:
        found = await self.client.list(POD, "default", labels=",".join(f"{k}={v}" for k, v in labels.items()))
        return [pod for pod in found.items if not objects.is_deleting(pod)]

    async def until(self, look: Callable[[], Any], what: str = "") -> Any:
        """What `look` answers, once that is neither None nor False; it is asked again and again for a bounded time."""
        deadline = asyncio.get_running_loop().time() + TIMEOUT_S
        while True:
            answer = await look()
            if answer is not None and answer is not False:
                return answer
            assert asyncio.get_running_loop().time() < deadline, f"never came true: {what or look}"
            await asyncio.sleep(0.02)

    async def some_pods(self, count: int, **labels: str) -> list[Object]:
        async def look() -> list[Object] | None:
            pods = await self.pods(**labels)
            return pods if len(pods) == count else None

        found: list[Object] = await self.until(look, f"{count} pods {labels}")
        return found

    async def status(self, kind: Kind, name: str, **wanted: Any) -> Object:
        async def look() -> Object | None:
            obj = await self.get(kind, name)
            status = obj.get("status") or {}
            return obj if all(status.get(field) == value for field, value in wanted.items()) else None

        found: Object = await self.until(look, f"{kind.kind} {name} {wanted}")
        return found

    async def condition(self, kind: Kind, name: str, type: str, status: str = "True") -> Object:
        async def look() -> Object | None:
            obj = await self.get(kind, name)
            held = conditions.get((obj.get("status") or {}).get("conditions"), type)
            return held if held is not None and held["status"] == status else None

        found: Object = await self.until(look, f"{kind.kind} {name} {type}={status}")
        return found

    async def reasons(self, name: str) -> list[str]:
        found = await self.client.list(EVENT, "default", fields=f"involvedObject.name={name}")
        return [event["reason"] for event in found.items]

    # -- the part of the kubelet

    async def run(self, *pods: Object) -> None:
        for pod in pods:
            await self._bind(pod)
            await self._set(pod, "Running", ready=True)

    async def _bind(self, pod: Object) -> None:
        """A pod that is on no node would be gone the moment it is deleted."""
        if not pod["spec"].get("nodeName"):
            name, node = pod["metadata"]["name"], eligibility.target(pod) or "node"
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": node}}
            await self.client.create_subresource(POD, name, "default", "binding", binding)

    async def finish(self, pod: Object, code: int = 0) -> None:
        await self._set(pod, "Failed" if code else "Succeeded", ready=False, code=code)

    async def gone(self, pod: Object) -> None:
        """The pod has ended after its deletion."""
        await self.client.delete(POD, pod["metadata"]["name"], "default", grace=0)

    async def bury(self) -> None:
        """Whatever pod was asked to end has ended."""
        found = await self.client.list(POD, "default")
        for pod in found.items:
            if objects.is_deleting(pod):
                await self.gone(pod)

    async def _set(self, pod: Object, phase: str, *, ready: bool, code: int | None = None) -> None:
        now = rfc3339(self.clock())
        held = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}]
        status: Object = {"phase": phase, "conditions": held}
        if code is not None:
            container = pod["spec"]["containers"][0]
            ended = {"exitCode": code, "finishedAt": now, "startedAt": now}
            status["containerStatuses"] = [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": ended},
                }
            ]
        name = pod["metadata"]["name"]
        await self.client.patch(POD, name, "default", {"status": status}, subresource="status")


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[World]:
    world = World(cluster.client)
    manager = Manager(cluster.component("system:kube-controller-manager"), clock=world.clock)
    manager.add_all((job.make, replicaset.make, deployment.make, statefulset.make, daemonset.make))
    await manager.start()
    yield world
    await manager.stop()


def template(**labels: str) -> Object:
    container = {"name": "main", "image": "busybox"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
