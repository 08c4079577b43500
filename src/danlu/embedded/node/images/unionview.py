"""Reading a file of an image from its layers, as a container would see it: links begin at the image's own root."""

from __future__ import annotations

import json
import os
import stat
from functools import lru_cache
from pathlib import Path

from danlu.embedded.node.images import unpacking
from danlu.embedded.node.sandbox import symlinks


@lru_cache(maxsize=512)
def hidden(folder: Path) -> tuple[frozenset[str], frozenset[str]]:
    about = json.loads((folder / unpacking.ABOUT).read_text())
    return frozenset(about["opaque"]), frozenset(about["whiteouts"])


def read(layers: list[Path], path: str, most: int) -> bytes:
    """At most so many bytes of a plain file; nothing where there is none. `layers`: the lowest first."""
    file = _find(layers, path)
    if file is None:
        return b""
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        return opened.read(most)


def _find(layers: list[Path], path: str) -> Path | None:
    try:
        return topmost(layers, follow(layers, path))
    except symlinks.TooManyLinks:
        return None


def follow(layers: list[Path], path: str) -> list[str]:
    """The components without links; what is missing stays as it is written. Raises TooManyLinks."""

    def leads_to(parts: list[str]) -> str | None:
        found = topmost(layers, parts)
        return os.readlink(found) if found is not None and found.is_symlink() else None

    return symlinks.follow(path, leads_to)


def topmost(layers: list[Path], parts: list[str]) -> Path | None:
    """What the overlay would show at a path whose folders are none but folders."""
    above = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
    for folder in reversed(layers):
        opaque, whiteouts = hidden(folder)
        if any(path in whiteouts for path in above):
            return None
        kind = 0
        for path in above:
            kind = kind_of(folder / unpacking.TREE / path)
            if path != above[-1] and kind != stat.S_IFDIR:
                break
        else:
            if kind:
                return folder / unpacking.TREE / above[-1]
        if kind not in (0, stat.S_IFDIR) or any(path in opaque for path in above):
            return None  # what lies here hides the layers below
    return None


def kind_of(path: Path) -> int:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0
