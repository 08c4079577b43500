"""Taking away what a container left on disk. Blocking: call it in a thread."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from danlu.embedded.node import logs


def remove_log(path: str) -> None:
    for number in logs.segments(path):
        for suffix in ("", ".idx"):
            with contextlib.suppress(OSError):
                os.unlink(logs.segment_path(path, number) + suffix)


def remove_tree(folder: Path) -> None:
    """Also where a program has taken away its own right to write."""
    if not folder.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for at, _, _ in os.walk(folder):
            with contextlib.suppress(OSError):
                os.chmod(at, 0o700)
        shutil.rmtree(folder, ignore_errors=True)
