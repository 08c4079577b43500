"""`Scheduler`: gives every waiting pod a node, through the API alone.

One loop decides, one pod at a time and without awaiting, on the cache; everything slow (binding, writing why not,
evicting victims) runs beside it. A decision is assumed in the cache at once, so the next one builds on it.

Siblings that are refused share one answer until the cache changes (`_answers`): five hundred pods of one job that
do not fit cost one search, not five hundred.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import ADDED, Informer
from danlu.embedded.scheduler import filters, preemption, shortage
from danlu.embedded.scheduler.binder import DEFAULT_NAME, Binder
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.eventhandlers import EventHandlers
from danlu.embedded.scheduler.gangs import GangRefusal
from danlu.embedded.scheduler.gangscheduling import GangScheduling
from danlu.embedded.scheduler.placement import Diagnosis, FoundNode, Placer
from danlu.embedded.scheduler.placementreport import GangReports, Reporter
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.policy import SchedulingPolicy
from danlu.embedded.scheduler.schedulingqueue import QueuedPod, SchedulingQueue
from danlu.meta import volumematching
from danlu.meta.kind import Object
from danlu.meta.said import Said, carried
from danlu.meta.wellknown import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)
from danlu.runtime.manager import Manager

log = logging.getLogger(__name__)

TURN_S = 0.004  # after this long the loop lets the API server have its turn
LONGEST_SLEEP_S = 30.0


class _Volumes:
    """The volume side of the world, read from informers (volumeclaims.VolumeView)."""

    def __init__(self, claims: Informer, volumes: Informer, classes: Informer) -> None:
        self._claims, self._volumes, self._classes = claims, volumes, classes

    def claim(self, namespace: str, name: str) -> Object | None:
        return self._claims.get(namespace, name)

    def volume(self, name: str) -> Object | None:
        return self._volumes.get(None, name)

    def storage_class(self, name: str) -> Object | None:
        return self._classes.get(None, name)

    def free_volume_for(self, claim: Object, suits: Callable[[Object], bool]) -> Object | None:
        return volumematching.best_volume(self._volumes.list(), claim, suits)


class Scheduler:
    def __init__(
        self,
        manager: Manager,
        client: Client,
        *,
        names: Sequence[str] = (DEFAULT_NAME,),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Reads through `manager`'s informers, writes as `client`. Pods with another schedulerName are not touched."""
        self.cache = Cache()
        self.queue = SchedulingQueue(clock, self._lane_order)
        self._clock = clock
        self._client = client
        self._pods = manager.informer(POD)
        self._nodes = manager.informer(NODE)
        self._namespaces = manager.informer(NAMESPACE)
        self._claims = manager.informer(PERSISTENT_VOLUME_CLAIM)
        self._volume_informers = (self._claims, manager.informer(PERSISTENT_VOLUME), manager.informer(STORAGE_CLASS))
        self._view = _Volumes(*self._volume_informers)
        self._placer = Placer(self.cache, self._view)
        self._reporters: dict[str, Reporter] = {}
        self._binder = Binder(client, self._claims, self._reporter)
        self._work = GangScheduling(self.cache, self.queue, self._placer, self)
        self._gang_reports = GangReports(self._report)
        self._answers: dict[bytes, Diagnosis] = {}
        self._answers_at = -1
        self._wake = asyncio.Event()
        self._handlers = EventHandlers(self.cache, self.queue, self._work, names, self._wake.set)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    # -- life

    async def start(self) -> None:
        """The manager must have been started; returns when the first pod could be placed."""
        informers = (self._nodes, self._namespaces, *self._volume_informers, self._pods)
        await asyncio.gather(*(informer.synced() for informer in informers))
        self._claims.add_handler(lambda _event, claim, _old: self._binder.claim_changed(claim))
        self._nodes.add_handler(self._handlers.node_changed)
        self._namespaces.add_handler(self._handlers.namespace_changed)
        for informer in self._volume_informers:
            informer.add_handler(self._handlers.volume_changed)
        self._pods.add_handler(self._handlers.pod_changed)
        self._loop = asyncio.create_task(self._run(), name="scheduler")

    async def stop(self) -> None:
        tasks = [*self._tasks, *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._gang_reports.stop()
        await asyncio.gather(*(reporter.stop() for reporter in self._reporters.values()))

    def use(self, policy: SchedulingPolicy) -> None:
        """Also places pods that name one of the policy's schedulers, by its rules; it must have read its sources."""
        self._handlers.names |= frozenset(policy.names)
        self._work.use(policy)
        policy.listen(self._handlers.gang_changed, self._handlers.lane_changed)
        if self._loop is not None:
            for pod in self._pods.list():
                if self._work.policy(pod) is not None:
                    self.cache.remove_pod(pod["metadata"]["uid"])  # seen before, and not known to be of a gang
                    self._handlers.pod_changed(ADDED, pod, None)

    def _reporter(self, pod: PodInfo) -> Reporter:
        name = (pod.pod.get("spec") or {}).get("schedulerName") or DEFAULT_NAME
        if name not in self._reporters:
            self._reporters[name] = Reporter(self._client, name)
        return self._reporters[name]

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lane_order(self, lane: str) -> tuple[float, ...]:
        return self._work.lane_order(lane)

    # -- the loop

    async def _run(self) -> None:
        turn_began = self._clock()
        while True:
            entry = self.queue.pop()
            if entry is None:
                await self._sleep()
                turn_began = self._clock()
                continue
            try:
                self._try(entry)
            except Exception:
                log.exception("scheduling %s/%s failed", *entry.pod.key)
                self.queue.refused(entry, filters.ANYTHING, self.queue.cycle, errored=True)
            if self._clock() - turn_began > TURN_S:
                await asyncio.sleep(0)
                turn_began = self._clock()

    async def _sleep(self) -> None:
        due = self.queue.next_due()
        wait = LONGEST_SLEEP_S if due is None else min(max(due - self._clock(), 0.001), LONGEST_SLEEP_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()
        self._wake.clear()
        self.queue.wake_stale()

    def _try(self, entry: QueuedPod) -> None:
        policy = self._work.policy(entry.pod.pod)
        if policy is not None:
            self._work.try_gang(entry, policy)
            return
        since = self.queue.cycle
        answer = self._answer(entry.pod)
        if isinstance(answer, FoundNode):
            self.cache.assume(entry.pod, answer.node)
            self.bind(entry.pod, answer)
            return
        nominated: str | None = None
        if not answer.preemption:
            nominated = self._preempt(entry.pod, answer)
        self.queue.refused(entry, answer.wakes, since)
        self._report(entry.pod, answer.message(), nominated)

    def _answer(self, pod: PodInfo) -> FoundNode | Diagnosis:
        if self._answers_at != self.cache.generation:
            self._answers.clear()
            self._answers_at = self.cache.generation
        known = self._answers.get(pod.signature)
        return known if known is not None else self._placer.place(pod)

    def _preempt(self, pod: PodInfo, diagnosis: Diagnosis) -> str | None:
        """The node that is being cleared for the pod; "" when none ever will be; None leaves things as they are."""
        plan = preemption.plan(pod, self.cache, self._view, diagnosis)
        if isinstance(plan, str):
            diagnosis.preemption = plan
            if self._answers_at == self.cache.generation:
                self._answers[pod.signature] = diagnosis
            if "not eligible" in plan:
                return None
            self.cache.clear_nomination(pod.uid)
            return ""
        for rival in [*self.cache.nominated.get(plan.node, {}).values()]:
            if rival.priority < pod.priority:
                self.cache.clear_nomination(rival.uid)
        pod.nominated = plan.node
        self.cache.nominate(pod, plan.node)
        self._spawn(self._binder.evict(pod, plan), f"preempt for {pod.name}")
        return plan.node

    # -- what follows a decision

    def bind(self, pod: PodInfo, found: FoundNode) -> None:
        """The pod is already assumed on its node."""
        self.queue.remove(pod.uid)
        if pod.gang:
            self._gang_reports.settled(pod.gang)
        self._spawn(self._bind_now(pod, found), f"bind {pod.name}")

    async def _bind_now(self, pod: PodInfo, found: FoundNode) -> None:
        try:
            await self._binder.bind(pod, found)
        except errors.NotFound:
            self._work.leaves(pod.uid)
            self._handlers.pod_gone(pod.uid)
        except Exception as error:
            if not isinstance(error, errors.ApiError):
                log.exception("binding %s/%s failed", *pod.key)
            self._binding_failed(pod, str(error))

    def _binding_failed(self, pod: PodInfo, why: str) -> None:
        self.cache.forget(pod)
        self._work.leaves(pod.uid)
        self._handlers.happened(filters.POD_GONE)
        current = self._pods.get(pod.namespace, pod.name)
        if current is None or current["metadata"].get("uid") != pod.uid or current["spec"].get("nodeName"):
            return
        info = self._work.info(current)
        self.queue.add(info, self._work.priority(info))
        self._wake.set()
        self._spawn(self._reporter(pod).refused(pod, why, reason="SchedulerError"), f"report {pod.name}")

    def _report(self, pod: PodInfo, message: str, nominated: str | None = None) -> None:
        reporter = self._reporter(pod)
        if reporter.must_report(pod, message, nominated):
            if not carried(message) and (never := shortage.never_fits(pod, self.cache, message)):
                message = Said(message, [never.carried()])
            self._spawn(reporter.refused(pod, message, nominated), f"report {pod.name}")

    # -- what follows a decision on a gang (gangscheduling.Consequences)

    def tell(self, key: str, pods: Iterable[PodInfo], refusal: GangRefusal) -> None:
        self._gang_reports.tell(key, pods, refusal)

    def evict(self, by: str, why: str, victims: Sequence[PodInfo]) -> None:
        self._spawn(self._evict_now(by, why, victims), f"preempt {len(victims)} pods")

    async def _evict_now(self, by: str, why: str, victims: Sequence[PodInfo]) -> None:
        try:
            await self._binder.clear(victims, by, why)
        except Exception as error:
            log.warning("preempting for %s failed: %s", why, error)
            for victim in victims:
                self._work.room_made_by(victim.uid)  # so that it is tried again
