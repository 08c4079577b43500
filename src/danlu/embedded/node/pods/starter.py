"""Starting one container of a pod: image, launch spec, process, postStart; and what is told when it cannot be made."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from danlu import errors
from danlu.embedded.node.imagesource import Image, ImageError
from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.pods import environment, launch, pause, probes
from danlu.embedded.node.pods.localpod import LocalPod
from danlu.embedded.node.pods.members import Member
from danlu.embedded.node.pods.prober import Prober
from danlu.embedded.node.pods.termination import Termination
from danlu.embedded.node.pressure.cleanup import remove_log, remove_tree
from danlu.embedded.node.sandbox import layering
from danlu.embedded.node.sandbox.devices import DeviceError
from danlu.embedded.node.sandbox.processes import Container, ProcessError
from danlu.embedded.node.sandbox.shim import LaunchSpec
from danlu.embedded.node.volumes.subpaths import VolumeError
from danlu.meta.said import Said, carried

REFUSED = {"InvalidImageName": "InspectFailed"}  # the event's reason, where it is another than the status'


class NotCreated(Exception):
    """The container cannot be made now; why, and the reason that its status shows."""

    def __init__(self, message: str, reason: str = "CreateContainerError") -> None:
        super().__init__(message)
        self.reason = reason


class Starter:
    def __init__(
        self, pod: LocalPod, termination: Termination, prober: Prober, ended: Callable[[Container], None]
    ) -> None:
        """`ended` is told of a container that was over before anyone could wait for it."""
        self._pod = pod
        self._termination = termination
        self._prober = prober
        self._ended = ended

    async def start(self, member: Member) -> None:
        view, context = member.view, self._pod.context
        attempt = 0 if view.ended is None and member.current is None else view.restarts + 1
        try:
            spec = await self._prepare(member, attempt)
        except ImageError as error:
            self._image_failed(member, error)
            return
        except NotCreated as error:
            self._not_created(member, error.reason, error.args[0])
            return
        member.lengthen_backoff(context.settings)
        await drop_layers(member)
        await self._drop_oldest(member)
        starting = asyncio.ensure_future(context.containers.start(self._pod.uid, view.name, attempt, spec))
        try:
            container = await asyncio.shield(starting)
        except (ProcessError, OSError) as error:
            self._not_created(member, "CreateContainerError", str(error))
            return
        except asyncio.CancelledError:
            # A stop came while the process was being made: it has to be known before it can be ended.
            with contextlib.suppress(ProcessError, OSError):
                self._record_started(member, await starting)
            raise
        self._record_started(member, container)
        if view.is_running:
            await self._after_start(member)

    async def _prepare(self, member: Member, attempt: int) -> LaunchSpec:
        """Raises ImageError, or NotCreated for whatever else is missing."""
        local, config = self._pod, "CreateContainerConfigError"
        try:
            images, client = local.context.images, local.context.client
            provided = await images.provide(local.pod, member.spec, client, self._teller(member))
            image = provided.image
            self._tell_image(member, image, provided.pulled)
            member.view.image_id = image.id
            assert local.volumes is not None
            await pause.start(local.pod, local.context)
            spec = await launch.build(local.known(), member.spec, attempt, image, local.volumes, local.context)
        except (environment.ConfigError, VolumeError) as error:
            raise NotCreated(str(error), config) from error
        except launch.CreateError as error:
            raise NotCreated(error.args[0], error.reason) from error
        except errors.ApiError as error:
            raise NotCreated(error.message, config) from error
        except (OSError, ProcessError) as error:  # a full disk, most likely: it is tried again
            raise NotCreated(str(error)) from error
        except DeviceError as error:
            # kubelet would fail the pod; but the scheduler counted right, so the one who has them is about to go.
            raise NotCreated(str(error)) from error
        return spec

    def _record_started(self, member: Member, container: Container) -> None:
        view = member.view
        view.previous, view.ended = view.ended or view.previous, None
        member.current, member.stopping = container, None
        member.retry_wait = member.retry_at = 0.0
        view.restarts, view.container_id = container.attempt, f"danlu://{container.id}"
        view.waiting = None
        self._pod.event("Normal", "Created", "Container created", member)
        note = launch.user_note(self._pod.pod, member.spec, self._pod.context.mode)
        if note and "user" not in member.told:
            member.told.add("user")
            self._pod.event("Warning", "RunAsUser", note, member)
        if container.started_at:
            view.running_since = container.started_at
            self._pod.event("Normal", "Started", "Container started", member)
        if container.exit is not None:
            if not container.started_at:
                self._pod.event("Warning", "Failed", f"Error: {container.exit['message']}", member)
            self._ended(container)

    async def _after_start(self, member: Member) -> None:
        view = member.view
        if member.is_debugging:
            self._pod.publisher.publish()
            return
        hook = (member.spec.get("lifecycle") or {}).get("postStart")
        if hook:
            answer = await probes.ask(hook, member, timeout=3600.0)
            if not answer.passed and view.is_running:
                self._pod.event("Warning", "FailedPostStartHook", "PostStartHook failed", member)
                self._termination.kill(member, "FailedPostStartHook")
                return
        view.started = "startupProbe" not in member.spec
        self._prober.begin(member)

    def _teller(self, member: Member) -> Callable[[str, str, str], None]:
        """Of a pull: it may take its time, so the world sees that the container is being made."""

        def tell(kind: str, reason: str, message: str) -> None:
            self._pod.event(kind, reason, message, member)
            self._pod.publisher.publish()

        return tell

    def _tell_image(self, member: Member, provided: Image, pulled: str) -> None:
        image = member.spec.get("image") or ""
        member.image_note = note = provided.note
        if note and "image" not in member.told:
            self._pod.event("Warning", "ImageSubstituted", note, member)
        elif provided.differs and "image" not in member.told:
            self._pod.event("Normal", "ImageSubstituted", provided.differs, member)
        member.told.add("image")
        present = f'Container image "{image}" already present on machine and can be accessed by the pod'
        self._pod.event("Normal", "Pulled", pulled or present, member)

    def _image_failed(self, member: Member, error: ImageError) -> None:
        """Fails and waits by turns, as kubelet does: ErrImagePull, then ImagePullBackOff until the next try."""
        image, problem = member.spec.get("image") or "", error.args[0]
        if error.reason != ImageError.reason:  # nothing that was tried: kubelet says so and looks again
            self._pod.event("Warning", REFUSED.get(error.reason, error.reason), problem, member)
            self._pod.event("Warning", "Failed", f"Error: {error.reason}", member)
            member.view.waiting = (error.reason, problem)
            member.retry_at = time.monotonic() + self._pod.context.settings.first_backoff_s
            return
        if member.view.waiting is not None and member.view.waiting[0] == "ErrImagePull":
            self._pod.event("Normal", "BackOff", f'Back-off pulling image "{image}"', member)
            self._pod.event("Warning", "Failed", "Error: ImagePullBackOff", member)
            told = Said(f'Back-off pulling image "{image}": ErrImagePull: {problem}', carried(problem))
            member.view.waiting = ("ImagePullBackOff", told)
            member.pull_backoff = min(max(10.0, member.pull_backoff * 2), self._pod.context.settings.longest_backoff_s)
            member.retry_at = time.monotonic() + member.pull_backoff
            return
        told = Said(f'Failed to pull image "{image}": {problem}', carried(problem))
        self._pod.event("Warning", "Failed", told, member)
        self._pod.event("Warning", "Failed", "Error: ErrImagePull", member)
        member.view.waiting = ("ErrImagePull", problem)
        member.retry_at = time.monotonic() + self._pod.context.settings.retry_s

    def _not_created(self, member: Member, reason: str, problem: str) -> None:
        self._pod.event("Warning", "Failed", Said(f"Error: {problem}", carried(problem)), member)
        member.view.waiting = (reason, problem)
        member.retry_wait = min(max(self._pod.context.settings.retry_s, member.retry_wait * 2), 10.0)
        member.retry_at = time.monotonic() + member.retry_wait

    async def _drop_oldest(self, member: Member) -> None:
        """Called before a restart: `kubectl logs --previous` reaches one run back, and nobody further."""
        current = member.current
        if current is not None and current.attempt > 0:
            old = current.attempt - 1
            await asyncio.to_thread(remove_tree, current.folder.with_name(str(old)))
            written = logfiles.path_for(self._pod.context.data_dir, self._pod.uid, current.name, old)
            await asyncio.to_thread(remove_log, written)


async def drop_layers(member: Member) -> None:
    """The writable layers of runs that are over: nobody can reach them any more."""
    current = member.current
    if current is None or current.exit is None:
        return
    for layer in (current.root, current.folder / "skeleton", current.folder / layering.WORK):
        if layer.exists():  # most have been removed by the shim
            await asyncio.to_thread(remove_tree, layer)
