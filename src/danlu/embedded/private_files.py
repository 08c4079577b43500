"""Small files of the data directory, each replaced as a whole and for its owner's eyes only.

The new content is written beside the old file and takes its place by a rename: a full disk, a crash or a power cut
leaves the old content, never half of the new one, and nothing lying about. Standard library only: shims import this.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from pathlib import Path

KEEP_SIZE = 1  # of fallocate(2)
ROOM = 4096  # bytes; what is written to it later must not be more
FULL = frozenset((errno.ENOSPC, errno.EDQUOT))  # the disk, or what this account may use of it


def write(path: str | Path, data: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Raises OSError with the old content in place. `durable`: it is on the disk when this returns."""
    folder, name = os.path.split(os.fspath(path))
    partial = os.path.join(folder, f".{name}.{os.getpid()}.new")
    with contextlib.suppress(FileNotFoundError):  # of a process with our number that was killed
        os.unlink(partial)
    # O_EXCL: in a folder that others may write to nobody can have put a link there for us to write through.
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) or 0 :]
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def keep_room(path: str | Path) -> None:
    """Makes sure that `fill` of this path works on a full disk. Raises OSError when there is no room even now."""
    room = _room(path)
    # In place: nobody reads it, so half of it does no harm, and three of these are made for each container.
    handle = os.open(room, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.write(handle, b" " * ROOM) < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), room)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(room)
        raise
    finally:
        os.close(handle)


def fill(path: str | Path, data: bytes) -> None:
    """As `write`, in the room that was kept: its block is there, and a rename needs none."""
    room = _room(path)
    try:
        handle = os.open(room, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:  # it has been used up
        write(path, data, durable=False)
        return
    with open(handle, "wb", buffering=0) as file:
        file.write(data)
        file.truncate(len(data))
    os.replace(room, path)


def _room(path: str | Path) -> str:
    folder, name = os.path.split(os.fspath(path))
    return os.path.join(folder, f".{name}.room")


def allocate(handle: int, offset: int, length: int, *, keep_size: bool) -> None:
    """Blocks for this part of a file, so that writing it cannot fail for want of room. `keep_size`: nobody sees it.

    Raises OSError; EOPNOTSUPP where the file system, or this system, has no way to do it.
    """
    if _LIBC is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    mode = KEEP_SIZE if keep_size else 0
    if length > 0 and _LIBC.fallocate(handle, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def try_to_allocate(handle: int, offset: int, length: int) -> None:
    """Raises OSError only when there is no room."""
    try:
        allocate(handle, offset, length, keep_size=True)
    except OSError as error:
        if is_full(error):
            raise


def _find_libc() -> ctypes.CDLL | None:
    try:
        found = ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None
    return found if hasattr(found, "fallocate") else None


_LIBC = _find_libc()


def is_full(error: BaseException) -> bool:
    """Whether it failed for want of room: what was there stays, and it may work later."""
    return isinstance(error, OSError) and error.errno in FULL
