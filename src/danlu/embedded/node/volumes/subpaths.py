"""subPath: a place inside a volume, and never outside it.

All links are followed first and what counts is where the path ends; folders that are missing are then made by walking
down without following any link. What the answer names may have been swapped for a link when the container begins: its
shim finds it anew, by descriptors that cannot lead out of the volume (`sandbox/inroot.py`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from danlu.embedded.node.pods.environment import expand_text
from danlu.meta.kind import Object


class VolumeError(Exception):
    """`reason` is the event's (FailedMount) or the waiting container's (CreateContainerConfigError)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def wanted(mount: Object, env: Mapping[str, str]) -> str:
    expression = mount.get("subPathExpr")
    if not expression:
        return str(mount.get("subPath") or "")
    missing = _Missing(env)
    path = expand_text(expression, missing)
    if missing.asked:
        names = ", ".join(sorted(missing.asked))
        raise VolumeError("CreateContainerConfigError", f"missing value for {names}")
    if os.path.isabs(path):
        raise VolumeError("CreateContainerConfigError", f"error SubPath `{path}` must not be an absolute path")
    return path


class _Missing(dict[str, str]):
    """A mapping that notes which names were asked for in vain."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        self.asked.add(str(name))
        return False


def inside(volume: str, sub_path: str, mount_name: str, container: str) -> str:
    """The real path of `sub_path` within the volume; missing folders are made."""
    if ".." in sub_path.split("/"):
        raise VolumeError(
            "CreateContainerConfigError", f"unable to provision SubPath `{sub_path}`: must not contain '..'"
        )
    root = os.path.realpath(volume)
    # Links are followed first (a configMap's own files are links); what counts is where the path ends.
    real = os.path.realpath(os.path.join(root, sub_path))
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        raise VolumeError(
            "CreateContainerConfigError",
            f'failed to prepare subPath for volumeMount "{mount_name}" of container "{container}"',
        )
    try:
        _make_within(root, os.path.relpath(real, root))
    except OSError as error:
        raise VolumeError(
            "CreateContainerConfigError",
            f'failed to create subPath directory for volumeMount "{mount_name}" of container "{container}"',
        ) from error
    return real


def _make_within(root: str, relative: str) -> None:
    """Walks down without following any link, so that a link put there meanwhile cannot lead outside."""
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    mode = stat.S_IMODE(os.fstat(here).st_mode)
    try:
        for position, part in enumerate(parts):
            try:
                found = os.stat(part, dir_fd=here, follow_symlinks=False)
            except FileNotFoundError:
                os.mkdir(part, dir_fd=here)
                os.chmod(part, mode | 0o700, dir_fd=here)  # as the volume itself, whatever the umask
                found = os.stat(part, dir_fd=here, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                if position == len(parts) - 1 and not stat.S_ISLNK(found.st_mode):
                    return
                raise NotADirectoryError(part)
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = deeper
    finally:
        os.close(here)
