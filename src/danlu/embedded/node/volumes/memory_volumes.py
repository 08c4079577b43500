"""Where emptyDirs of medium Memory lie: in a folder of /dev/shm that is closed to other accounts.

/dev/shm is everybody's. The folder's name cannot be guessed, so nobody can have put theirs there before. The file
DATA/memory-volumes remembers it, for pods outlive `danlu up`, and is written first: a crash leaves nothing behind.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

from danlu.embedded import permissions, private_files
from danlu.embedded.node.sandbox import kernel

SHARED_MEMORY = "/dev/shm"
TRIES = 10


def available() -> bool:
    return os.access(SHARED_MEMORY, os.W_OK)


def of_pod(data_dir: str, pod_uid: str) -> str:
    """The folder for the volumes of one pod. Raises OSError when none can be made."""
    folder = _known(data_dir)
    for _ in range(TRIES):
        if folder is not None:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
            if permissions.is_ours(folder):  # after a reboot somebody may have taken the name: then another one
                return f"{folder}/{pod_uid}"
        folder = f"{SHARED_MEMORY}/danlu-{secrets.token_hex(12)}"
        permissions.make_closed(data_dir)
        private_files.write(_record(data_dir), folder.encode())
    raise PermissionError(f"no folder in {SHARED_MEMORY} can be had for this account alone")


def make(folder: str, size: int) -> None:
    """A volume of at most so many bytes; 0: as large as /dev/shm.

    As root it is a file system of its own, which is full at its size. Nobody else may mount one for all containers of a
    pod: there the eviction manager ends who outgrows it. Raises OSError.
    """
    os.makedirs(folder, exist_ok=True)
    if size and os.geteuid() == 0 and not os.path.ismount(folder):
        with suppress(OSError):  # a container that may not mount
            kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"size={size},mode=777")


def unmount(folder: str) -> None:
    """All volumes of one pod; what lay in those that were mounted is gone, the others are folders as before."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if os.path.ismount(entry.path):
                kernel.detach(entry.path)


def existing(data_dir: str, pod_uid: str) -> str | None:
    """The folder of a pod if it has one; nothing is made."""
    folder = _known(data_dir)
    return f"{folder}/{pod_uid}" if folder is not None and permissions.is_ours(folder) else None


def tidy(data_dir: str) -> None:
    """Nothing stays in memory when the last pod with such a volume has gone."""
    folder = _known(data_dir)
    if folder is not None:
        with suppress(OSError):  # others are still in it
            os.rmdir(folder)


def _record(data_dir: str) -> str:
    return f"{data_dir}/memory-volumes"


def _known(data_dir: str) -> str | None:
    try:
        with open(_record(data_dir)) as file:
            folder = file.read()
    except (OSError, ValueError):
        return None
    return folder if os.path.dirname(folder) == SHARED_MEMORY else None
