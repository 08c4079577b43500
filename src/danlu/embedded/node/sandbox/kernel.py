"""The few system calls that namespaces need and Python does not have, by ctypes."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x20000, 0x4000000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_MOUNT_SETATTR = 442
SYS_PIDFD_GETFD = 438  # the same number on every machine
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38


_libc: Any = None


def libc() -> Any:
    global _libc
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    return _libc


def check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    def raw(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    check(libc().mount(raw(source), raw(target), raw(kind), ctypes.c_ulong(flags), raw(data)), f"mount {target}")


def unshare(flags: int) -> None:
    check(libc().unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    check(libc().setns(fd, kind), "setns")


def prctl(option: int, value: int) -> int:
    return int(libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0))


def pivot_root(new: str, old: str) -> None:
    number = SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"pivot_root is not known on {os.uname().machine}")
    check(libc().syscall(number, os.fsencode(new), os.fsencode(old)), "pivot_root")


def take_fd(pid: int, fd: int) -> int:
    """A copy of another process' descriptor (Linux 5.6)."""
    process = os.pidfd_open(pid)
    try:
        copy = int(libc().syscall(SYS_PIDFD_GETFD, process, fd, 0))
        if copy < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"pidfd_getfd: {os.strerror(number)}")
        return copy
    finally:
        os.close(process)


def detach(target: str) -> None:
    check(libc().umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def make_read_only(target: str) -> None:
    """Whole subtree where the kernel can (5.12), else the top mount alone."""
    attributes = (ctypes.c_uint64 * 4)(1, 0, 0, 0)  # MOUNT_ATTR_RDONLY
    done = libc().syscall(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), AT_RECURSIVE, ctypes.byref(attributes), 32)
    if done == 0:
        return
    # Flags that the host set are locked in a user namespace: a remount has to repeat them.
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)
