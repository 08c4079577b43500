"""Paths that cannot lead out of a folder, whatever links are in it and whoever swaps them meanwhile.

Absolute links and `..` end at that folder, as they would for a process whose root it is. The answer is a descriptor:
what it names stays the same, while a path may mean something else a moment later. Linux 5.6 does it in one call;
before, and where a sandbox around us hides that call, the path is walked here, one descriptor for each step.

Standard library only; runs in the shim.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from danlu.embedded.node.sandbox import kernel

SYS_OPENAT2 = 437
HOW = struct.Struct("=3Q")  # flags, mode, resolve
NO_MAGIC_LINKS, IN_ROOT = 0x02, 0x10
AGAIN_AT_MOST = 100  # the kernel asks for it when something is renamed at the same time
MOST_LINKS = 40
HANDLE = getattr(os, "O_PATH", 0) | os.O_CLOEXEC


def find(root: int, path: str) -> int:
    """A descriptor of what has this path in the folder `root`, to name it by, not to read. Raises OSError."""
    how = ctypes.create_string_buffer(HOW.pack(HANDLE, 0, NO_MAGIC_LINKS | IN_ROOT))
    for _ in range(AGAIN_AT_MOST):
        found = int(kernel.libc().syscall(SYS_OPENAT2, root, os.fsencode(path or "."), how, HOW.size))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            return _walk(root, path)
        if number != errno.EAGAIN:
            break
    raise OSError(number, os.strerror(number), path)


def make(root: int, path: str, is_file: bool) -> int:
    """As `find`; what is missing is made, folders or at the end an empty file."""
    try:
        return find(root, path)
    except FileNotFoundError:
        pass
    above, name = os.path.split(path.rstrip("/"))
    folder = make(root, above, False)
    try:
        if is_file:
            flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY | os.O_CLOEXEC
            os.close(os.open(name, flags, 0o644, dir_fd=folder))
        else:
            os.mkdir(name, dir_fd=folder)
        return os.open(name, HANDLE | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def at(handle: int) -> str:
    """A path for calls that take none but paths; of this process only."""
    return f"/proc/self/fd/{handle}"


def _walk(root: int, path: str) -> int:
    above = [os.open(".", HANDLE, dir_fd=root)]
    steps = path.split("/")[::-1]
    links = 0
    try:
        while steps:
            step = steps.pop()
            if step in ("", "."):
                continue
            if step == "..":
                if len(above) > 1:
                    os.close(above.pop())
                continue
            found = os.open(step, HANDLE | os.O_NOFOLLOW, dir_fd=above[-1])
            above.append(found)
            if not stat.S_ISLNK(os.fstat(found).st_mode):
                continue
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            to = os.readlink("", dir_fd=found)
            keep = 1 if to.startswith("/") else len(above) - 1
            while len(above) > keep:
                os.close(above.pop())
            steps += to.split("/")[::-1]
        return above.pop()
    finally:
        for handle in above:
            os.close(handle)
