"""What a pod is told about its placement: the PodScheduled condition and the scheduler's events."""

from __future__ import annotations

import contextlib
import time

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.meta import clock, conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD
from danlu.runtime.recorder import EventRecorder

REPEAT_S = 290.0  # the same refusal is an event again after about five minutes, so that it outlives its first event
REMEMBERED = 4096


class Reporter:
    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self.events = EventRecorder(client, component)
        self._told: dict[str, tuple[str, float]] = {}  # uid → (message, when)

    async def stop(self) -> None:
        await self.events.stop()

    def is_news(self, pod: PodInfo, message: str, nominated: str | None) -> bool:
        """Each report is a write that must reach the disk: the same words twice in a row are not worth one."""
        told = self._told.get(pod.uid)
        now = time.monotonic()
        status = pod.pod.get("status") or {}
        stale_nomination = nominated is not None and (status.get("nominatedNodeName") or "") != nominated
        if told is not None and told[0] == message and now - told[1] < REPEAT_S and not stale_nomination:
            return False
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[pod.uid] = (message, now)
        return True

    def placed(self, pod: PodInfo, node: str) -> None:
        self._told.pop(pod.uid, None)
        self.events.normal(pod.pod, "Scheduled", f"Successfully assigned {pod.namespace}/{pod.name} to {node}")

    async def refused(
        self, pod: PodInfo, message: str, nominated: str | None = None, reason: str = "Unschedulable"
    ) -> None:
        self.events.warning(pod.pod, "FailedScheduling", message)
        status = pod.pod.get("status") or {}
        before = conditions.get(status.get("conditions"), "PodScheduled")
        body: Object = {}
        if before is None or before.get("reason") != reason or before.get("message") != message:
            since = before.get("lastTransitionTime") if before and before.get("status") == "False" else None
            body["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": reason,
                    "message": message,
                    "lastProbeTime": None,
                    "lastTransitionTime": since or clock.now_rfc3339(),
                }
            ]
        if nominated is not None and (status.get("nominatedNodeName") or "") != nominated:
            body["nominatedNodeName"] = nominated or None
        if body:
            patch = {"metadata": {"uid": pod.uid}, "status": body}
            with contextlib.suppress(errors.NotFound, errors.Conflict, errors.Invalid):
                await self._client.patch(
                    POD, pod.name, pod.namespace, patch, type="strategic", subresource="status"
                )
