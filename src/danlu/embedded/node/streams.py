"""What the API server asks of this node: logs, exec, attach and connections to pods (its `NodeStreams`).

Pipes and terminals are read and written on the event loop as they are ready; a reader that lags stops the reading, so
that a program cannot fill the server's memory.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.logs.logreader import EVERYTHING, read
from danlu.embedded.node.network.ownports import Home
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.sandbox.processes import Container, Containers, ExecError, ExecSession, ProcessError
from danlu.embedded.streamoptions import LogOptions, StreamOptions
from danlu.errors import BadRequest, InternalError
from danlu.meta.kind import Object

STDOUT, STDERR = 1, 2
CHUNK = 64 * 1024
MOST_QUEUED = 16  # chunks read ahead of the client
END_OF_INPUT = b"\x04"  # what closing its stdin means on a terminal


class Streams:
    def __init__(self, containers: Containers, sockets: PodSockets) -> None:
        self._containers = containers
        self._sockets = sockets

    async def logs(
        self,
        pod: Object,
        container: str,
        options: LogOptions = EVERYTHING,
        *,
        previous: bool = False,
    ) -> AsyncIterator[bytes]:
        uid = pod["metadata"]["uid"]
        attempt = self._attempt(pod, container, previous)
        path = logfiles.path_for(str(self._containers.data_dir), uid, container, attempt)

        def ended() -> bool:
            return not any(c.name == container and c.attempt == attempt for c in self._containers.running_in(uid))

        return read(path, options, ended)

    async def check(self, pod: Object, container: str) -> None:
        self._running(pod, container)

    async def exec(self, pod: Object, container: str, command: Sequence[str], streams: StreamOptions) -> ProcessSession:
        found = self._running(pod, container)
        try:
            session = await self._containers.exec(found.id, list(command), tty=streams.tty, stdin=streams.stdin)
        except ExecError as error:
            raise InternalError(f"Internal error occurred: error executing command in container: {error}") from error
        except ProcessError as error:
            raise _not_found(container) from error
        return ProcessSession(session, stdout=streams.stdout, stderr=streams.stderr, is_exec=True)

    async def attach(self, pod: Object, container: str, streams: StreamOptions) -> ProcessSession:
        found = self._running(pod, container)
        try:
            session = await self._containers.attach(found.id, stdin=streams.stdin)
        except (ExecError, ProcessError) as error:
            raise _not_found(container) from error
        wanted = {"stdout": streams.stdout, "stderr": streams.stderr, "stdin": streams.stdin}
        return ProcessSession(session, **wanted, is_exec=False)

    async def connect(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Tries the pod's own address, then its localhost, then the machine's: pods share that network."""
        own = pod.get("status", {}).get("podIP") or ""
        addresses = [
            *dict.fromkeys([*([own] if own else ()), *(str(one) for one in Home.of(own) or ()), "127.0.0.1", "::1"])
        ]
        made = await self._sockets.connect(addresses, port, pod["metadata"]["uid"])
        return await asyncio.open_connection(sock=made, limit=256 * 1024)

    def _running(self, pod: Object, container: str) -> Container:
        for found in self._containers.running_in(pod["metadata"]["uid"]):
            if found.name == container and found.pid:
                return found
        raise _not_found(container)

    def _attempt(self, pod: Object, container: str, previous: bool) -> int:
        """Which run's log is meant. Raises BadRequest in kubelet's words when there is none."""
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        running = [c.attempt for c in self._containers.running_in(uid) if c.name == container]
        status = _container_status(pod, container)
        restarts = int(status.get("restartCount") or 0) if status else 0
        state, last = (status or {}).get("state") or {}, (status or {}).get("lastState") or {}
        ended_before = last.get("terminated")
        if previous:
            if running and max(running) > 0:
                return max(running) - 1
            if not ended_before:
                raise BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
            # While the next run waits for its turn, the count is still that of the last one.
            return restarts if "waiting" in state else max(0, restarts - 1)
        if running:
            return max(running)  # the status on the server may be a moment behind
        if status is None:
            raise BadRequest(f'container "{container}" in pod "{name}" is not available')
        if "running" in state or "terminated" in state or ended_before:
            return restarts
        raise BadRequest(_waiting(container, name, state.get("waiting")))


def _container_status(pod: Object, container: str) -> Object | None:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for found in status.get(field) or []:
            if found["name"] == container:
                return dict(found)
    return None


def _waiting(container: str, pod: str, waiting: Object | None) -> str:
    text = f'container "{container}" in pod "{pod}" is waiting to start'
    if waiting is None:
        return f"{text} - no logs yet"
    reasons = {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }
    reason = waiting.get("reason", "")
    return f"{text}: {reasons.get(reason, reason)}"


def _not_found(container: str) -> InternalError:
    return InternalError(f'unable to upgrade connection: container not found ("{container}")')


class _Reader:
    """Chunks of one descriptor. `on_change` is called when there is a new chunk, or the end."""

    def __init__(self, fd: int, on_change: Callable[[], None]) -> None:
        self._fd = fd
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._reading = False
        self.chunks: deque[bytes] = deque()
        self.ended = False
        os.set_blocking(fd, False)
        self.resume()

    def resume(self) -> None:
        if not self._reading and not self.ended:
            self._reading = True
            self._loop.add_reader(self._fd, self._ready)

    def stop(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # EIO: nobody has the other side of the terminal any more
            data = b""
        if data:
            self.chunks.append(data)
        else:
            self.ended = True
        if self.ended or len(self.chunks) >= MOST_QUEUED:
            self.stop()
        self._on_change()


class ProcessSession:
    """The API server's `Session` on the descriptors of a process."""

    def __init__(self, session: ExecSession, *, stdout: bool, stderr: bool, is_exec: bool, stdin: bool = True) -> None:
        self._session = session
        self._is_exec = is_exec
        self._changed = asyncio.Event()
        self._input = session.stdin_fd if session.stdin_fd >= 0 else session.pty_fd
        if not stdin:
            self._input = -1
        if self._input >= 0:
            os.set_blocking(self._input, False)
        self._wanted = {STDOUT: stdout, STDERR: stderr}
        out = session.stdout_fd if session.stdout_fd >= 0 else session.pty_fd
        found = {STDOUT: out, STDERR: session.stderr_fd}
        self._readers = {channel: _Reader(fd, self._changed.set) for channel, fd in found.items() if fd >= 0}

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        while True:
            self._changed.clear()
            for channel, reader in self._readers.items():
                while reader.chunks:
                    chunk = reader.chunks.popleft()
                    if self._wanted[channel]:
                        yield channel, chunk
                reader.resume()
            if all(reader.ended and not reader.chunks for reader in self._readers.values()):
                return
            await self._changed.wait()

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._input >= 0:
            try:
                view = view[os.write(self._input, view) :]
            except (BlockingIOError, InterruptedError):
                await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        fd = self._input
        loop.add_writer(fd, wake)
        try:
            await ready
        finally:
            loop.remove_writer(fd)

    def close_stdin(self) -> None:
        if self._input < 0:
            return
        if self._input == self._session.pty_fd:
            with suppress(OSError):
                os.write(self._input, END_OF_INPUT)
            return
        self._input = -1
        os.close(self._session.stdin_fd)
        self._session.stdin_fd = -1
        if not self._is_exec:
            self._session.end_input()

    def resize(self, width: int, height: int) -> None:
        self._session.resize(width, height)

    async def wait(self) -> int:
        code = await self._session.wait()
        return code if self._is_exec else 0

    async def close(self) -> None:
        for reader in self._readers.values():
            reader.stop()
        if self._is_exec:
            self._session.kill()
        self._session.close()
        self._session.close_fds()
