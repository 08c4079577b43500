"""One container of a pod over all its runs: what is known of it, when it may start again, its last words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, field

from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.pods import adoption, podstatus
from danlu.embedded.node.pods.podstatus import Ended, View
from danlu.embedded.node.pods.probes import Connect
from danlu.embedded.node.sandbox.processes import LOST, LOST_MESSAGE, Container, Containers
from danlu.embedded.node.sandbox.shim import Exit
from danlu.embedded.node.settings import NodeSettings
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object

TAIL_BYTES, TAIL_LINES = 2048, 80


@dataclass(slots=True)
class Member:
    """Also what a probe asks (`probes.Target`)."""

    view: View
    is_init: bool
    containers: Containers
    connect: Connect
    is_debugging: bool = False  # an ephemeral container: runs once, beside the others, and the pod does not wait for it
    address: str = ""
    current: Container | None = None
    retry_at: float = 0.0  # not before this moment, because it could not be made
    retry_wait: float = 0.0
    backoff: float = 0.0  # seconds from the end of a run to the start of the next
    backoff_set: float = 0.0
    pull_backoff: float = 0.0
    told: set[str] = field(default_factory=set)  # events that are told once
    image_note: str = ""  # why it does not run in the image that it names
    tasks: list[asyncio.Task[None]] = field(default_factory=list)  # probes
    stopping: asyncio.Task[None] | None = None

    @property
    def spec(self) -> Object:
        return self.view.spec

    @property
    def container(self) -> Container:
        assert self.current is not None
        return self.current

    def cancel_tasks(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.tasks.clear()

    # -- runs of an earlier `danlu up`

    def adopt(self, runs: list[Container], reported: Object) -> None:
        """`runs` are the attempts on disk, oldest first; `reported` is the container's status in the API."""
        view = self.view
        interrupted = any(c.exit is not None and c.exit["reason"] == adoption.INTERRUPTED for c in runs[-1:])
        runs = [container for container in runs if not self._is_void(container)]
        view.restarts = int(reported.get("restartCount") or 0)
        view.image_id = reported.get("imageID") or ""
        if not runs:
            if reported.get("containerID") and not interrupted:
                view.container_id = reported["containerID"]
                view.ended, view.waiting = _as_reported(reported), None
            return
        if len(runs) > 1:
            view.previous = self.ended(runs[-2])
        self.current = current = runs[-1]
        view.restarts = current.attempt
        view.container_id = f"danlu://{current.id}"
        view.waiting = None
        if current.exit is not None:
            view.ended = self.ended(current)
            view.ready = self.is_init and view.is_done_well
            return
        view.running_since = current.started_at
        view.started = bool(reported.get("started")) or "startupProbe" not in self.spec
        view.ready = bool(reported.get("ready"))

    def _is_void(self, container: Container) -> bool:
        """An attempt that never started, or was interrupted, does not count: its number is free again."""
        if container.exit is None or container.exit["reason"] not in (adoption.NEVER_STARTED, adoption.INTERRUPTED):
            return False
        self.containers.drop(container)
        container.folder.rename(container.folder.with_name(f"{container.attempt}.void-{time.time_ns()}"))
        return True

    # -- when it may start

    def seconds_to_wait(self) -> float:
        now = time.monotonic()
        if self.retry_at > now:
            return self.retry_at - now
        if self.view.ended is None or not self.backoff:
            return 0.0
        ended_ago = max(0.0, time.time() - self.view.ended.exit["finished_at"])  # a clock put back stops nobody
        return max(0.0, self.backoff - ended_ago)

    def lengthen_backoff(self, settings: NodeSettings) -> None:
        """Called at a start that follows an end: the first is at once, and each next waits twice as long."""
        if self.view.ended is None:
            return
        now = time.monotonic()
        finished_ago = max(0.0, time.time() - self.view.ended.exit["finished_at"])
        if now - finished_ago - self.backoff_set > settings.backoff_reset_s:
            self.backoff = 0.0
        self.backoff = min(max(settings.first_backoff_s, self.backoff * 2), settings.longest_backoff_s)
        self.backoff_set = now

    # -- how it ended

    def ended(self, container: Container) -> Ended:
        assert container.exit is not None
        return Ended(container.exit, f"danlu://{container.id}", self._last_words(container, container.exit))

    def _last_words(self, container: Container, exit: Exit) -> str:
        with contextlib.suppress(OSError), open(container.folder / "termination-log", "rb") as file:
            said = file.read(podstatus.MESSAGE_LIMIT).decode(errors="replace")
            if said:
                return said
        if self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError" and exit["exit_code"] != 0:
            return log_tail(container.spec["log"])
        return ""


def _as_reported(reported: Object) -> Ended:
    """The API says that it ran and the disk knows nothing: what the API knows of its end, or that it is lost."""
    known = (reported.get("state") or {}).get("terminated")
    exit: Exit = {
        "exit_code": 137,
        "signal": 0,
        "reason": LOST,
        "message": LOST_MESSAGE,
        "started_at": 0.0,
        "finished_at": time.time(),
    }
    if known:
        exit["exit_code"] = int(known.get("exitCode") or 0)
        exit["reason"], exit["message"] = known.get("reason") or "", known.get("message") or ""
        for key, name in (("started_at", "startedAt"), ("finished_at", "finishedAt")):
            if known.get(name):
                exit[key] = parse_time(known[name]).timestamp()  # type: ignore[literal-required]
    return Ended(exit, reported["containerID"])


def short_duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}m{whole % 60}s" if whole >= 60 else f"{whole}s"


def log_tail(path: str) -> str:
    """The last words of a log, for a termination message."""
    with contextlib.suppress(OSError):
        for number in logfiles.segments(path)[-1:]:
            with open(logfiles.segment_path(path, number), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines(keepends=True)
                return "".join(lines[-TAIL_LINES:])
    return ""
