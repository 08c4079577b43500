"""Carrying out what was decided: binding a pod, claims first, and evicting the victims of a preemption."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.diagnose import stated
from danlu.embedded.scheduler.placement import FoundNode
from danlu.embedded.scheduler.placementreport import Reporter
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.preemption import PreemptionPlan
from danlu.embedded.scheduler.volumeclaims import SELECTED_NODE, is_bound
from danlu.meta import clock
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM, POD

CLAIM_TIMEOUT_S = 600.0
DEFAULT_NAME = "default-scheduler"


class Binder:
    def __init__(self, client: Client, claims: Informer, reporter: Callable[[PodInfo], Reporter]) -> None:
        """`reporter` speaks for the scheduler that the pod names."""
        self._client = client
        self._claims = claims
        self._reporter = reporter
        self._waiting: dict[tuple[str, str], list[asyncio.Future[None]]] = {}

    def claim_changed(self, claim: Object) -> None:
        key = (claim["metadata"].get("namespace") or "", claim["metadata"]["name"])
        if key in self._waiting and is_bound(claim):
            for waiter in self._waiting.pop(key):
                if not waiter.done():
                    waiter.set_result(None)

    async def bind(self, pod: PodInfo, found: FoundNode) -> None:
        if found.claims is not None and found.claims.delayed:
            await asyncio.gather(*(self._bind_claim(claim, found.node) for claim in found.claims.delayed))
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"kind": "Node", "name": found.node},
        }
        await self._client.create_subresource(POD, pod.name, pod.namespace, "binding", body)
        self._reporter(pod).placed(pod, found.node)

    async def _bind_claim(self, claim: Object, node: str) -> None:
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((namespace, name), []).append(waiter)
        patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
        await self._client.patch(PERSISTENT_VOLUME_CLAIM, name, namespace, patch)
        current = self._claims.get(namespace, name)
        if current is not None:
            self.claim_changed(current)
        try:
            async with asyncio.timeout(CLAIM_TIMEOUT_S):
                await waiter
        except TimeoutError:
            # Let the next attempt choose any node.
            drop = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            await self._client.patch(PERSISTENT_VOLUME_CLAIM, name, namespace, drop)
            raise errors.Timeout("binding volumes: timed out waiting for the condition") from None

    async def evict(self, pod: PodInfo, plan: PreemptionPlan) -> None:
        victims = [victim for victim in plan.victims if not victim.deleting]
        cause = "preempting to accommodate a higher priority pod"
        event = f"Preempted by pod {pod.uid} on node {plan.node}"
        await asyncio.gather(*(self._evict_one(victim, DEFAULT_NAME, cause, event) for victim in victims))

    async def clear(self, victims: Sequence[PodInfo], by: str, why: str) -> None:
        """Deletes pods of lower lanes; their jobs make them again, and they wait for their turn."""
        event = stated("DL-PREEMPTED-FOR", why=why)
        await asyncio.gather(*(self._evict_one(victim, by, why, event) for victim in victims))

    async def _evict_one(self, victim: PodInfo, by: str, cause: str, event: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{by}: {cause}",
            "lastProbeTime": None,
            "lastTransitionTime": clock.now_rfc3339(),
        }
        try:
            patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
            await self._client.patch(POD, victim.name, victim.namespace, patch, type="strategic", subresource="status")
            await self._client.delete(POD, victim.name, victim.namespace, uid=victim.uid)
        except (errors.NotFound, errors.Conflict):
            return  # gone already, which is what was wanted
        self._reporter(victim).events.normal(victim.pod, "Preempted", event)
