"""Making one process of a container: fork, go to its place, give up privileges, become the program.

Used by the shim for the container itself and for every exec. Standard library only; forks, so never to be called in a
process with threads.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import socket
import sys
import termios
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from danlu.embedded.node.network import ownports, portfilter
from danlu.embedded.node.sandbox import kernel, privileges, seccomp, wire
from danlu.embedded.node.sandbox.box import Sandbox, SandboxError
from danlu.embedded.node.sandbox.namespaces import Namespaces

PR_SET_PDEATHSIG = 1
IGNORED_BY_SHIMS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
# What is ignored stays so in the program that a process becomes; handlers do not. Some come from whoever started us.
SIGNALS_TO_RESET = {*IGNORED_BY_SHIMS, *(s for s in signal.valid_signals() if signal.getsignal(s) is signal.SIG_IGN)}


class Spawned:
    def __init__(self) -> None:
        self.pid = 0
        self.problem = ""
        self.stdin = -1
        self.console = -1
        self.notifications = -1  # of what its processes bind and connect to: see `ownports`
        self.outputs: list[tuple[int, str]] = []

    def close(self) -> None:
        for fd in {self.stdin, self.console, *(fd for fd, _ in self.outputs)} - {-1}:
            os.close(fd)

    def give_up(self) -> None:
        """Of a process that did not become the program: it has gone, if it was ever made."""
        if self.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self.close()
        if self.notifications >= 0:
            os.close(self.notifications)
            self.notifications = -1


class Program(NamedTuple):
    """What a process is to become, and in which box."""

    argv: list[str]
    env: dict[str, str]
    box: Sandbox
    tty: bool
    stdin: bool


def spawn(place: Namespaces, program: Program, ready: Callable[[int], None] | None = None) -> Spawned:
    """Forks; the child enters its `place`, gives up its privileges and becomes the program.

    Returns when that has happened or failed. The channel carries the console's descriptor, or the problem; it closes
    by itself when the program begins.
    """
    made = Spawned()
    ours, theirs = socket.socketpair()
    pipes: dict[int, int] = {}
    if not program.tty:
        for number, stream in ((1, "stdout"), (2, "stderr")):
            reader, pipes[number] = os.pipe()
            made.outputs.append((reader, stream))
        if program.stdin:
            pipes[0], made.stdin = os.pipe()
    try:
        pid = place.fork()
    except OSError as error:
        made.problem = error.strerror or str(error)
    else:
        if pid == 0:
            ours.close()
            _become(theirs, place, program, pipes)
        made.pid = pid
    theirs.close()
    for fd in pipes.values():
        os.close(fd)
    if made.problem:
        ours.close()
        return made
    if ready is not None:
        ready(made.pid)
    wire.send(ours, {"go": True})
    reader_of_problem = wire.Reader(ours)
    sent: list[str] = []
    while not reader_of_problem.ended:
        for message in reader_of_problem.read():
            made.problem = message.get("problem", made.problem)
            sent += [message["fd"]] if "fd" in message else []
    for what, fd in zip(sent, reader_of_problem.take_fds(), strict=True):
        if what == "notifications":
            made.notifications = fd
        else:
            made.console = fd
            made.outputs, made.stdin = [(fd, "stdout")], fd
    ours.close()
    return made


def _become(channel: socket.socket, place: Namespaces, wanted: Program, pipes: dict[int, int]) -> NoReturn:
    """In the child. Never returns: what fails is told on the channel."""
    argv, env, box = wanted.argv, wanted.env, wanted.box
    try:
        os.setsid()
        for resettable in SIGNALS_TO_RESET:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(resettable, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        wire.Reader(channel).read()
        place.enter()
        if wanted.tty:
            _take_console(channel)
        else:
            for number in range(3):
                fd = pipes[number] if number in pipes else os.open(os.devnull, os.O_RDONLY)
                os.dup2(fd, number)
        # Filters come before privileges are given up: without them they would need no_new_privs, which ends sudo.
        if box.get("default_seccomp"):
            _refuse_calls(box)
        if "ports" in box:
            _watch_ports(channel, clients=ownports.watches_clients(box["ports"]))
        privileges.drop(box)
        if sys.platform.startswith("linux"):
            kernel.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        program = find_program(argv[0], env)
        _close_others(channel.fileno())
        os.execve(program, argv, env)
    except SandboxError as error:
        problem = str(error)
    except OSError as error:
        problem = f'exec: "{argv[0]}": {(error.strerror or str(error)).lower()}'
    except BaseException as error:  # the other side must hear something
        problem = f"{type(error).__name__}: {error}"
    with contextlib.suppress(OSError):
        wire.send(channel, {"problem": problem})
    os._exit(127)


def _refuse_calls(box: Sandbox) -> None:
    try:
        seccomp.load_default(privileges.kept(box))
    except OSError as error:
        raise SandboxError(f"the seccomp profile RuntimeDefault cannot be had: {error.strerror or error}") from error


def _watch_ports(channel: socket.socket, *, clients: bool) -> None:
    try:
        fd = portfilter.install(clients=clients)
    except OSError as error:
        raise SandboxError(f"its ports cannot be watched: {error.strerror or error}") from error
    wire.send(channel, {"fd": "notifications"}, [fd])
    os.close(fd)


def _take_console(channel: socket.socket) -> None:
    """A console of the container's own /dev/pts, so that its name means something inside."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(slave, number)
    wire.send(channel, {"fd": "console"}, [master])
    os.close(master)
    os.close(slave)


def _close_others(but: int) -> None:
    """Everything of the shim that was not opened close-on-exec; the channel closes with exec."""
    os.closerange(3, but)
    os.closerange(but + 1, 1024)


def find_program(name: str, env: dict[str, str]) -> str:
    if "/" in name:
        if not os.path.exists(name):
            raise SandboxError(f'exec: "{name}": stat {name}: no such file or directory')
        return name
    for folder in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise SandboxError(f'exec: "{name}": executable file not found in $PATH')
