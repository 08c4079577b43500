"""A container's view of the machine: its own file tree, processes, host name and user, by namespaces and no programs.

`Namespaces` are where a process is made: `fork` makes it (it enters a namespace of process numbers, or a new one of
users, by being born in it), `enter` does the rest in the child, before exec. Both run in the single-threaded shim and
need only the standard library. Three modes, found by trying (`detection`):

- ``root``: namespaces directly;
- ``user``: the same inside a user namespace, so that an ordinary user may do it;
- ``none``: degraded. No namespace can be made (macOS, locked-down hosts): a plain process, volumes by symbolic links
  where the path can be made.

The shim stays outside: it, the node and /proc of the machine know every process by the machine's own numbers.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Protocol

from danlu.embedded.node.sandbox import degraded, kernel, rootfs
from danlu.embedded.node.sandbox.box import Sandbox, SandboxError
from danlu.embedded.node.sandbox.procfs import start_time


class Namespaces(Protocol):
    def fork(self) -> int:
        """As os.fork; also its errors."""
        ...

    def enter(self) -> None:
        """In the child: up to (not including) giving up privileges, see `privileges`. Raises SandboxError."""
        ...


class NewNamespaces:
    """Namespaces of a container's own: its first process makes them, but for those that it shares with another."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box
        self._account = os.geteuid(), os.getegid()

    def fork(self) -> int:
        kinds, beside = _kinds(self._box), self._box.get("beside")
        if beside is None:
            return kernel.fork(sum(kinds.values()))
        if start_time(beside["pid"]) != beside["start"]:
            raise OSError(errno.ESRCH, "the container whose processes it is to see has ended")
        shared: dict[str, int] = {name: kinds.pop(name) for name in ("user", "pid") if name in kinds}
        return _fork_in(beside["pid"], shared, sum(kinds.values()))

    def enter(self) -> None:
        box = self._box
        try:
            if box["mode"] == "none":
                degraded.enter(box)
                return
            if box["mode"] == "user" and "beside" not in box:
                _map_user(*self._account, box.get("uid") or 0, box.get("gid") or 0)
            kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
            rootfs.build(box)
            if box["hostname"]:
                socket.sethostname(box["hostname"])
            _go_to(box["cwd"])
        except OSError as error:
            raise SandboxError(error.strerror or str(error)) from error


class JoinedNamespaces:
    """The namespaces of a container that runs, for exec. The owner of a user namespace may enter it."""

    def __init__(self, box: Sandbox, pid: int) -> None:
        self._box = box
        self._pid = pid

    def fork(self) -> int:
        return os.fork() if self._box["mode"] == "none" else _fork_in(self._pid, _kinds(self._box), 0)

    def enter(self) -> None:
        if self._box["mode"] == "none":
            degraded.enter(self._box)
        else:
            _go_to(self._box["cwd"])


def _fork_in(pid: int, joined: dict[str, int], flags: int) -> int:
    """A process between goes to the namespaces of `pid` and makes there the one that is wanted: process numbers are
    for children. That one is a child of ours all the same, so that we are told of its end."""
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        made = -1
        try:
            _join(pid, joined)
            made = kernel.fork(flags | kernel.CLONE_PARENT)
            answer = str(made)
        except BaseException as error:  # the other side must hear something
            answer = f"0 {getattr(error, 'strerror', None) or error}"
        if made == 0:
            os.close(reader)
            os.close(writer)
            return 0
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as heard:
        number, _, problem = heard.read().decode().partition(" ")
    os.waitpid(between, 0)
    if not number or number == "0":
        raise OSError(errno.ESRCH, problem or "its namespaces have gone")
    return int(number)


def _kinds(box: Sandbox) -> dict[str, int]:
    """Of the namespaces that a container has of its own, by their names in /proc/PID/ns; in the order to enter them."""
    wanted = {
        "user": (kernel.CLONE_NEWUSER, box["mode"] == "user"),
        "pid": (kernel.CLONE_NEWPID, box.get("own_pids")),
        "ipc": (kernel.CLONE_NEWIPC, box.get("own_ipc")),
        "uts": (kernel.CLONE_NEWUTS, box["hostname"]),
        "mnt": (kernel.CLONE_NEWNS, True),
    }
    return {name: kind for name, (kind, has) in wanted.items() if has and box["mode"] != "none"}


def _join(pid: int, kinds: dict[str, int]) -> None:
    handles = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind) for name, kind in kinds.items()]
    for handle, kind in handles:
        kernel.setns(handle, kind)
        os.close(handle)


def _map_user(uid: int, gid: int, inside_uid: int, inside_gid: int) -> None:
    for path, text in (
        ("/proc/self/setgroups", "deny"),
        ("/proc/self/uid_map", f"{inside_uid} {uid} 1"),
        ("/proc/self/gid_map", f"{inside_gid} {gid} 1"),
    ):
        with open(path, "w") as file:
            file.write(text)


def _go_to(cwd: str) -> None:
    try:
        os.makedirs(cwd, exist_ok=True)
        os.chdir(cwd)
    except OSError as error:
        problem = (error.strerror or "").lower()
        raise SandboxError(f'chdir to cwd ("{cwd}") set in config.json failed: {problem}') from error
