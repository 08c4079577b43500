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
import signal
import socket
import time

from danlu import errors
from danlu.embedded.node import (
    adoption,
    environment,
    launch,
    layering,
    logs,
    probes,
    resizing,
    sandbox,
    status,
    volumes,
)
from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.devices import DeviceError
from danlu.embedded.node.images import ImageError
from danlu.embedded.node.members import Member, short_duration
from danlu.embedded.node.processes import Container, ProcessError
from danlu.embedded.node.publisher import Publisher
from danlu.embedded.node.status import PodView, View
from danlu.embedded.node.subpaths import VolumeError
from danlu.embedded.node.traces import remove_log, remove_tree
from danlu.meta import usage
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

log = logging.getLogger(__name__)

DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
SLOW_S = 0.15  # a pod that is not up by then says ContainerCreating meanwhile
STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
LEAST_GRACE_S = 0.5  # for a container to end by itself even when it is given no time
CONCLUDE_S = 5.0  # for the last words to the API when danlu itself is stopped


class PodWorker:
    def __init__(self, pod: Object, context: NodeContext) -> None:
        self.pod = pod
        self.context = context
        self.uid: str = pod["metadata"]["uid"]
        self.requests = usage.pod_requests(pod)
        spec = pod["spec"]
        self._members = [
            Member(View(c["name"], rules=c), is_init, context.containers, self._connect)
            for is_init, key in ((True, "initContainers"), (False, "containers"))
            for c in spec.get(key) or ()
        ]
        self.view = PodView(
            [m.view for m in self._members if m.is_init], [m.view for m in self._members if not m.is_init]
        )
        self._take_debugging_containers(spec)
        self.publisher = Publisher(context.client, lambda: self.pod, self._status)
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._volumes: volumes.PreparedVolumes | None = None
        self._removed = False
        self._paused = False
        self.finished = asyncio.Event()
        self._quiet = asyncio.Event()  # it was to stop, and nothing of it runs any more

    # -- what the agent tells

    def update(self, pod: Object) -> None:
        if pod["metadata"].get("generation") != self.pod["metadata"].get("generation"):
            self.requests = usage.pod_requests(pod)
        self.pod = pod
        self._take_new_images(pod["spec"])
        self._take_new_sizes(pod["spec"])
        self._take_debugging_containers(pod["spec"])
        if pod["metadata"].get("deletionTimestamp"):
            self._stop.set()
        self._wake.set()

    def removed(self) -> None:
        """The object is gone: what runs is ended at once."""
        self._removed = True
        self._stop.set()
        self._wake.set()

    def end(self, reason: str, message: str) -> None:
        """The node ends the pod: it fails with this reason (Evicted, …)."""
        if self.view.verdict is None:
            self.view.verdict = (reason, message)
            self._stop.set()
            self._wake.set()

    @property
    def is_removed(self) -> bool:
        return self._removed

    @property
    def volumes(self) -> volumes.PreparedVolumes | None:
        return self._volumes

    @property
    def running(self) -> list[Container]:
        return [m.current for m in self._members if m.current is not None and m.view.is_running]

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
                if self._paused:
                    await self.publisher.stop()
                await self._end_all()
                self._quiet.set()
            elif living.exception() is not None:
                raise living.exception() or RuntimeError
            await self._conclude()
        finally:
            for task in (living, stopping):
                task.cancel()
            for member in self._members:
                member.cancel_tasks()
            await self.publisher.stop()
            self.finished.set()

    async def pause(self) -> None:
        """`danlu down`: what runs ends with its grace, and the next start makes it again: see `adoption`.

        Nothing is told to the API: an exit code here is not the program's own, and nobody shall count it.
        """
        self._paused = not self._stop.is_set()
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
        for member in self._members:
            member.cancel_tasks()
        await self.publisher.stop()
        volumes.forget(self.uid)

    async def _live(self) -> None:
        if status.is_terminal(self.pod):
            return
        if not await self._prepare_volumes():
            return
        self.view.sandbox_ready = True
        while True:
            self._wake.clear()
            step = self._next_step()
            if isinstance(step, str):
                return  # finished
            if isinstance(step, Member):
                await self._start(step)
                continue
            self.publisher.publish()
            # Not wait_for: before Python 3.12 it forgets a cancellation that comes with the wake-up.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step):
                    await self._wake.wait()

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
            await self.context.hosts_file(self._known_pod(), self.view.pod_ip)
        started = old.get("startTime")
        self.view.started_at = parse_time(started).timestamp() if started else time.time()
        # From here on its age is counted without the time of day, which somebody may set.
        self._began = time.monotonic() - max(0.0, time.time() - self.view.started_at)
        self.context.containers.listen(self.uid, self._changed)
        found = await adoption.adopt(self.context.containers, self.uid)
        reported = {c["name"]: c for key in STATUSES for c in old.get(key) or ()}
        for member in self._members:
            member.address = self.view.pod_ip
            if any(m.is_init for m in self._members) and not member.is_debugging:
                member.view.waiting = ("PodInitializing", "")
            runs = [c for c in found if c.name == member.view.name]
            member.adopt(runs, reported.get(member.view.name) or {})
            if member.view.is_running and not member.is_debugging:
                self._begin_probes(member)

    async def _prepare_volumes(self) -> bool:
        slow = asyncio.get_running_loop().call_later(SLOW_S, self.publisher.publish)
        wait = 0.5
        try:
            while True:
                try:
                    self._volumes = await volumes.prepare(self._known_pod(), self.context)
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
                        await self._wake.wait()
                self._wake.clear()
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
        for member in self._members:  # first those for debugging: perhaps an init container is what does not start
            if member.is_debugging and not member.view.is_running and member.view.ended is None:
                due = self._due(member)
                if due <= 0:
                    return member
                waits.append(due)
        for member in [m for m in self._members if not m.is_debugging]:
            view = member.view
            if view.is_running:
                if member.is_init and not (view.is_sidecar and view.started):
                    break
                continue
            if view.ended is not None and not status.wants_restart(spec, view, member.is_init):
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
        main = [m.view for m in self._members if not m.is_init and not m.is_debugging]
        return all(not v.is_running and v.ended is not None and not status.wants_restart(spec, v, False) for v in main)

    def _finish(self) -> str | None:
        """Sidecars are told to end when the work is done; the pod is over when they have."""
        left = [m for m in reversed(self._members) if m.view.is_running]
        if not left:
            return "finished"
        if left[0].stopping is None:
            left[0].stopping = asyncio.create_task(
                self._end_one(left[0], time.monotonic() + self._grace(), f"Stopping container {left[0].view.name}")
            )
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

    # -- starting

    async def _start(self, member: Member) -> None:
        view, context = member.view, self.context
        attempt = 0 if view.ended is None and member.current is None else view.restarts + 1
        try:
            image = context.catalogue.resolve(member.rules.get("image") or "")
            self._tell_image(member, image.note)
            view.image_id = image.id
            assert self._volumes is not None
            spec = await launch.build(self._known_pod(), member.rules, attempt, image, self._volumes, context)
        except ImageError as error:
            self._image_failed(member, str(error))
            return
        except environment.ConfigError as error:
            self._not_created(member, "CreateContainerConfigError", str(error))
            return
        except launch.CreateError as error:
            self._not_created(member, error.reason, str(error))
            return
        except VolumeError as error:
            self._not_created(member, "CreateContainerConfigError", str(error))
            return
        except errors.ApiError as error:
            self._not_created(member, "CreateContainerConfigError", error.message)
            return
        except OSError as error:  # a full disk, most likely: it is tried again
            self._not_created(member, "CreateContainerError", str(error))
            return
        except DeviceError as error:
            # kubelet would fail the pod; but the scheduler counted right, so the one who has them is about to go.
            self._not_created(member, "CreateContainerError", str(error))
            return
        member.lengthen_backoff(context.settings)
        await self._drop_layers(member)
        await self._drop_oldest(member)
        starting = asyncio.ensure_future(context.containers.start(self.uid, view.name, attempt, spec))
        try:
            container = await asyncio.shield(starting)
        except (ProcessError, OSError) as error:
            self._not_created(member, "CreateContainerError", str(error))
            return
        except asyncio.CancelledError:
            # A stop came while the process was being made: it has to be known before it can be ended.
            with contextlib.suppress(ProcessError, OSError):
                self._took_off(member, await starting)
            raise
        if image.note and container.exit is not None and not container.started_at:
            # The likely reason why its program is not there, and the command that mends it.
            container.exit = {**container.exit, "message": f"{container.exit['message']}. {image.note}"}
        self._took_off(member, container)
        if view.is_running:
            await self._after_start(member)

    def _took_off(self, member: Member, container: Container) -> None:
        view = member.view
        view.previous, view.ended = view.ended or view.previous, None
        member.current, member.stopping = container, None
        member.retry_wait = member.retry_at = 0.0
        view.restarts, view.container_id = container.attempt, f"danlu://{container.id}"
        view.waiting = None
        self.event("Normal", "Created", "Container created", member)
        note = launch.user_note(self.pod, member.rules, self.context.mode)
        if note and "user" not in member.told:
            member.told.add("user")
            self.event("Warning", "RunAsUser", note, member)
        if container.started_at:
            view.running_since = container.started_at
            self.event("Normal", "Started", "Container started", member)
        if container.exit is not None:
            if not container.started_at:
                self.event("Warning", "Failed", f"Error: {container.exit['message']}", member)
            self._changed(container)

    async def _after_start(self, member: Member) -> None:
        view = member.view
        if member.is_debugging:
            self.publisher.publish()
            return
        hook = (member.rules.get("lifecycle") or {}).get("postStart")
        if hook:
            answer = await probes.ask(hook, member, timeout=3600.0)
            if not answer.passed and view.is_running:
                self.event("Warning", "FailedPostStartHook", "PostStartHook failed", member)
                self._kill(member, "FailedPostStartHook")
                return
        view.started = "startupProbe" not in member.rules
        self._begin_probes(member)

    def _begin_probes(self, member: Member) -> None:
        view, rules = member.view, member.rules
        if not view.started:
            member.tasks.append(self._probe(member, "Startup", rules["startupProbe"], self._on_startup))
            return
        if "livenessProbe" in rules:
            member.tasks.append(self._probe(member, "Liveness", rules["livenessProbe"], self._on_liveness))
        if "readinessProbe" in rules:
            member.tasks.append(self._probe(member, "Readiness", rules["readinessProbe"], self._on_readiness))
        else:
            view.ready = True
        self._wake.set()

    def _probe(self, member: Member, what: str, rules: Object, changed: object) -> asyncio.Task[None]:
        def failed(said: str) -> None:
            self.event("Warning", "Unhealthy", f"{what} probe failed: {said}", member)

        def verdict(passed: bool) -> None:
            assert callable(changed)
            changed(member, passed)

        initially = member.view.ready if what == "Readiness" else what == "Liveness"
        return asyncio.create_task(
            probes.watch(rules, member, initially=initially, changed=verdict, failed=failed, once=what == "Startup")
        )

    def _on_startup(self, member: Member, passed: bool) -> None:
        if passed:
            member.view.started = True
            self._begin_probes(member)
        else:
            self._kill(member, self._failed(member, "startup"), "startupProbe")

    def _on_liveness(self, member: Member, passed: bool) -> None:
        if not passed:
            self._kill(member, self._failed(member, "liveness"), "livenessProbe")

    def _failed(self, member: Member, probe: str) -> str:
        never = status.restart_policy(self.pod["spec"], member.rules) == "Never"
        return f"Container {member.view.name} failed {probe} probe" + ("" if never else ", will be restarted")

    def _on_readiness(self, member: Member, passed: bool) -> None:
        member.view.ready = passed
        self.publisher.publish()

    def _kill(self, member: Member, message: str, probe: str = "") -> None:
        if member.stopping is None:
            own = (member.rules.get(probe) or {}).get("terminationGracePeriodSeconds")
            grace = float(own) if own is not None else self._grace()
            member.stopping = asyncio.create_task(self._end_one(member, time.monotonic() + grace, message))

    def _take_new_images(self, spec: Object) -> None:
        """The image is the one thing of a container that may change: what runs is ended, and starts with the new."""
        newest = {c["name"]: c for key in ("initContainers", "containers") for c in spec.get(key) or ()}
        for member in self._members:
            rules = newest.get(member.view.name)
            if rules is None or rules.get("image") == member.rules.get("image"):
                continue
            member.view.rules = rules
            if member.view.is_running:
                self._kill(member, f"Container {member.view.name} definition changed, will be restarted")

    def _take_new_sizes(self, spec: Object) -> None:
        """What a container may use has changed (pods/resize): what runs is told, or started again if that is asked."""
        newest = {c["name"]: c for key in ("initContainers", "containers") for c in spec.get(key) or ()}
        for member in self._members:
            rules = newest.get(member.view.name)
            if rules is None or rules.get("resources") == member.rules.get("resources"):
                continue
            changed = resizing.changed(member.rules, rules)
            member.view.rules = rules
            if not member.view.is_running:
                continue
            if resizing.needs_restart(rules, changed):
                self._kill(member, f"Container {member.view.name} resize requires restart")
            else:
                self.context.containers.limit_memory(member.container, launch.memory_limit(rules))

    def _take_debugging_containers(self, spec: Object) -> None:
        known = {member.view.name for member in self._members}
        for rules in spec.get("ephemeralContainers") or ():
            if rules["name"] not in known:
                view, containers = View(rules["name"], rules=rules), self.context.containers
                member = Member(view, False, containers, self._connect, is_debugging=True)
                member.address = self.view.pod_ip
                self._members.append(member)
                self.view.debugging.append(member.view)

    # -- not starting

    def _tell_image(self, member: Member, note: str) -> None:
        image = member.rules.get("image") or ""
        if note and "image" not in member.told:
            self.event("Warning", "ImageSubstituted", note, member)
        member.told.add("image")
        self.event(
            "Normal", "Pulled", f'Container image "{image}" already present on machine and can be accessed by the pod',
            member,
        )  # fmt: skip

    def _image_failed(self, member: Member, problem: str) -> None:
        """Fails and waits by turns, as kubelet does: ErrImagePull, then ImagePullBackOff until the next try."""
        image = member.rules.get("image") or ""
        if member.view.waiting is not None and member.view.waiting[0] == "ErrImagePull":
            self.event("Normal", "BackOff", f'Back-off pulling image "{image}"', member)
            self.event("Warning", "Failed", "Error: ImagePullBackOff", member)
            member.view.waiting = ("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {problem}')
            member.pull_backoff = min(max(10.0, member.pull_backoff * 2), self.context.settings.longest_backoff_s)
            member.retry_at = time.monotonic() + member.pull_backoff
            return
        self.event("Normal", "Pulling", f'Pulling image "{image}"', member)
        self.event("Warning", "Failed", f'Failed to pull image "{image}": {problem}', member)
        self.event("Warning", "Failed", "Error: ErrImagePull", member)
        member.view.waiting = ("ErrImagePull", problem)
        member.retry_at = time.monotonic() + self.context.settings.retry_s

    def _not_created(self, member: Member, reason: str, problem: str) -> None:
        self.event("Warning", "Failed", f"Error: {problem}", member)
        member.view.waiting = (reason, problem)
        member.retry_wait = min(max(self.context.settings.retry_s, member.retry_wait * 2), 10.0)
        member.retry_at = time.monotonic() + member.retry_wait

    # -- what happened

    def _changed(self, container: Container) -> None:
        """A container started or ended (from `Containers`)."""
        member = next((m for m in self._members if m.current is container), None)
        if member is None or container.exit is None:
            return
        view = member.view
        if view.ended is None:
            member.cancel_tasks()
            view.running_since, view.ready, view.started = None, False, False
            view.ended = member.ended(container)
            if member.is_init and not view.is_sidecar and view.is_done_well:
                view.ready = True
        self._wake.set()

    # -- ending

    @property
    def grace_s(self) -> float:
        return self._grace()

    def _grace(self) -> float:
        meta, spec = self.pod["metadata"], self.pod["spec"]
        if self._removed:
            return 0.0
        asked = meta.get("deletionGracePeriodSeconds")
        return float(asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30))

    async def _end_all(self) -> None:
        """Containers first, all at once; then the sidecars that served them, last started first."""
        self.publisher.publish()
        began = time.monotonic()
        main = [m for m in self._members if m.view.is_running and not m.view.is_sidecar]
        await asyncio.gather(*(self._end_one(m, began, f"Stopping container {m.view.name}", True) for m in main))
        for member in reversed(self._members):
            if member.view.is_running:
                await self._end_one(member, began, f"Stopping container {member.view.name}", True)

    async def _end_one(self, member: Member, moment: float, message: str, by_pod: bool = False) -> None:
        """preStop, SIGTERM, SIGKILL. `moment` is the deadline; with `by_pod` the begin, and the pod's grace counts from
        it, which a second, shorter deletion may cut while we wait."""
        container = member.container
        if not member.view.is_running:
            return

        def left() -> float:
            return moment + (self._grace() if by_pod else 0.0) - time.monotonic()

        self.event("Normal", "Killing", message, member)
        member.cancel_tasks()
        hook = (member.rules.get("lifecycle") or {}).get("preStop")
        if hook and left() > 0:
            answer = await probes.ask(hook, member, timeout=max(left(), LEAST_GRACE_S))
            if not answer.passed:
                self.event("Warning", "FailedPreStopHook", "PreStopHook failed", member)
        if self._paused and not member.is_debugging and not container.ended.is_set():
            adoption.interrupt(container.folder)
        stop_signal = (member.rules.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
        await self._send(container, getattr(signal, stop_signal, signal.SIGTERM))
        least = time.monotonic() + LEAST_GRACE_S
        while not container.ended.is_set() and (left() > 0 or time.monotonic() < least):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(max(left(), 0.05), 0.5)):
                    await container.ended.wait()
        if not container.ended.is_set():
            await self._send(container, signal.SIGKILL)
            await container.ended.wait()

    async def _send(self, container: Container, number: int) -> None:
        with contextlib.suppress(ProcessError):
            await self.context.containers.signal(container.id, number)

    async def _conclude(self) -> None:
        """Nothing runs any more: the last status, then the end of what the pod had here."""
        self.view.finished = True
        deleting = bool(self.pod["metadata"].get("deletionTimestamp"))
        if self._paused and not deleting:
            volumes.forget(self.uid)
            return
        if self.view.verdict is not None or (deleting and not self._removed):
            for member in self._members:
                member.view.waiting = member.view.waiting if member.view.ended is None else None
        # Before the status is written: the scheduler gives the GPUs away as soon as it reads that this pod ended.
        self.context.release_devices(self.uid)
        if not self._removed and not status.is_terminal(self.pod):
            self.view.sandbox_ready = bool(self.view.pod_ip)
            await self.publisher.flush()
        volumes.forget(self.uid)
        self.context.addresses.give_back(self.uid)
        for member in self._members:
            if member.current is not None:
                sandbox.remove_links(member.current.spec["sandbox"])
            await self._drop_layers(member)
        await self.context.containers.forget(self.uid)
        if self.pod["metadata"].get("deletionTimestamp") and not self._removed:
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

    async def _drop_layers(self, member: Member) -> None:
        """The writable layers of runs that are over: nobody can reach them any more."""
        current = member.current
        if current is None or current.exit is None:
            return
        for layer in (current.root, current.folder / "skeleton", current.folder / layering.WORK):
            if layer.exists():  # most have been removed by the shim
                await asyncio.to_thread(remove_tree, layer)

    async def _drop_oldest(self, member: Member) -> None:
        """Called before a restart: `kubectl logs --previous` reaches one run back, and nobody further."""
        current = member.current
        if current is not None and current.attempt > 0:
            old = current.attempt - 1
            await asyncio.to_thread(remove_tree, current.folder.with_name(str(old)))
            await asyncio.to_thread(remove_log, logs.path_for(self.context.data_dir, self.uid, current.name, old))

    # -- small things

    async def _connect(self, host: str, port: int) -> socket.socket:
        """For probes: to this pod, unless they name another host."""
        uid = self.uid if host == self.view.pod_ip else ""
        return await self.context.sockets.connect((host,), port, uid)

    def _known_pod(self) -> Object:
        """The pod, with the address that the API may not know yet."""
        old = self.pod.get("status") or {}
        ip, host = self.view.pod_ip, self.view.host_ip
        known = {**old, "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": host, "hostIPs": [{"ip": host}]}
        return {**self.pod, "status": known}

    def _status(self) -> Object:
        return status.compute(self.pod, self.view, time.time())

    def event(self, kind: str, reason: str, message: str, member: Member | None = None) -> None:
        path = ""
        if member is not None:
            listed = (
                "ephemeralContainers" if member.is_debugging else "initContainers" if member.is_init else "containers"
            )
            path = f"spec.{listed}{{{member.view.name}}}"
        about = self.pod if "kind" in self.pod else {"apiVersion": "v1", "kind": "Pod", **self.pod}
        self.context.recorder.event(about, kind, reason, message, field_path=path)
