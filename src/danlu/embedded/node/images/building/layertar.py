"""The tar of one layer, the same bits for the same content: sorted, with one time for all, owners as numbers.

Two ways to one: `LayerTar.add` for each file (COPY), or `of_upper`, what an overlay has collected (RUN), in which the
kernel's marks become the whiteouts that every engine reads.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple

from danlu.embedded.node.images import unpacking
from danlu.embedded.node.images.imagestore import LAYER, ImageStore

OPAQUE_MARKS = ("user.overlay.opaque", "trusted.overlay.opaque")
PACKED = 1  # gzip's level: a layer is written once and mostly stays here


class BuiltLayer(NamedTuple):
    blob: str
    diff_id: str
    size: int

    @property
    def descriptor(self) -> dict[str, object]:
        return {"mediaType": f"{LAYER}+gzip", "digest": self.blob, "size": self.size}


class FileOwner(NamedTuple):
    uid: int
    gid: int


ROOT = FileOwner(0, 0)


class _Hashed:
    """What tarfile writes to: hashed as it is, then packed."""

    def __init__(self, target: IO[bytes]) -> None:
        self.digest = hashlib.sha256()
        self._target = target
        self._bytes = 0

    def tell(self) -> int:
        return self._bytes

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self._bytes += len(data)
        return self._target.write(data)


class LayerTar:
    def __init__(self, store: ImageStore, epoch: int) -> None:
        """For whoever is `adding` to the store."""
        self._store = store
        self._epoch = epoch
        self._stack = contextlib.ExitStack()
        self._file, self._path = self._stack.enter_context(store.partial())
        self._packed = self._stack.enter_context(
            gzip.GzipFile(filename="", fileobj=self._file, mode="wb", compresslevel=PACKED, mtime=0)
        )
        self._hashed = _Hashed(self._packed)  # type: ignore[arg-type]
        self._tar = tarfile.TarFile(fileobj=self._hashed, mode="w", format=tarfile.PAX_FORMAT)  # type: ignore[arg-type]
        self._written: set[str] = set()
        self._links: dict[tuple[int, int], str] = {}

    def __enter__(self) -> LayerTar:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def finish(self) -> BuiltLayer:
        self._tar.close()
        self._packed.close()
        self._file.flush()
        size = self._path.stat().st_size
        with self._path.open("rb") as packed:
            blob = f"sha256:{hashlib.file_digest(packed, 'sha256').hexdigest()}"
        self._store.keep(self._path, blob)
        return BuiltLayer(blob, f"sha256:{self._hashed.digest.hexdigest()}", size)

    def has(self, path: str) -> bool:
        return path in self._written

    def folder(self, path: str, mode: int = 0o755, owner: FileOwner = ROOT) -> None:
        self._put(self._header(path, tarfile.DIRTYPE, mode, owner))

    def text(self, path: str, data: bytes, mode: int = 0o644, owner: FileOwner = ROOT) -> None:
        header = self._header(path, tarfile.REGTYPE, mode, owner)
        header.size = len(data)
        self._put(header, io.BytesIO(data))

    def link(self, path: str, target: str, owner: FileOwner = ROOT) -> None:
        header = self._header(path, tarfile.SYMTYPE, 0o777, owner)
        header.linkname = target
        self._put(header)

    def hide(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self.text(f"{folder}/{unpacking.WHITEOUT}{name}".lstrip("/"), b"", 0)

    def add(self, path: str, source: Path, *, mode: int | None = None, owner: FileOwner | None = None) -> None:
        """A file of this machine; None: what it has itself. What is neither file, folder nor link is left out."""
        about = os.lstat(source)
        bits = stat.S_IMODE(about.st_mode) if mode is None else mode
        whose = FileOwner(about.st_uid, about.st_gid) if owner is None else owner
        if stat.S_ISDIR(about.st_mode):
            header = self._header(path, tarfile.DIRTYPE, bits, whose)
            header.pax_headers = _attributes(source)
            self._put(header)
        elif stat.S_ISLNK(about.st_mode):
            self.link(path, os.readlink(source), whose)
        elif stat.S_ISFIFO(about.st_mode):
            self._put(self._header(path, tarfile.FIFOTYPE, bits, whose))
        elif stat.S_ISREG(about.st_mode):
            self._add_file(path, source, self._header(path, tarfile.REGTYPE, bits, whose), about)

    def _add_file(self, path: str, source: Path, header: tarfile.TarInfo, about: os.stat_result) -> None:
        known = self._links.get((about.st_dev, about.st_ino)) if about.st_nlink > 1 else None
        if known is not None:
            header.type, header.linkname = tarfile.LNKTYPE, known
            self._put(header)
            return
        self._links[about.st_dev, about.st_ino] = path
        with _opened(source) as file:
            header.size = os.fstat(file.fileno()).st_size
            header.pax_headers = _attributes(source)
            self._put(header, file)

    def _header(self, path: str, kind: bytes, mode: int, owner: FileOwner) -> tarfile.TarInfo:
        header = tarfile.TarInfo(path)
        header.type, header.mode, header.mtime = kind, mode & 0o7777, self._epoch
        header.uid, header.gid = owner
        return header

    def _put(self, header: tarfile.TarInfo, data: IO[bytes] | None = None) -> None:
        self._written.add(header.name)
        self._tar.addfile(header, data)
        self._tar.members = []  # type: ignore[attr-defined]  # it would remember all of them


def of_upper(tar: LayerTar, upper: Path, ours: Mapping[str, Path | None], owner: FileOwner | None) -> None:
    """All that an overlay has collected, but for the points that mounts of ours needed, and folders above them that are
    here for nothing else: `ours`, each with what it lies over.

    `owner`: whose it all is, where this machine lets us have no more than one user.
    """
    _of_folder(tar, upper, "", ours, owner)


def _of_folder(tar: LayerTar, upper: Path, at: str, ours: Mapping[str, Path | None], owner: FileOwner | None) -> None:
    for name in sorted(_listed(upper / at)):
        path = f"{at}/{name}" if at else name
        here = upper / path
        about = os.lstat(here)
        if stat.S_ISCHR(about.st_mode) and about.st_rdev == 0:
            tar.hide(path)
            continue
        if path in ours and _is_as_below(here, ours[path]) and not _holds_more(upper, path, ours):
            continue
        tar.add(path, here, owner=owner)
        if stat.S_ISDIR(about.st_mode):
            if _is_opaque(here):
                tar.text(f"{path}/{unpacking.OPAQUE}", b"", 0)
            _of_folder(tar, upper, path, ours, owner)


def _is_as_below(here: Path, below: Path | None) -> bool:
    if below is None:
        return True
    new, old = os.lstat(here), os.lstat(below)
    return (new.st_mode, new.st_uid, new.st_gid) == (old.st_mode, old.st_uid, old.st_gid) and not _is_opaque(here)


def _holds_more(upper: Path, path: str, ours: Mapping[str, Path | None]) -> bool:
    """Whether something is in a folder beside points of mounts."""
    here = upper / path
    if not stat.S_ISDIR(os.lstat(here).st_mode):
        return False
    inner = [f"{path}/{name}" for name in _listed(here)]
    return any(one not in ours or _holds_more(upper, one, ours) for one in inner)


def _listed(folder: Path) -> list[str]:
    """Its mode is written down before; what a step has closed even to us is opened here, and thrown away soon."""
    try:
        return os.listdir(folder)
    except PermissionError:
        os.chmod(folder, 0o700)
        return os.listdir(folder)


def _opened(source: Path) -> IO[bytes]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return open(os.open(source, flags), "rb")
    except PermissionError:
        bits = stat.S_IMODE(os.lstat(source).st_mode)
        os.chmod(source, bits | 0o400)
        try:
            return open(os.open(source, flags), "rb")
        finally:
            os.chmod(source, bits)


def _is_opaque(folder: Path) -> bool:
    for mark in OPAQUE_MARKS:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, mark, follow_symlinks=False) == b"y":
                return True
    return False


def _attributes(source: Path) -> dict[str, str]:
    found = {}
    with contextlib.suppress(OSError):
        for name in sorted(os.listxattr(source, follow_symlinks=False)):
            if name == "security.capability" or (name.startswith("user.") and not name.startswith("user.overlay")):
                value = os.getxattr(source, name, follow_symlinks=False)
                found[unpacking.ATTRIBUTE + name] = value.decode("utf-8", "surrogateescape")
    return found
