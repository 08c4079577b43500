"""Small files of the data directory, each replaced as a whole and for its owner's eyes only.

The new content is written beside the old file and takes its place by a rename: a full disk, a crash or a power cut
leaves the old content, never half of the new one, and nothing lying about. Standard library only: shims import this.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

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


def is_full(error: BaseException) -> bool:
    """Whether it failed for want of room: what was there stays, and it may work later."""
    return isinstance(error, OSError) and error.errno in FULL
