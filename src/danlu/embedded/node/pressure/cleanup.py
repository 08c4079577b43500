"""Taking away what a container left on disk. Blocking: call it in a thread."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from danlu.embedded.node.logs import logfiles


def remove_log(path: str) -> None:
    for number in logfiles.segments(path):
        for suffix in ("", ".idx"):
            with contextlib.suppress(OSError):
                os.unlink(logfiles.segment_path(path, number) + suffix)


def remove_tree(folder: Path) -> None:
    """Also where a program, or the kernel for an overlay's own use, has taken away the right to look inside."""
    if not folder.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _open(folder)
        for at, inner, _ in os.walk(folder):  # from above: an inner folder is opened before it is walked
            for name in inner:
                _open(Path(at, name))
        shutil.rmtree(folder, ignore_errors=True)


def _open(folder: Path) -> None:
    if not folder.is_symlink():  # it may lead out
        with contextlib.suppress(OSError):
            folder.chmod(0o700)
