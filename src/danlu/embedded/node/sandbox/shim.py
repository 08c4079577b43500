"""The shim: one small process beside each container, which outlives `danlu up`.

It makes the container's process, writes down what that prints, waits for it, ends what it leaves behind, and writes
exit.json. Whoever connects to its socket may ask for the state, send signals, attach, and run further commands.

Invariants, on which adoption rests:
- the shim holds a lock on the file `lock` (taken by the spawner before the fork) for as long as it lives;
- `pid` is on disk before the container's program begins;
- exit.json appears once, whole, when nothing of the container runs any more; the shim ends right after (a full disk
  cannot prevent that, or the `pid`: whoever starts the container keeps room for these files);
- the container's first process does not outlive the shim.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from typing import NoReturn, NotRequired, TypedDict

from danlu.embedded import private_files
from danlu.embedded.node.logs.logfiles import LogWriter
from danlu.embedded.node.network import ownports
from danlu.embedded.node.sandbox import (
    cgroups,
    containerprocess,
    devicecgroup,
    kernel,
    layering,
    namespaces,
    procfs,
    wire,
)
from danlu.embedded.node.sandbox.box import Sandbox
from danlu.embedded.node.sandbox.procfs import boot_id, descendants, exit_code, proportional, resident, start_time
from danlu.embedded.node.sandbox.wire import Message

PR_SET_CHILD_SUBREAPER = 36
CHUNK = 65536
MEMORY_EVERY_S = 0.25
OOM_S = 1.0  # between the kernel's word that memory is short and its choice of a process
DRAIN_S = 2.0  # for the last words of a container whose pipe someone else still holds
LAYER_ENTRIES, SMALL_FILE = 500, 1 << 20  # what is removed at once of a container's writable layer
ATTACH_BUFFER = 4 << 20  # a reader that is this far behind is let go, so that it cannot hold up the container
START_FAILED = 128
MESSAGE_LENGTH = 500  # so that exit.json fits the room that was kept for it, whatever JSON makes of the letters


class LaunchSpec(TypedDict):
    """spec.json: all that the shim needs. Written before the fork: it is the intent to start this container once."""

    id: str
    argv: list[str]
    env: dict[str, str]
    tty: bool
    stdin: bool
    stdin_once: bool
    log: str
    log_limits: NotRequired[list[int]]  # bytes of one file, bytes of all
    memory_limit: int  # bytes, 0 for none
    sandbox: Sandbox
    stop_signal: NotRequired[str]  # what its image wants instead of SIGTERM
    cgroup: NotRequired[cgroups.GroupSpec]  # absent: the kernel keeps no limits


class Exit(TypedDict):
    """exit.json."""

    exit_code: int
    signal: int
    reason: str  # Completed, Error, OOMKilled, StartError, or ContainerStatusUnknown when the shim was lost
    message: str
    started_at: float  # 0 when it never started
    finished_at: float


class _Client:
    """One connection: it may watch, attach or own an exec, until it closes."""

    def __init__(self, connection: socket.socket) -> None:
        self.reader = wire.Reader(connection)
        self.watching = False
        self.exec_pid = 0
        self.types = False  # attached, and may write to stdin
        self.outputs: dict[str, int] = {}  # attached: stream -> write end of a pipe
        self.backlog: dict[str, bytearray] = {}

    def send(self, message: Message, fds: list[int] | None = None) -> None:
        with contextlib.suppress(OSError):
            wire.send(self.reader.source, message, fds)


class Shim:
    def __init__(self, folder: str, spec: LaunchSpec, listener: socket.socket) -> None:
        self.folder = folder
        self.spec = spec
        self.listener = listener
        self.log = LogWriter(spec["log"], *spec.get("log_limits", ()))
        self.selector = selectors.DefaultSelector()
        self.clients: list[_Client] = []
        self.outputs: dict[int, str] = {}  # read end -> stream
        self.stdin = -1
        self.console = -1
        self.pid = 0
        self.started_at = 0.0
        self.oom = False
        ports = spec["sandbox"].get("ports")
        self.supervisor = ownports.Supervisor(ports, self._refused_port) if ports else None
        self.device_cgroup = ""
        self.status: int | None = None  # of the container's first process, as waitpid tells it
        self.next_memory_check = 0.0
        self.group: cgroups.ControlGroup | None = None

    # -- life

    def run(self) -> None:
        kernel.prctl(PR_SET_CHILD_SUBREAPER, 1) if sys.platform.startswith("linux") else None
        wake_reader, wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(wake_reader, False)
        os.set_blocking(wake_writer, False)
        for number in containerprocess.IGNORED_BY_SHIMS:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self.selector.register(wake_reader, selectors.EVENT_READ, self._reap)
        problem = self._start()
        if problem:
            told = problem[:MESSAGE_LENGTH]
            self._finish({"reason": "StartError", "message": told, "exit_code": START_FAILED, "signal": 0})
            return
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        while self.status is None:
            self._turn(self._select_timeout())
        self._end_leftovers()
        self._drain()
        self._finish(self._outcome(self.status))

    def _select_timeout(self) -> float | None:
        waits = []
        if self._watches_memory:
            waits.append(MEMORY_EVERY_S)
        deadline = self.log.deadline()
        if deadline is not None:
            waits.append(max(0.0, deadline - time.monotonic()))
        return min(waits) if waits else None

    def _turn(self, timeout: float | None) -> None:
        for key, mask in self.selector.select(timeout):
            key.data(key.fd, mask)
        deadline = self.log.deadline()
        if deadline is not None and deadline <= time.monotonic():
            self.log.flush_due()
        if self._watches_memory and time.monotonic() >= self.next_memory_check:
            self.next_memory_check = time.monotonic() + MEMORY_EVERY_S * 0.9
            self._check_memory()

    # -- starting

    def _start(self) -> str:
        """Makes the process and returns when its program has begun; else what went wrong."""
        box = self.spec["sandbox"]
        os.makedirs(box["root"], exist_ok=True)
        spec = self.spec
        self._make_group()
        program = containerprocess.Program(spec["argv"], spec["env"], box, spec["tty"], spec["stdin"])
        if "device_cgroups" in box:
            self.device_cgroup = devicecgroup.make(box["device_cgroups"], spec["id"], box.get("devices", ()))
        spawned = containerprocess.spawn(namespaces.NewNamespaces(box), program, ready=self._write_pid)
        self.pid = spawned.pid
        if spawned.problem:
            spawned.give_up()
            return spawned.problem
        self.started_at = time.time()
        self._write("state.json", {"started_at": self.started_at})
        self.stdin, self.console = spawned.stdin, spawned.console
        self._watch_ports(spawned.notifications)
        for fd, stream in spawned.outputs:
            os.set_blocking(fd, False)
            self.outputs[fd] = stream
            self.selector.register(fd, selectors.EVENT_READ, self._read_output)
        return ""

    def _make_group(self) -> None:
        """Where it cannot be made after all, memory is watched as it is where there are no groups."""
        if "cgroup" in self.spec:
            group = cgroups.ControlGroup(self.spec["cgroup"])
            with contextlib.suppress(OSError):
                group.make()
                self.group = group
                if (shortage := group.shortage()) >= 0:
                    self.selector.register(shortage, selectors.EVENT_READ, self._memory_is_short)

    def _limit(self, pid: int) -> None:
        """Before its program begins. What cannot be limited does not run."""
        if self.device_cgroup:
            devicecgroup.join(self.device_cgroup, pid)
        if self.group is not None:
            try:
                self.group.take_in(pid)
            except OSError:
                self._signal(signal.SIGKILL, pid)

    def _watch_ports(self, notifications: int) -> None:
        if notifications >= 0:
            self.selector.register(notifications, selectors.EVENT_READ, self._serve_ports)

    def _serve_ports(self, fd: int, _mask: int) -> None:
        assert self.supervisor is not None
        if not self.supervisor.serve(fd):
            self.selector.unregister(fd)
            os.close(fd)

    def _refused_port(self, address: str, port: int) -> None:
        for client in self.clients:
            if client.watching:
                client.send({"state": "refused", "address": address, "port": port})

    def _write_pid(self, pid: int) -> None:
        self._limit(pid)
        self._write("pid", {"pid": pid, "start": start_time(pid), "boot": boot_id(), "shim": os.getpid()})

    def _write(self, name: str, content: object) -> None:
        path = os.path.join(self.folder, name)
        private_files.fill(path, json.dumps(content).encode())

    # -- output

    def _read_output(self, fd: int, _mask: int) -> None:
        stream = self.outputs[fd]
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:  # how a console says that its last user is gone
                raise
            data = b""
        if not data:
            self._close_output(fd)
            return
        with contextlib.suppress(OSError):  # a full disk must not stop the container
            self.log.write(stream, data)
        for client in self.clients:
            if stream in client.outputs:
                self._pass_on(client, stream, data)

    def _close_output(self, fd: int) -> None:
        self.selector.unregister(fd)
        del self.outputs[fd]
        if fd != self.console:
            os.close(fd)

    def _pass_on(self, client: _Client, stream: str, data: bytes) -> None:
        backlog = client.backlog[stream]
        backlog += data
        if len(backlog) > ATTACH_BUFFER:
            self._detach(client)
            return
        self._push(client, stream)

    def _push(self, client: _Client, stream: str) -> None:
        fd, backlog = client.outputs[stream], client.backlog[stream]
        try:
            while backlog:
                del backlog[: os.write(fd, backlog[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self._detach(client)
            return
        registered = fd in self.selector.get_map()
        if backlog and not registered:
            self.selector.register(fd, selectors.EVENT_WRITE, lambda *_: self._push(client, stream))
        elif not backlog and registered:
            self.selector.unregister(fd)

    def _detach(self, client: _Client) -> None:
        for fd in client.outputs.values():
            if fd in self.selector.get_map():
                self.selector.unregister(fd)
            os.close(fd)
        client.outputs.clear()
        client.backlog.clear()

    # -- requests

    def _accept(self, _fd: int, _mask: int) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        if not wire.is_same_account(connection):
            connection.close()
            return
        connection.setblocking(True)
        client = _Client(connection)
        self.clients.append(client)
        self.selector.register(connection, selectors.EVENT_READ, lambda *_: self._hear(client))

    def _hear(self, client: _Client) -> None:
        for message in client.reader.read():
            self._answer(client, message)
        if client.reader.ended:
            self.selector.unregister(client.reader.source)
            self.clients.remove(client)
            if client.types:
                self._end_input()
            self._detach(client)
            client.reader.close()

    def _answer(self, client: _Client, message: Message) -> None:
        what = message.get("op")
        if what == "watch":
            client.watching = True
            own = os.getpid()
            client.send({"state": "running", "pid": self.pid, "shim": own, "started_at": self.started_at})
        elif what == "signal":
            number, pid = int(message["signal"]), client.exec_pid or self.pid
            if message.get("or_kill") and pid == self.pid and procfs.is_deaf(pid, number):
                number = signal.SIGKILL
            self._signal(number, pid)
        elif what == "exec":
            self._exec(client, message)
        elif what == "attach":
            client.types = bool(message.get("stdin"))
            self._attach(client)
        elif what == "end_of_input":
            self._end_input()
        elif what == "limit":
            self.spec["memory_limit"] = int(message["memory"])
            if self.group is not None:
                self.group.limit(int(message.get("cpu", 0)), self.spec["memory_limit"])

    def _end_input(self) -> None:
        """The first who types and stops ends the input of a `stdinOnce` container, also when they go on reading."""
        if self.spec["stdin_once"] and self.stdin >= 0 and self.stdin != self.console:
            os.close(self.stdin)
            self.stdin = -1

    def _signal(self, number: int, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def _exec(self, client: _Client, message: Message) -> None:
        box = self.spec["sandbox"]
        env = {**self.spec["env"], **message.get("env", {})}
        tty = bool(message.get("tty"))
        if tty:
            env.setdefault("TERM", "xterm")
        program = containerprocess.Program(message["argv"], env, box, tty, bool(message.get("stdin")))
        spawned = containerprocess.spawn(namespaces.JoinedNamespaces(box, self.pid), program, ready=self._limit)
        if spawned.problem:
            spawned.give_up()
            client.send({"problem": spawned.problem, "exit_code": 126 + ("not found" in spawned.problem)})
            return
        self._watch_ports(spawned.notifications)
        client.exec_pid = spawned.pid
        streams = ["console"] if tty else (["stdin"] if spawned.stdin >= 0 else []) + [s for _, s in spawned.outputs]
        fds = [spawned.console] if tty else [fd for fd in (spawned.stdin,) if fd >= 0] + [f for f, _ in spawned.outputs]
        client.send({"streams": streams, "pid": spawned.pid}, fds)
        spawned.close()

    def _attach(self, client: _Client) -> None:
        streams, fds, ends = [], [], []
        for stream in ("stdout",) if self.console >= 0 else ("stdout", "stderr"):
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            client.outputs[stream] = writer
            client.backlog[stream] = bytearray()
            streams.append(stream)
            fds.append(reader)
            ends.append(reader)
        if self.console >= 0:
            streams.append("console")
            fds.append(self.console)
        elif self.stdin >= 0:
            streams.append("stdin")
            fds.append(self.stdin)
        client.send({"streams": streams}, fds)
        for fd in ends:
            os.close(fd)

    # -- children and memory

    def _reap(self, fd: int, _mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(fd, 512):
                pass
        self._wait_for_children()

    def _wait_for_children(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status
            for client in self.clients:
                if client.exec_pid == pid:
                    client.send({"exit_code": exit_code(status)})

    @property
    def _watches_memory(self) -> bool:
        return bool(self.spec["memory_limit"]) and not (self.group is not None and self.group.limits_memory)

    def _check_memory(self) -> None:
        limit = self.spec["memory_limit"]
        tree = descendants(os.getpid())
        if sum(map(resident, tree)) <= limit:
            return
        # Pages that processes share were counted once for each: look closer before anyone is killed.
        if sum(map(proportional, tree)) <= limit:
            return
        self._end_for_memory()

    def _memory_is_short(self, fd: int, _mask: int) -> None:
        """Ours, or that of a group around ours: then the kernel may choose another victim. It tells before it acts."""
        os.read(fd, 8)
        assert self.group is not None
        until = time.monotonic() + OOM_S
        while not self.group.kills():
            if time.monotonic() > until:
                return
            time.sleep(0.005)
        self._end_for_memory()

    def _end_for_memory(self) -> None:
        """All of it: the rest of a program that has lost one of its processes may go on for ever, or look fine."""
        self.oom = True
        for pid in descendants(os.getpid()):
            self._signal(signal.SIGKILL, pid)

    def _end_leftovers(self) -> None:
        """Orphans come to us (subreaper): each round ends one generation."""
        if not sys.platform.startswith("linux"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            return
        for _ in range(1000):
            left = [pid for pid in descendants(os.getpid()) if pid != self.pid]
            for pid in left:
                self._signal(signal.SIGKILL, pid)
            self._wait_for_children()
            if not left:
                return
            time.sleep(0.002)

    def _drain(self) -> None:
        """The last words, into the log and to those who are attached."""
        until = time.monotonic() + DRAIN_S
        while time.monotonic() < until:
            if not self.outputs and not any(any(client.backlog.values()) for client in self.clients):
                return
            for key, mask in self.selector.select(0.05):
                if key.fd in self.outputs or mask & selectors.EVENT_WRITE:
                    key.data(key.fd, mask)

    def _outcome(self, status: int) -> Message:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = exit_code(status)
        if self.oom:
            return {"reason": "OOMKilled", "message": "", "exit_code": 137, "signal": 0}
        if code and self.group is not None and self.group.kills():  # of it, or of a process that it needed
            return {"reason": "OOMKilled", "message": "", "exit_code": code, "signal": 0}
        return {"reason": "Completed" if code == 0 else "Error", "message": "", "exit_code": code, "signal": number}

    def _finish(self, outcome: Message) -> None:
        with contextlib.suppress(OSError):
            self.log.close()
        ended = {**outcome, "started_at": self.started_at, "finished_at": time.time()}
        self._write("exit.json", ended)
        devicecgroup.remove(self.device_cgroup)
        if self.group is not None:
            self.group.remove()
        for layer in ("root", "skeleton", layering.WORK):
            remove_small(os.path.join(self.folder, layer), LAYER_ENTRIES)
        # Those who connected while we were busy are told too, so that no one waits for a socket that has gone.
        self.listener.setblocking(False)
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                if not wire.is_same_account(connection):
                    connection.close()
                    continue
                connection.settimeout(1.0)
                client = _Client(connection)
                client.watching = True
                self.clients.append(client)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, "shim.sock"))
        for client in self.clients:
            if client.watching:
                client.reader.source.settimeout(1.0)
                client.send({"state": "exited", "exit": ended})


def remove_small(folder: str, most: int) -> int:
    """Removes a tree of at most so many entries with no large file in it; returns how many of them are left to go.

    Nearly every container leaves only its mount points behind. Here that costs a millisecond; among the threads of the
    node each system call would wait its turn. What is larger the node removes without keeping anyone waiting.
    """
    try:
        try:
            entries = list(os.scandir(folder))
        except PermissionError:  # the kernel's own folder of an overlay
            os.chmod(folder, 0o700)
            entries = list(os.scandir(folder))
        for entry in entries:
            most -= 1
            if most <= 0:
                return 0
            if entry.is_dir(follow_symlinks=False):
                most = remove_small(entry.path, most)
            elif entry.stat(follow_symlinks=False).st_size <= SMALL_FILE:
                os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        pass  # not there, or more in it than is ours to do
    return most


def _write_failure(folder: str, error: BaseException) -> None:
    """A shim that fails itself (a full disk) says so, as far as it can; its container ends with it."""
    ended: Exit = {
        "exit_code": START_FAILED,
        "signal": 0,
        "reason": "StartError",
        "message": f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH],
        "started_at": 0.0,
        "finished_at": time.time(),
    }
    path = os.path.join(folder, "exit.json")
    with contextlib.suppress(OSError):
        if not os.path.exists(path):
            private_files.fill(path, json.dumps(ended).encode())


def main(folder: str, listener: socket.socket) -> NoReturn:
    """The whole life of a shim, in the process that the spawner forked for it."""
    code = 0
    try:
        os.umask(0o022)  # mount points have to be open to whoever the container runs as
        gc.disable()  # it makes no cycles worth collecting, and untouched pages stay shared
        with open(os.path.join(folder, "spec.json")) as file:
            spec: LaunchSpec = json.load(file)
        Shim(folder, spec, listener).run()
    except BaseException as error:
        code = 1
        _write_failure(folder, error)
        with contextlib.suppress(OSError), open(os.path.join(folder, "shim.err"), "a") as file:
            import traceback

            traceback.print_exception(error, file=file)
    os._exit(code)
