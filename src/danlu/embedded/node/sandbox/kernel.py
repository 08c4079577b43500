"""The few system calls that namespaces need and Python does not have, by ctypes."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
CLONE_PARENT = 0x8000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_MOUNT_SETATTR = 442
SYS_PIDFD_GETFD = 438  # the same number on every machine
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38


_libc: Any = None
_held: Any = None


def libc() -> Any:
    global _libc
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    return _libc


def _libc_with_the_lock() -> Any:
    """The same, but the interpreter's lock is held throughout a call."""
    global _held
    if _held is None:
        _held = ctypes.PyDLL(None, use_errno=True)
        _held.syscall.restype = ctypes.c_long
    return _held


def prepare() -> None:
    """Looks up once, before forks, what each of them would look up."""
    for name in ("mount", "umount2", "syscall", "setns", "prctl"):
        getattr(libc(), name)
    _libc_with_the_lock()


def check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    def raw(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    check(libc().mount(raw(source), raw(target), raw(kind), ctypes.c_ulong(flags), raw(data)), f"mount {target}")


def fork(flags: int) -> int:
    """os.fork with flags of clone. For a process with one thread, and a child that is to become a program soon: what
    the C library has others do at a fork (`pthread_atfork`) is not done."""
    if not flags:
        return os.fork()
    number = SYS_CLONE.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"clone is not known on {os.uname().machine}")
    # With the interpreter's lock held throughout, and the interpreter told, as os.fork does it.
    held = _libc_with_the_lock()
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(held.syscall(number, ctypes.c_ulong(flags | signal.SIGCHLD), 0, 0, 0, 0))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    problem = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(problem, f"clone: {os.strerror(problem)}")
    return pid


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
    restrict(target, MS_RDONLY | MS_NODEV, whole=True)


def restrict(target: str, flags: int, *, whole: bool = False) -> None:
    """Adds MS_RDONLY or MS_NODEV to a mount. The `whole` subtree where the kernel can (5.12), else the top mount."""
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)  # the numbers of MOUNT_ATTR_RDONLY and _NODEV are the same
    how = AT_RECURSIVE if whole else 0
    if libc().syscall(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), how, ctypes.byref(attributes), 32) == 0:
        return
    # Flags that are there may be locked in a user namespace: a remount has to repeat them.
    kept = os.statvfs(target).f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount(None, target, None, MS_REMOUNT | MS_BIND | flags | kept)
