"""Pods that nobody else will ever remove: on a node that is gone, never placed, or finished and too many."""

from __future__ import annotations

import time

from danlu import errors
from danlu.meta import clock, conditions, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import NODE, POD
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

EVERY_S = 20.0
ORPHAN_AFTER_S = 40.0  # a node's pods may be known before the node is
FINISHED_THRESHOLD = 12500
FINISHED = ("Succeeded", "Failed")
ONLY = Request("", "all pods")


def make(manager: Manager) -> Controller:
    collector = PodCollector(manager)
    controller = Controller("podgc", collector.reconcile, workers=1)
    controller.watches(collector.nodes, lambda _: (ONLY,))
    controller.queue.add(ONLY)
    return controller


def finished_beyond(pods: list[Object], threshold: int) -> list[Object]:
    """The oldest finished pods above the threshold, evicted ones first."""
    finished = [pod for pod in pods if (pod.get("status") or {}).get("phase") in FINISHED]
    surplus = len(finished) - threshold
    if surplus <= 0:
        return []
    finished.sort(
        key=lambda pod: (
            pod["status"].get("reason") != "Evicted",
            pod["metadata"].get("creationTimestamp") or "",
            pod["metadata"]["name"],
        )
    )
    return finished[:surplus]


class PodCollector:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.pods = manager.informer(POD)
        self.nodes = manager.informer(NODE)
        self._missing: dict[str, float] = {}  # node → since when it is not there

    async def reconcile(self, _request: Request) -> Outcome | None:
        pods = self.pods.list()
        for pod in finished_beyond(pods, FINISHED_THRESHOLD):
            await self._delete(pod)
        now = time.monotonic()
        named = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
        gone = {name for name in named if self.nodes.get(None, name) is None}
        self._missing = {name: self._missing.get(name, now) for name in gone}
        lost = {name for name, since in self._missing.items() if now - since >= ORPHAN_AFTER_S}
        for pod in pods:
            if pod["spec"].get("nodeName") in lost:
                if await self._node_exists(pod["spec"]["nodeName"]):
                    continue
                await self._fail(pod)
                await self._delete(pod)
            elif objects.is_deleting(pod) and not pod["spec"].get("nodeName"):
                await self._delete(pod)  # no kubelet will ever confirm its end
        return Outcome(requeue_after=EVERY_S)

    async def _node_exists(self, name: str) -> bool:
        try:
            await self.client.get(NODE, name)
        except errors.NotFound:
            return False
        return True

    async def _fail(self, pod: Object) -> None:
        status = objects.copy(pod.get("status") or {})
        if status.get("phase") in FINISHED:
            return
        status["phase"] = "Failed"
        conditions.set(
            status.setdefault("conditions", []),
            "DisruptionTarget",
            "True",
            "DeletionByPodGC",
            "PodGC: node no longer exists",
            clock.now_rfc3339(),
        )
        try:
            await self.client.update_status(POD, {**pod, "status": status})
        except errors.NotFound:
            return

    async def _delete(self, pod: Object) -> None:
        meta = pod["metadata"]
        try:
            await self.client.delete(POD, meta["name"], meta["namespace"], grace=0, uid=meta["uid"])
        except (errors.NotFound, errors.Conflict):
            return
