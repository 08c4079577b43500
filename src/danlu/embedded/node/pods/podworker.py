"""One pod on this node, from the moment it is bound to the moment it is gone.

`PodWorker.run` is one task: `_live` starts what is to be started and starts again what is to be started again, until
the pod is over by itself; a stop (deletion, deadline, eviction) interrupts it. Every turn of `_live` looks at what is
(the views of the containers) and asks `_next_step`; nothing depends on which event woke it.

The order in which things reach the disk and the API is what makes a crash harmless: the intent to start a container
before the container, its end before its restart, the final status before the object's removal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from danlu import errors
from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.pods import adoption, inplaceresize, launch, pause, podstatus
from danlu.embedded.node.pods.localpod import LocalPod
from danlu.embedded.node.pods.members import Member, short_duration
from danlu.embedded.node.pods.podstatus import View
from danlu.embedded.node.pods.prober import Prober
from danlu.embedded.node.pods.starter import Starter, drop_layers
from danlu.embedded.node.pods.termination import Termination
from danlu.embedded.node.sandbox import degraded
from danlu.embedded.node.sandbox.processes import Container
from danlu.embedded.node.volumes import folders
from danlu.embedded.node.volumes.subpaths import VolumeError
from danlu.meta import resourcesums
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

log = logging.getLogger(__name__)

DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
SLOW_S = 0.15  # a pod that is not up by then says ContainerCreating meanwhile
STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
CONCLUDE_S = 5.0  # for the last words to the API when danlu itself is stopped


class PodWorker(LocalPod):
    def __init__(self, pod: Object, context: NodeContext) -> None:
        super().__init__(pod, context)
        self.requests = resourcesums.pod_requests(pod)
        self._take_debugging_containers(pod["spec"])
        self._termination = Termination(self)
        self._prober = Prober(self, self._termination)
        self._starter = Starter(self, self._termination, self._prober, self._changed)
        self._stop = asyncio.Event()
        self.finished = asyncio.Event()
        self._quiet = asyncio.Event()  # it was to stop, and nothing of it runs any more

    # -- what the agent tells

    def update(self, pod: Object) -> None:
        if pod["metadata"].get("generation") != self.pod["metadata"].get("generation"):
            self.requests = resourcesums.pod_requests(pod)
        self.pod = pod
        self._take_new_images(pod["spec"])
        self._take_new_sizes(pod["spec"])
        self._take_debugging_containers(pod["spec"])
        if pod["metadata"].get("deletionTimestamp"):
            self._stop.set()
        self.wake.set()

    def removed(self) -> None:
        """The object is gone: what runs is ended at once."""
        self.is_removed = True
        self._stop.set()
        self.wake.set()

    def end(self, reason: str, message: str, most_grace_s: float | None = None) -> None:
        """The node ends the pod: it fails with this reason (Evicted, …), within so many seconds."""
        if self.view.verdict is None:
            self.view.verdict = (reason, message)
            self.most_grace_s = most_grace_s
            self._stop.set()
            self.wake.set()

    @property
    def running(self) -> list[Container]:
        return [m.current for m in self.members if m.current is not None and m.view.is_running]

    # -- life

    async def run(self) -> None:
        # What runs already has to be known before anything is decided, also before a stop.
        await self._take_up()
        if self.pod["metadata"].get("deletionTimestamp"):
            self._stop.set()
        living = asyncio.create_task(self._live())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({living, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set():
                living.cancel()
                await asyncio.gather(living, return_exceptions=True)
                if self.is_paused:
                    await self.publisher.stop()
                await self._termination.end_all()
                self._quiet.set()
            elif living.exception() is not None:
                raise living.exception() or RuntimeError
            await self._conclude()
        finally:
            for task in (living, stopping):
                task.cancel()
            for member in self.members:
                member.cancel_tasks()
            await self.publisher.stop()
            self.finished.set()

    async def pause(self) -> None:
        """`danlu down`: what runs ends with its grace, and the next start makes it again: see `adoption`.

        Nothing is told to the API: an exit code here is not the program's own, and nobody shall count it.
        """
        self.is_paused = not self._stop.is_set()
        self._stop.set()
        ends = [asyncio.create_task(event.wait()) for event in (self._quiet, self.finished)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        # Its processes are gone. What it still has to tell the API is told at the next start, if not within this:
        # a store that takes no writes must not keep `danlu down` waiting.
        await asyncio.wait(ends[1:], timeout=CONCLUDE_S)
        for task in ends:
            task.cancel()

    async def let_go(self) -> None:
        """`danlu up` ends and the pod goes on."""
        for member in self.members:
            member.cancel_tasks()
        await self.publisher.stop()
        folders.forget(self.uid)

    async def _live(self) -> None:
        if podstatus.is_terminal(self.pod):
            return
        if not await self._prepare_volumes():
            return
        self.view.sandbox_ready = True
        while True:
            self.wake.clear()
            step = self._next_step()
            if isinstance(step, str):
                return  # finished
            if isinstance(step, Member):
                await self._starter.start(step)
                continue
            self.publisher.publish()
            # Not wait_for: before Python 3.12 it forgets a cancellation that comes with the wake-up.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step):
                    await self.wake.wait()

    async def _take_up(self) -> None:
        """Address, times, and whatever of the pod runs already or has run."""
        old = self.pod.get("status") or {}
        self.view.host_ip = self.context.host_ip
        if self.pod["spec"].get("hostNetwork"):
            self.view.pod_ip = self.context.host_ip
        else:
            # What the API says of its address counts only for pods that another version has begun: anybody who may
            # write the status of a pod of theirs could name another's.
            begun = self.context.pod_folder(self.uid).exists()
            self.view.pod_ip = self.context.addresses.take(self.uid, (old.get("podIP") or "") if begun else "")
            # Its name is known from here on: others of its job may start sooner and ask for it.
            await self.context.hosts_file(self.known(), self.view.pod_ip)
        started = old.get("startTime")
        self.view.started_at = parse_time(started).timestamp() if started else time.time()
        # From here on its age is counted without the time of day, which somebody may set.
        self._began = time.monotonic() - max(0.0, time.time() - self.view.started_at)
        self.context.containers.listen(self.uid, self._changed)
        found = await adoption.adopt(self.context.containers, self.uid)
        reported = {c["name"]: c for key in STATUSES for c in old.get(key) or ()}
        for member in self.members:
            member.address = self.view.pod_ip
            if any(m.is_init for m in self.members) and not member.is_debugging:
                member.view.waiting = ("PodInitializing", "")
            runs = [c for c in found if c.name == member.view.name]
            member.adopt(runs, reported.get(member.view.name) or {})
            if member.view.is_running and not member.is_debugging:
                self._prober.begin(member)

    async def _prepare_volumes(self) -> bool:
        slow = asyncio.get_running_loop().call_later(SLOW_S, self.publisher.publish)
        wait = 0.5
        try:
            while True:
                try:
                    self.volumes = await folders.prepare(self.known(), self.context)
                    return True
                except VolumeError as error:
                    self.event("Warning", error.reason, str(error))
                except errors.ApiError as error:
                    self.event("Warning", "FailedMount", f"MountVolume.SetUp failed: {error.message}")
                if self._past_deadline():
                    self.end(*DEADLINE)
                    return False
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self.wake.wait()
                self.wake.clear()
                wait = min(wait * 2, 10.0)
        finally:
            slow.cancel()

    # -- deciding

    def _next_step(self) -> Member | str | float | None:
        """A container to start; "finished"; or how long to wait (None: until something happens)."""
        if self._stop.is_set():
            return None  # whoever waits for that takes over
        if self._past_deadline():
            self.end(*DEADLINE)
            return None
        waits: list[float] = []
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        if limit is not None:
            waits.append(max(0.05, self._began + limit - time.monotonic()))
        spec = self.pod["spec"]
        for member in self.members:  # first those for debugging: perhaps an init container is what does not start
            if member.is_debugging and not member.view.is_running and member.view.ended is None:
                due = self._due(member)
                if due <= 0:
                    return member
                waits.append(due)
        for member in [m for m in self.members if not m.is_debugging]:
            view = member.view
            if view.is_running:
                if member.is_init and not (view.is_sidecar and view.started):
                    break
                continue
            if view.ended is not None and not podstatus.wants_restart(spec, view, member.is_init):
                if member.is_init and view.has_failed:
                    return self._finish()
                continue
            if member.is_init and view.is_sidecar and self._work_is_done():
                continue
            due = self._due(member)
            if due <= 0:
                return member
            waits.append(due)
            if member.is_init:
                break
        if self._work_is_done():
            return self._finish()
        return min(waits) if waits else None

    def _work_is_done(self) -> bool:
        spec = self.pod["spec"]
        main = [m.view for m in self.members if not m.is_init and not m.is_debugging]
        return all(
            not v.is_running and v.ended is not None and not podstatus.wants_restart(spec, v, False) for v in main
        )

    def _finish(self) -> str | None:
        """Sidecars are told to end when the work is done; the pod is over when they have."""
        left = [m for m in reversed(self.members) if m.view.is_running]
        if not left:
            return "finished"
        self._termination.kill(left[0], f"Stopping container {left[0].view.name}")
        return None

    def _due(self, member: Member) -> float:
        """Seconds until this container may be started; tells the world when that is not now."""
        seconds = member.seconds_to_wait()
        view = member.view
        if seconds > 0 and view.ended is not None and member.retry_at <= time.monotonic():
            name, where = view.name, launch.pod_key(self.pod)
            if view.waiting is None:
                told = f"Back-off restarting failed container {name} in pod {where}"
                self.event("Warning", "BackOff", told, member)
            length = short_duration(member.backoff)
            view.waiting = ("CrashLoopBackOff", f"back-off {length} restarting failed container={name} pod={where}")
        return seconds

    def _past_deadline(self) -> bool:
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        return limit is not None and time.monotonic() >= self._began + limit

    # -- what happened

    def _changed(self, container: Container) -> None:
        """A container started or ended (from `Containers`)."""
        member = next((m for m in self.members if m.current is container), None)
        if member is None or container.exit is None:
            return
        view = member.view
        if view.ended is None:
            member.cancel_tasks()
            view.running_since, view.ready, view.started = None, False, False
            view.ended = member.ended(container)
            if member.is_init and not view.is_sidecar and view.is_done_well:
                view.ready = True
        self.wake.set()

    def _take_new_images(self, spec: Object) -> None:
        """The image is the one thing of a container that may change: what runs is ended, and starts with the new."""
        newest = {c["name"]: c for key in ("initContainers", "containers") for c in spec.get(key) or ()}
        for member in self.members:
            container = newest.get(member.view.name)
            if container is None or container.get("image") == member.spec.get("image"):
                continue
            member.view.spec = container
            if member.view.is_running:
                self._termination.kill(member, f"Container {member.view.name} definition changed, will be restarted")

    def _take_new_sizes(self, spec: Object) -> None:
        """What a container may use has changed (pods/resize): what runs is told, or started again if that is asked."""
        newest = {c["name"]: c for key in ("initContainers", "containers") for c in spec.get(key) or ()}
        for member in self.members:
            container = newest.get(member.view.name)
            if container is None or container.get("resources") == member.spec.get("resources"):
                continue
            changed = inplaceresize.changed(member.spec, container)
            member.view.spec = container
            if not member.view.is_running:
                continue
            if inplaceresize.needs_restart(container, changed):
                self._termination.kill(member, f"Container {member.view.name} resize requires restart")
            else:
                limits = launch.memory_limit(container), launch.cpu_limit(container)
                self.context.containers.limit(member.container, *limits)

    def _take_debugging_containers(self, spec: Object) -> None:
        known = {member.view.name for member in self.members}
        for container in spec.get("ephemeralContainers") or ():
            if container["name"] not in known:
                view, containers = View(container["name"], spec=container), self.context.containers
                member = Member(view, False, containers, self.connect, is_debugging=True)
                member.address = self.view.pod_ip
                self.members.append(member)
                self.view.debugging.append(member.view)

    # -- the end

    async def _conclude(self) -> None:
        """Nothing runs any more: the last status, then the end of what the pod had here."""
        await pause.stop(self.context.containers, self.uid)
        self.view.finished = True
        deleting = bool(self.pod["metadata"].get("deletionTimestamp"))
        if self.is_paused and not deleting:
            folders.forget(self.uid)
            return
        if self.view.verdict is not None or (deleting and not self.is_removed):
            for member in self.members:
                member.view.waiting = member.view.waiting if member.view.ended is None else None
        # Before the status is written: the scheduler gives the GPUs away as soon as it reads that this pod ended.
        self.context.release_devices(self.uid)
        if not self.is_removed and not podstatus.is_terminal(self.pod):
            self.view.sandbox_ready = bool(self.view.pod_ip)
            await self.publisher.flush()
        folders.forget(self.uid)
        self.context.addresses.give_back(self.uid)
        for member in self.members:
            if member.current is not None:
                degraded.remove_links(member.current.spec["sandbox"])
            await drop_layers(member)
        await self.context.containers.forget(self.uid)
        if self.pod["metadata"].get("deletionTimestamp") and not self.is_removed:
            await self._delete()

    async def _delete(self) -> None:
        meta = self.pod["metadata"]
        while True:
            try:
                await self.context.client.delete(POD, meta["name"], meta["namespace"], grace=0, uid=self.uid)
                return
            except (errors.NotFound, errors.Conflict):
                return
            except Exception as error:
                log.info("pod %s/%s cannot be deleted: %s; trying again", meta["namespace"], meta["name"], error)
                await asyncio.sleep(1.0)
