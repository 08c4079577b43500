"""A folder of files that changes as a whole, as kubelet lays out configMap and secret volumes.

  ..2026_01_02_03_04_05.678/key   the files
  ..data -> ..2026_01_02_…        replaced by one rename
  key -> ..data/key               what programs open

A program that reads through the links sees all of the old content or all of the new one, never a mixture.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

DATA = "..data"
PENDING = "..data_tmp"


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = 0o644


Payload = Mapping[str, File]
"""Contents by relative path."""


def write(folder: str, payload: Payload, gid: int | None = None) -> bool:
    """True when anything had to change."""
    _make_folder(folder)
    current = _current(folder)
    if current is not None and _same(f"{folder}/{current}", payload):
        return False
    version = f"..{time.strftime('%Y_%m_%d_%H_%M_%S', time.gmtime())}.{time.time_ns() % 1_000_000_000:09d}"
    try:
        _make_folder(f"{folder}/{version}")
        for path, file in payload.items():
            _write_file(f"{folder}/{version}", path, file, gid)
        with suppress(FileNotFoundError):
            os.unlink(f"{folder}/{PENDING}")
        os.symlink(version, f"{folder}/{PENDING}")
        os.rename(f"{folder}/{PENDING}", f"{folder}/{DATA}")
    except BaseException:  # a full disk: what was there stays, and half of the new content does not
        shutil.rmtree(f"{folder}/{version}", ignore_errors=True)
        raise
    _link_names(folder, {path.partition("/")[0] for path in payload})
    if current is not None:
        shutil.rmtree(f"{folder}/{current}", ignore_errors=True)
    return True


def _current(folder: str) -> str | None:
    try:
        return os.readlink(f"{folder}/{DATA}")
    except OSError:
        return None


def _same(folder: str, payload: Payload) -> bool:
    found = set()
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(f"{at}/{name}", folder)
            wanted = payload.get(path)
            if wanted is None or os.stat(f"{at}/{name}").st_mode & 0o7777 != wanted.mode:
                return False
            with open(f"{at}/{name}", "rb") as file:
                if file.read() != wanted.data:
                    return False
            found.add(path)
    return len(found) == len(payload)


def _write_file(folder: str, path: str, file: File, gid: int | None) -> None:
    if os.path.isabs(path) or ".." in path.split("/"):
        raise ValueError(f"invalid path: must not be absolute or contain '..': {path}")
    full = f"{folder}/{path}"
    for depth in range(1, path.count("/") + 1):
        _make_folder("/".join([folder, *path.split("/")[:depth]]))
    with open(full, "wb") as out:
        out.write(file.data)
    if gid is not None:
        os.chown(full, -1, gid)
    os.chmod(full, file.mode)  # after chown, which clears some bits


def _make_folder(path: str) -> None:
    """Open to whoever the pod runs as, whatever the umask; its parents, where they are missing, are not."""
    os.makedirs(path, exist_ok=True)
    if os.stat(path).st_mode & 0o7777 != 0o755:
        os.chmod(path, 0o755)


def _link_names(folder: str, names: set[str]) -> None:
    for name in names:
        with suppress(FileExistsError):
            os.symlink(f"{DATA}/{name}", f"{folder}/{name}")
    for name in os.listdir(folder):
        if not name.startswith("..") and name not in names and os.path.islink(f"{folder}/{name}"):
            os.unlink(f"{folder}/{name}")
