"""Containers as the node sees them: start, watch, signal, exec, attach. The work itself is done by spawner and shims.

On disk, under DATA/pods/<pod uid>/containers/<name>/<attempt>/: spec.json (the intent, written before anything is
started), lock, pid, shim.sock, state.json, exit.json, root/ (the writable layer). See `shim` for what each promises
and `adoption` for how a new `danlu up` reads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import json
import os
import signal
import socket
import struct
import subprocess
import termios
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from danlu.embedded import private_files
from danlu.embedded.node.sandbox import cgroups, wire
from danlu.embedded.node.sandbox.box import Capabilities
from danlu.embedded.node.sandbox.cgroups import CgroupTree
from danlu.embedded.node.sandbox.interpreter import helper_command
from danlu.embedded.node.sandbox.procfs import parent
from danlu.embedded.node.sandbox.shim import Exit, LaunchSpec
from danlu.embedded.node.sandbox.wire import Message

SOCKET_PATH_LIMIT = 100
LOST = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"


class ProcessError(Exception):
    """A container could not be made, or is not there."""


class Channel:
    """One connection on the event loop; `receive` is called with each message, and with None at the end."""

    def __init__(self, connection: socket.socket, receive: Callable[[Message | None, list[int]], None]) -> None:
        connection.setblocking(False)
        self._reader = wire.Reader(connection)
        self._receive = receive
        self._open = True
        asyncio.get_running_loop().add_reader(connection.fileno(), self._read)

    def send(self, message: Message) -> None:
        if self._open:
            with contextlib.suppress(OSError):
                wire.send(self._reader.source, message)

    def close(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._reader.source.fileno())
            self._reader.close()

    def _read(self) -> None:
        for message in self._reader.read():
            self._receive(message, self._reader.take_fds())
        if self._reader.ended and self._open:
            self.close()
            self._receive(None, [])


class Spawner:
    """The helper process, and the way to ask it."""

    def __init__(self) -> None:
        self.capabilities = Capabilities("none", "the spawner has not started")
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._hello: asyncio.Future[Message] | None = None
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._serial = 0

    async def start(self) -> None:
        """Once; who asks again waits for nothing."""
        if self._channel is not None:
            return
        ours, theirs = socket.socketpair()
        self._process = _start_spawner(theirs)
        theirs.close()
        self._hello = asyncio.get_running_loop().create_future()
        self._channel = Channel(ours, self._receive)
        async with asyncio.timeout(10):
            hello = await self._hello
        self.capabilities = Capabilities(**hello)

    async def stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, 5)
            self._process = None

    async def spawn(self, folder: str) -> None:
        """Returns when the shim's socket listens."""
        if self._channel is None:
            await self.start()
        assert self._channel is not None
        self._serial += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._serial] = answer
        self._channel.send({"id": self._serial, "folder": folder})
        problem = (await answer).get("problem")
        if problem:
            raise ProcessError(f"the container's process could not be made: {problem}")

    def _receive(self, message: Message | None, _fds: list[int]) -> None:
        if message is None:
            self._channel = None
            for future in [*self._waiting.values(), self._hello]:
                if future is not None and not future.done():
                    future.set_result({"problem": "the spawner ended"})
            self._waiting.clear()
        elif "id" in message:
            future = self._waiting.pop(message["id"], None)
            if future is not None and not future.done():
                future.set_result(message)
        elif self._hello is not None and not self._hello.done():
            self._hello.set_result(message)


def _start_spawner(end: socket.socket) -> subprocess.Popen[bytes]:
    command = helper_command("spawner", "main")
    return subprocess.Popen(command, stdin=end.fileno(), start_new_session=True, cwd="/")


@dataclass(slots=True)
class Container:
    """One run of one container."""

    id: str
    pod_uid: str
    name: str
    attempt: int
    folder: Path
    spec: LaunchSpec
    pid: int = 0
    shim_pid: int = 0  # all processes of the container descend from it
    started_at: float = 0.0
    exit: Exit | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # started, or failed to
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    channel: Channel | None = None

    @property
    def is_running(self) -> bool:
        return self.exit is None

    @property
    def root(self) -> Path:
        return self.folder / "root"


@dataclass(slots=True)
class ExecSession:
    """A command in a running container, or a connection to its first process.

    `console` (a terminal: read and write) or the three pipes; -1 is absent. The receiver owns the descriptors.
    """

    stdin_fd: int
    stdout_fd: int
    stderr_fd: int
    pty_fd: int
    _channel: Channel
    _exit: asyncio.Future[int]

    def resize(self, width: int, height: int) -> None:
        if self.pty_fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.pty_fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        return await asyncio.shield(self._exit)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._channel.send({"op": "signal", "signal": int(number)})

    def end_input(self) -> None:
        """Tells an attached container that no more comes; our own end of the pipe is not the only one."""
        self._channel.send({"op": "end_of_input"})

    def close(self) -> None:
        """Lets go of the connection; a command that was run goes on."""
        self._channel.close()
        if not self._exit.done():
            self._exit.set_result(137)

    def close_fds(self) -> None:
        for fd in {self.stdin_fd, self.stdout_fd, self.stderr_fd, self.pty_fd} - {-1}:
            with contextlib.suppress(OSError):
                os.close(fd)


class ExecError(Exception):
    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Containers:
    """All containers of this node that are known, by id."""

    def __init__(self, data_dir: Path, spawner: Spawner) -> None:
        self.data_dir = data_dir
        self.spawner = spawner
        self._by_id: dict[str, Container] = {}
        self._adopted: set[str] = set()
        self._listeners: dict[str, Callable[[Container], None]] = {}
        self.refused: Callable[[str, str, int], None] = lambda pod_uid, address, port: None

    def pod_folder(self, pod_uid: str) -> Path:
        return self.data_dir / "pods" / pod_uid

    def folder(self, pod_uid: str, name: str, attempt: int) -> Path:
        return self.pod_folder(pod_uid) / "containers" / name / str(attempt)

    def listen(self, pod_uid: str, listener: Callable[[Container], None]) -> None:
        """One listener for each pod: told when a container of it starts or ends."""
        self._listeners[pod_uid] = listener

    def get(self, container_id: str) -> Container:
        found = self._by_id.get(container_id.removeprefix("danlu://"))
        if found is None:
            raise ProcessError(f'container "{container_id}" not found')
        return found

    def running(self) -> list[Container]:
        return [c for c in self._by_id.values() if c.is_running]

    def running_in(self, pod_uid: str) -> list[Container]:
        return [c for c in self._by_id.values() if c.pod_uid == pod_uid and c.is_running]

    def adopted(self, pod_uid: str) -> None:
        """From here on all that runs of this pod is known."""
        self._adopted.add(pod_uid)

    def is_adopted(self, pod_uid: str) -> bool:
        return pod_uid in self._adopted

    async def start(self, pod_uid: str, name: str, attempt: int, spec: LaunchSpec) -> Container:
        """Returns when the program runs, or has failed to: then `exit` is set."""
        folder = self.folder(pod_uid, name, attempt)
        folder.mkdir(parents=True, exist_ok=True)
        for file in ("pid", "state.json", "exit.json"):
            private_files.keep_room(folder / file)  # a full disk keeps it from starting, never from ending
        write_whole(folder / "spec.json", spec)
        container = Container(spec["id"], pod_uid, name, attempt, folder, spec)
        self._by_id[container.id] = container
        try:
            await self.spawner.spawn(str(folder))
            self._follow_started(container)
        except (ProcessError, OSError):
            del self._by_id[container.id]
            raise
        await container.settled.wait()
        return container

    def _follow_started(self, container: Container) -> None:
        try:
            self.follow(container)
        except OSError:
            # A program as short as `true` can be over, and its shim gone, before we connect.
            ended = read_exit(container.folder)
            if ended is None:
                raise
            self._settle(container, ended)

    def follow(self, container: Container) -> None:
        """Connects to the shim; raises OSError when none answers."""
        self._by_id[container.id] = container
        container.channel = Channel(connect(container.folder), lambda message, _: self._hear(container, message))
        container.channel.send({"op": "watch"})

    def add_ended(self, container: Container, ended: Exit) -> None:
        """A run that was over before we looked."""
        self._by_id[container.id] = container
        self._settle(container, ended)

    async def signal(self, container_id: str, number: int, *, or_kill: bool = False) -> None:
        """To its first process. As number 1 that is deaf to signals that it says nothing about: with `or_kill` it is
        then killed, because waiting for it would be in vain."""
        container = self.get(container_id)
        if container.channel is not None:
            container.channel.send({"op": "signal", "signal": int(number), "or_kill": or_kill})

    @functools.cached_property
    def cgroups(self) -> CgroupTree:
        """Where their control groups are made."""
        return cgroups.find()

    def limit(self, container: Container, memory: int, cpu: int) -> None:
        """From now on: bytes, and thousandths of a core; 0 for none."""
        if container.channel is not None:
            container.channel.send({"op": "limit", "memory": memory, "cpu": cpu})

    async def wait(self, container_id: str) -> Exit:
        container = self.get(container_id)
        await container.ended.wait()
        assert container.exit is not None
        return container.exit

    async def exec(
        self,
        container_id: str,
        argv: list[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        env: dict[str, str] | None = None,
    ) -> ExecSession:
        """Raises ExecError when the command cannot be run (exit code 126 or 127)."""
        return await self._session(
            container_id, {"op": "exec", "argv": argv, "tty": tty, "stdin": stdin, "env": env or {}}
        )

    async def attach(self, container_id: str, *, stdin: bool = False) -> ExecSession:
        """With a console: read from `stdout_fd`, write to `pty_fd` (which others read, too)."""
        return await self._session(container_id, {"op": "attach", "stdin": stdin})

    async def forget(self, pod_uid: str) -> None:
        """Drops what is kept in memory of a pod whose containers have ended."""
        self._listeners.pop(pod_uid, None)
        self._adopted.discard(pod_uid)
        for container in [c for c in self._by_id.values() if c.pod_uid == pod_uid]:
            self.drop(container)

    def drop(self, container: Container) -> None:
        if container.channel is not None:
            container.channel.close()
            container.channel = None
        self._by_id.pop(container.id, None)

    async def close(self) -> None:
        """Lets go of all containers without touching them."""
        for container in self._by_id.values():
            if container.channel is not None:
                container.channel.close()

    async def _session(self, container_id: str, request: Message) -> ExecSession:
        container = self.get(container_id)
        if not container.is_running:
            raise ProcessError(f"container {container.name} is not running")
        loop = asyncio.get_running_loop()
        first: asyncio.Future[tuple[Message, list[int]]] = loop.create_future()
        ended: asyncio.Future[int] = loop.create_future()

        def receive(message: Message | None, fds: list[int]) -> None:
            if message is not None and not first.done():
                first.set_result((message, fds))
            elif message is not None and "exit_code" in message and not ended.done():
                ended.set_result(int(message["exit_code"]))
            elif message is None:
                if not first.done():
                    first.set_result(({"problem": "the container has ended", "exit_code": 137}, []))
                if not ended.done():
                    ended.set_result(137)
                channel.close()

        try:
            channel = Channel(connect(container.folder), receive)
        except OSError as error:
            raise ProcessError(f"container {container.name} is not running") from error
        channel.send(request)
        try:
            answer, fds = await first
        except asyncio.CancelledError:
            channel.close()
            raise
        if "streams" not in answer and "problem" not in answer:
            channel.close()  # it ended while we asked
            raise ProcessError(f"container {container.name} is not running")
        if "problem" in answer:
            channel.close()
            raise ExecError(answer["problem"], int(answer.get("exit_code", 126)))
        streams = dict(zip(answer["streams"], fds, strict=True))
        return ExecSession(
            stdin_fd=streams.get("stdin", -1),
            stdout_fd=streams.get("stdout", -1),
            stderr_fd=streams.get("stderr", -1),
            pty_fd=streams.get("console", -1),
            _channel=channel,
            _exit=ended,
        )

    def _hear(self, container: Container, message: Message | None) -> None:
        if message is None:
            # The shim tells its end before it goes: silence means that it was killed, or that it told the disk alone.
            ended = read_exit(container.folder)
            if ended is None and "cgroup" in container.spec:
                asyncio.get_running_loop().run_in_executor(None, cgroups.clear, container.spec["cgroup"])
            self._settle(container, ended or lost_exit(container))
        elif message["state"] == "running":
            container.pid, container.started_at = message["pid"], message["started_at"]
            container.shim_pid = message.get("shim") or parent(container.pid)  # shims of 0.1.0 do not say it
            container.settled.set()
            self._tell(container)
        elif message["state"] == "refused":
            self.refused(container.pod_uid, message["address"], message["port"])
        else:
            self._settle(container, message["exit"])

    def _settle(self, container: Container, ended: Exit) -> None:
        if container.exit is not None:
            return
        container.exit = ended
        container.started_at = container.started_at or ended["started_at"]
        if container.channel is not None:
            container.channel.close()
            container.channel = None
        container.settled.set()
        container.ended.set()
        self._tell(container)

    def _tell(self, container: Container) -> None:
        listener = self._listeners.get(container.pod_uid)
        if listener is not None:
            listener(container)


ExecSession = ExecSession
AttachSession = ExecSession


def connect(folder: Path) -> socket.socket:
    """To the shim of this folder. A path too long for a socket is reached through the folder's descriptor."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = str(folder / "shim.sock")
    handle = -1
    try:
        if len(path) > SOCKET_PATH_LIMIT:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            path = f"/proc/self/fd/{handle}/shim.sock"
        connection.connect(path)
        if not wire.is_same_account(connection):
            raise PermissionError(f"{path} is served by another account")
    except OSError:
        connection.close()
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    return connection


def write_whole(path: Path, content: object) -> None:
    """Whole or not at all, and for this user's eyes only: variables may be secrets.

    Not synced: no container outlives the power cut that would lose it.
    """
    private_files.write(path, orjson.dumps(content), durable=False)


def read_exit(folder: Path) -> Exit | None:
    try:
        found: Exit = json.loads((folder / "exit.json").read_text())
    except (OSError, ValueError):
        return None
    return found


def lost_exit(container: Container) -> Exit:
    import time

    return {
        "exit_code": 137,
        "signal": 0,
        "reason": LOST,
        "message": LOST_MESSAGE,
        "started_at": container.started_at,
        "finished_at": time.time(),
    }
