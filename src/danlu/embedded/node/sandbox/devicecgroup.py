"""The devices that a container of root's may open, whatever nodes it makes or mounts: a cgroup of version 1.

The second lock behind mounts without devices (`rootfs`): it holds for a container with CAP_SYS_ADMIN, too. An ordinary
account can neither make device nodes nor such cgroups. Standard library only; runs in the shim.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from danlu.embedded.node.sandbox import cgroups

# null, zero, full, random, urandom; tty, ptmx, and the consoles of /dev/pts
STANDARD = ("c 1:3", "c 1:5", "c 1:7", "c 1:8", "c 1:9", "c 5:0", "c 5:2", "c 136:*")


def find() -> str:
    """Where such cgroups can be made; "" where they cannot. Tried."""
    try:
        folder = cgroups.hierarchy("devices")
        if folder:
            probe = make(folder, f"probe-{os.getpid()}", ())
            remove(probe)
        return folder
    except OSError:
        return ""


def make(hierarchy: str, name: str, nodes: Iterable[str]) -> str:
    """For a container that is given these device nodes and the standard ones."""
    folder = os.path.join(hierarchy, name)
    os.makedirs(folder, exist_ok=True)
    _write(folder, "devices.deny", "a")
    for rule in (*STANDARD, *(rule for node in nodes if (rule := _rule(node)))):
        with contextlib.suppress(PermissionError):  # not ours to give: Danlu itself may not have all devices
            _write(folder, "devices.allow", f"{rule} rw")
    return folder


def _rule(node: str) -> str:
    try:
        found = os.stat(node)
    except OSError:
        return ""
    kind = "c" if stat.S_ISCHR(found.st_mode) else "b" if stat.S_ISBLK(found.st_mode) else ""
    return kind and f"{kind} {os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def join(folder: str, pid: int) -> None:
    _write(folder, "cgroup.procs", str(pid))


def remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _write(folder: str, name: str, text: str) -> None:
    handle = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
