"""`EvictionManager`: looks after the machine's memory and disk for all of its nodes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from danlu.diagnose import stated
from danlu.embedded.node import machine
from danlu.embedded.node.pods import launch
from danlu.embedded.node.pods.podmanager import PodManager
from danlu.embedded.node.pods.podworker import PodWorker
from danlu.embedded.node.pressure import diskreclaim, eviction
from danlu.embedded.node.registration import NodeRegistration
from danlu.embedded.node.settings import NodeSettings

log = logging.getLogger(__name__)

ENDED_WITHIN_S = 30.0  # kubelet's, for the pod that it evicted


class EvictionManager:
    def __init__(
        self,
        data_dir: Path,
        settings: NodeSettings,
        pods: PodManager,
        registration: NodeRegistration,
        images: diskreclaim.Images,
        disk_alarm: Callable[[], str],
    ) -> None:
        """`disk_alarm`: why the store has no room, or nothing."""
        self.settings = settings
        self._data_dir = data_dir
        self._pods = pods
        self._registration = registration
        self._images = images
        self._disk_alarm = disk_alarm
        self._seen: dict[str, float] = {}  # condition -> when it was last seen
        self._check_now = asyncio.Event()
        self._next_look_at_logs = 0.0

    def disk_alarm_changed(self, alarm: str) -> None:
        """The store ran out of room, or has some again ("")."""
        if alarm:
            text = stated("DL-STORE-FULL", message=alarm)
            self._registration.tell("Warning", "DatabaseSpaceExceeded", text)
        else:
            self._registration.tell("Normal", "DatabaseSpaceRecovered", stated("DL-STORE-ROOM"))
        self._check_now.set()

    def pod_ended(self) -> None:
        if eviction.DISK_PRESSURE in self._registration.pressures:
            self._check_now.set()  # what it had on the disk can be taken now

    async def run(self) -> None:
        """Without end."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.eviction_period_s):
                    await self._check_now.wait()
            self._check_now.clear()
            try:
                await self.check()
            except Exception:
                log.exception("looking after memory and disk")

    async def check(self) -> None:
        running = [worker for worker in self._pods.workers.values() if worker.running]
        for worker in [w for w in running if eviction.has_storage_limits(w.pod)]:
            problem = await asyncio.to_thread(eviction.outgrown, worker)
            if problem:
                _evict(worker, problem)
        await self._bound_logs()
        found = self._shortages()
        await self._registration.set_pressures(self._held({shortage.pressure for shortage in found}))
        if any(shortage.pressure == eviction.DISK_PRESSURE for shortage in found):
            await self._reclaim(found[-1].resource)
            found = self._shortages()
        if found:
            sizes = await asyncio.to_thread(self._sizes, running, found[0].pressure)
            victim = eviction.choose(running, sizes, found[0].resource)
            if victim is not None:
                _evict(victim, eviction.message(found[0], victim, sizes[victim.uid]))
                await self._free(victim)
                self._check_now.set()  # to count again

    def _held(self, pressures: set[str]) -> set[str]:
        """With those that have only just passed: a condition does not come and go with every pod that ends."""
        now = time.monotonic()
        self._seen |= dict.fromkeys(pressures | ({eviction.DISK_PRESSURE} if self._disk_alarm() else set()), now)
        self._seen = {one: at for one, at in self._seen.items() if now - at <= self.settings.pressure_hold_s}
        return {*self._seen}

    def _shortages(self) -> list[eviction.Shortage]:
        return eviction.shortages(self.settings, machine.memory_available(), machine.disk(self._data_dir))

    async def _reclaim(self, resource: str) -> None:
        """What nobody needs goes first, and only as much of it as is needed: see `diskreclaim`."""
        ended = self._pods.ended()
        for step in diskreclaim.steps(self._images):
            before = machine.disk(self._data_dir).free
            await asyncio.to_thread(step.take, self._data_dir, ended)
            freed = machine.disk(self._data_dir).free - before
            if freed > 0:
                log.warning("the disk is short of %s: %d KiB of %s were removed", resource, freed // 1024, step.name)
            if not any(shortage.pressure == eviction.DISK_PRESSURE for shortage in self._shortages()):
                return

    async def _bound_logs(self) -> None:
        if time.monotonic() < self._next_look_at_logs:
            return
        self._next_look_at_logs = time.monotonic() + self.settings.status_s
        most = launch.logs_in_all(self.settings, machine.disk(self._data_dir))
        removed = await asyncio.to_thread(diskreclaim.bound_logs, self._data_dir, most, self._pods.ended())
        if removed:
            log.warning("logs were more than %d MiB in all: the oldest %d KiB are gone", most >> 20, removed // 1024)

    async def _free(self, victim: PodWorker) -> None:
        """Returns when what it held is gone: until then another would be ended for what this one still holds."""
        containers = victim.running
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ENDED_WITHIN_S):
                for container in containers:
                    await container.ended.wait()
        if all(container.ended.is_set() for container in containers):
            await asyncio.to_thread(diskreclaim.remove_ended, self._data_dir, victim.uid)

    def _sizes(self, workers: Iterable[PodWorker], pressure: str) -> dict[str, int]:
        if pressure == eviction.MEMORY_PRESSURE:
            return {worker.uid: eviction.memory_of(worker) for worker in workers}
        return {worker.uid: eviction.size_of(worker.context.pod_folder(worker.uid)) for worker in workers}


def _evict(worker: PodWorker, message: str) -> None:
    worker.context.recorder.event(worker.pod, "Warning", eviction.REASON, message)
    worker.end(eviction.REASON, message, eviction.GRACE_S)
