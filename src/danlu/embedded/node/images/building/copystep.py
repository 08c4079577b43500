"""COPY and ADD: what they take, where it goes, and the layer that comes of it."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from danlu.embedded.node.images import unpacking
from danlu.embedded.node.images.building import trees
from danlu.embedded.node.images.building.builderrors import wrong_line
from danlu.embedded.node.images.building.layertar import ROOT, BuiltLayer, FileOwner, LayerTar
from danlu.embedded.node.images.building.trees import LayersTree, LeadsOut, SourceTree
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.embedded.node.pressure.cleanup import remove_tree

CHUNK = 1 << 20
ARCHIVE = (unpacking.GZIP, unpacking.BZIP2, unpacking.XZ)


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A here-document: a file of the Dockerfile itself."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Taken:
    tree: SourceTree
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Copy:
    line: int
    sources: tuple[Taken | InlineFile, ...]
    target: str  # absolute
    into: bool  # the target is a folder: a file keeps its name
    unpacks: bool  # ADD
    mode: int | None = None
    owner: FileOwner | None = None

    def digest(self) -> str:
        """Of all that it takes."""
        found = hashlib.sha256()
        for source in self.sources:
            if isinstance(source, InlineFile):
                found.update(f"text {source.name}\0{hashlib.sha256(source.data).hexdigest()}\n".encode())
            else:
                found.update(f"source {source.name}\0".encode(errors="surrogateescape"))
                for path in (source.path, *_below(source)):
                    found.update(_about(source, path))
        return found.hexdigest()


def taken(tree: SourceTree, pattern: str, line: int, where: str) -> list[Taken]:
    """Raises BuildError."""
    try:
        found = trees.matching(tree, pattern)
    except LeadsOut:
        raise wrong_line(line, f"{pattern} leads out of {where}") from None
    if not found:
        raise wrong_line(line, f"{pattern} is not in {where}")
    return [Taken(tree, name, path) for name, path in found]


def _below(source: Taken) -> Iterator[str]:
    if trees.kind(source.tree.host(source.path)) == stat.S_IFDIR:
        yield from trees.walk(source.tree, source.path)


def _about(source: Taken, path: str) -> bytes:
    host = source.tree.host(path)
    if host is None:
        return b""
    about = os.lstat(host)
    content = ""
    if stat.S_ISREG(about.st_mode):
        content = _digest(host)
    elif stat.S_ISLNK(about.st_mode):
        content = os.readlink(host)
    whose = (about.st_uid, about.st_gid) if source.tree.keeps_owners else ""
    relative = path[len(source.path) :]
    return f"{relative}\0{about.st_mode:o}\0{whose}\0{content}\n".encode(errors="surrogateescape")


def _digest(path: Path) -> str:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class CopyStep:
    def __init__(self, copy: Copy, tree: LayersTree, store: ImageStore, epoch: int) -> None:
        """`tree`: the layers so far."""
        self._copy = copy
        self._tree = tree
        self._store = store
        self._epoch = epoch
        self._target = tree.resolve(copy.target.strip("/"))
        is_folder = trees.kind(tree.host(self._target)) == stat.S_IFDIR
        self._into = copy.into or is_folder

    def run(self) -> BuiltLayer:
        """Raises BuildError, OSError."""
        with LayerTar(self._store, self._epoch) as tar:
            for source in self._copy.sources:
                if isinstance(source, InlineFile):
                    self._text(tar, source)
                else:
                    self._take(tar, source)
            return tar.finish()

    def make_folder(self, tar: LayerTar) -> None:
        """The target alone: WORKDIR."""
        self._folder(tar, self._target)

    def _text(self, tar: LayerTar, source: InlineFile) -> None:
        path = posixpath.join(self._target, source.name) if self._into else self._target
        self._parents(tar, path)
        tar.text(path, source.data, 0o644 if self._copy.mode is None else self._copy.mode, self._copy.owner or ROOT)

    def _take(self, tar: LayerTar, source: Taken) -> None:
        host = source.tree.host(source.path)
        if host is None:
            raise wrong_line(self._copy.line, f"{source.path} is no longer there")
        if trees.kind(host) == stat.S_IFDIR:
            self._folder(tar, self._target)
            self._contents(tar, source.tree, source.path, self._target)
            return
        if self._copy.unpacks and _is_archive(host):
            self._unpack(tar, host)
            return
        path = posixpath.join(self._target, source.name) if self._into else self._target
        self._file(tar, source.tree, host, path)

    def _contents(self, tar: LayerTar, tree: SourceTree, folder: str, target: str) -> None:
        for name in tree.names(folder):
            path = f"{folder}/{name}" if folder else name
            to = f"{target}/{name}" if target else name
            host = tree.host(path)
            if host is None:
                continue
            if trees.kind(host) != stat.S_IFDIR:
                self._file(tar, tree, host, to)
                continue
            there = self._tree.resolve(to)  # a link to a folder stays one, as /bin
            to = there if trees.kind(self._tree.host(there)) == stat.S_IFDIR else to
            self._parents(tar, to)
            if not tar.has(to):
                tar.add(to, host, mode=self._copy.mode, owner=self._owner(tree))
            self._contents(tar, tree, path, to)

    def _file(self, tar: LayerTar, tree: SourceTree, host: Path, path: str) -> None:
        if not path:
            raise wrong_line(self._copy.line, "a file cannot be the root of an image")
        self._parents(tar, path)
        tar.add(path, host, mode=self._copy.mode, owner=self._owner(tree))

    def _owner(self, tree: SourceTree) -> FileOwner | None:
        return self._copy.owner or (None if tree.keeps_owners else ROOT)

    def _unpack(self, tar: LayerTar, archive: Path) -> None:
        """In a process of its own, as a layer: nothing of it lands elsewhere."""
        folder = Path(tempfile.mkdtemp(dir=self._store.work()))
        try:
            self._store.unpack_archive(archive, folder)
            tree = LayersTree([folder])
            self._folder(tar, self._target)
            self._contents(tar, tree, "", self._target)
        finally:
            remove_tree(folder)

    def _folder(self, tar: LayerTar, path: str) -> None:
        if path and not tar.has(path):
            self._parents(tar, path)
            self._as_it_is(tar, path)

    def _parents(self, tar: LayerTar, path: str) -> None:
        """Folders above: as they are in the layers below, for this one lies over them."""
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            if not tar.has(above):
                self._as_it_is(tar, above)

    def _as_it_is(self, tar: LayerTar, path: str) -> None:
        host = self._tree.host(path)
        if trees.kind(host) == stat.S_IFDIR and host is not None:
            tar.add(path, host, owner=None if self._tree.keeps_owners else ROOT)
        else:
            tar.folder(path, 0o755, self._copy.owner or ROOT)


def _is_archive(path: Path) -> bool:
    if trees.kind(path) != stat.S_IFREG:
        return False
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(ARCHIVE):
        try:
            with tarfile.open(path, "r:*"):
                return True
        except (tarfile.TarError, OSError, EOFError, ValueError):
            return False
    return tarfile.is_tarfile(path)
