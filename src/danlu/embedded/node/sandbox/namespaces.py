"""A container's view of the machine: its own file tree, host name and user, made with namespaces and no programs.

Runs in a freshly forked, single-threaded child of the shim, between fork and exec, and needs only the standard library.
Three modes, found by trying (`detection`):

- ``root``: mount and uts namespaces directly;
- ``user``: the same inside a user namespace, so that an ordinary user may do it;
- ``none``: degraded. No namespace can be made (macOS, locked-down hosts): a plain process, volumes by symbolic links
  where the path can be made.
"""

from __future__ import annotations

import os
import socket

from danlu.embedded.node.sandbox import degraded, kernel, rootfs
from danlu.embedded.node.sandbox.box import Sandbox, SandboxError


def enter(box: Sandbox) -> None:
    """Puts the calling process into its sandbox, up to (not including) giving up privileges: see `privileges`."""
    try:
        if box["mode"] == "none":
            degraded.enter(box)
        else:
            _enter_namespaces(box)
    except OSError as error:
        raise SandboxError(error.strerror or str(error)) from error


def _enter_namespaces(box: Sandbox) -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = kernel.CLONE_NEWNS | (kernel.CLONE_NEWUTS if box["hostname"] else 0)
    if box["mode"] == "user":
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        _map_user(uid, gid, box.get("uid") or 0, box.get("gid") or 0)
    else:
        kernel.unshare(flags)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    rootfs.build(box)
    if box["hostname"]:
        socket.sethostname(box["hostname"])
    _go_to(box["cwd"])


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


def join(pid: int, box: Sandbox) -> None:
    """Into the sandbox of a running container, for exec. The owner of a user namespace may enter it."""
    if box["mode"] == "none":
        degraded.enter(box)
        return
    kinds = [("mnt", kernel.CLONE_NEWNS)]
    if box["hostname"]:
        kinds.insert(0, ("uts", kernel.CLONE_NEWUTS))
    if box["mode"] == "user":
        kinds.insert(0, ("user", kernel.CLONE_NEWUSER))
    handles = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind) for name, kind in kinds]
    for handle, kind in handles:
        kernel.setns(handle, kind)
        os.close(handle)
    _go_to(box["cwd"])
