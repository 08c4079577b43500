"""What a pod is told about its placement: the PodScheduled condition and the scheduler's events."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.scheduler.gangs import GangRefusal
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.meta import clock, conditions
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION, written
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

    def must_report(self, pod: PodInfo, message: str, nominated: str | None) -> bool:
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
                    "observedGeneration": pod.pod["metadata"].get("generation"),
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
            patch = {"metadata": {"uid": pod.uid, **_annotated(pod, message)}, "status": body}
            with contextlib.suppress(errors.NotFound, errors.Conflict, errors.Invalid):
                await self._client.patch(POD, pod.name, pod.namespace, patch, type="strategic", subresource="status")


def _annotated(pod: PodInfo, message: str) -> Object:
    """The codes of what the condition says, in the same write: a Pod's conditions have no room for them."""
    causes = written(message)
    if causes is None and ANNOTATION not in (pod.pod["metadata"].get("annotations") or {}):
        return {}
    return {"annotations": {ANNOTATION: causes}}


class GangReports:
    """Refusals of gangs, without a flood: each costs a write for every pod of the gang.

    A gang that is complete a moment later is not worth a word; numbers that change with every pod that comes and goes
    are worth one every few seconds. So words wait: briefly the first time, longer when something was said before.
    """

    FIRST_S = 0.5
    AGAIN_S = 5.0

    def __init__(self, report: Callable[[PodInfo, str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._said: dict[str, tuple[str, float]] = {}  # gang → (words, when)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def tell(self, key: str, pods: Iterable[PodInfo], refusal: GangRefusal) -> None:
        now = self._clock()
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        before, when = self._said.get(key, ("", 0.0))
        wait = 0.0
        if before:
            wait = 0.0 if before == refusal.message else max(when + self.AGAIN_S - now, 0.0)
        elif refusal.room or refusal.passing:
            wait = self.FIRST_S if timer is None else max(timer.when() - asyncio.get_running_loop().time(), 0.0)
        told = [*pods]
        if wait:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(wait, self._say, key, told, refusal.message)
        else:
            self._say(key, told, refusal.message)

    def _say(self, key: str, pods: list[PodInfo], message: str) -> None:
        self._timers.pop(key, None)
        if len(self._said) >= REMEMBERED:
            self._said.clear()
        self._said[key] = (message, self._clock())
        for pod in pods:
            self._report(pod, message)

    def settled(self, key: str) -> None:
        """It was placed, or is gone: what is still to be said is not true any more."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._said.pop(key, None)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
