"""One layer of an image into a folder, with nothing of it landing anywhere else.

A layer is whatever somebody else has packed. So it is unpacked in a process of its own, whose memory is limited and
which takes no time of the server's, into a folder that nobody else knows yet: what `lstat` says of it stays true.

- A name is looked up from the folder, component by component, and links within it begin there again; one that leads
  above it refuses the layer. Links themselves are made as they are: only a container follows them, in its own root.
- Device files are left out, and told. So are attributes with which an overlay would be steered.
- Owners are kept where there is more than one, and those that cannot be are told.
- `.wh.NAME` hides NAME of the layers below, `.wh..wh..opq` all of a folder: both in the overlay's own marks, and in
  `layer.json` beside the tree for whoever copies layers instead.
- What it unpacks to is bounded, in bytes, entries and the room left on the disk.

Standard library only: see `interpreter`.
"""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import json
import lzma
import os
import posixpath
import resource
import shutil
import stat
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Protocol

TREE, ABOUT = "tree", "layer.json"
WHITEOUT, OPAQUE, AUFS = ".wh.", ".wh..wh..opq", ".wh..wh."
CHUNK = 1 << 20
LONGEST_HEADER = 1 << 20  # of a name or of extended attributes; they are held in memory
MOST_LINKS = 40  # followed for one name, as the kernel's own
MEMORY = 1 << 30  # address space
LISTED = 100  # of what was left out
LONG_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
                tarfile.GNUTYPE_LONGLINK)  # fmt: skip
ATTRIBUTE = "SCHILY.xattr."
LARGEST_ID = (1 << 32) - 2
GZIP, BZIP2, XZ, ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


class BadLayer(Exception):
    """It is refused; why."""


@dataclass
class Layer:
    """layer.json: what a tree does not say of itself."""

    diff_id: str = ""
    bytes: int = 0
    entries: int = 0
    opaque: list[str] = field(default_factory=list)
    whiteouts: list[str] = field(default_factory=list)
    marked: bool = True  # the tree has the overlay's own marks; without them it can only be copied
    left_out: list[str] = field(default_factory=list)  # device files, the first of them
    owners: dict[str, str] = field(default_factory=dict)  # path -> uid:gid that it cannot have, the first of them


@dataclass(frozen=True)
class Bounds:
    bytes: int
    entries: int
    kept_free: int  # bytes of the disk


class _Header(tarfile.TarInfo):
    """Refuses what would be read into memory whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        made = super().frombuf(buf, encoding, errors)
        if made.type in LONG_HEADERS and made.size > LONGEST_HEADER:
            raise BadLayer(f"a header of {made.size} bytes")
        if made.type == tarfile.GNUTYPE_SPARSE:
            raise BadLayer(f"{made.name!r} is a sparse file, which layers do not have")
        return made


class _Reader(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Inflated:
    """Of gzip, member after member, in large pieces."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(31)

    def read(self, size: int = CHUNK, /) -> bytes:
        while True:
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            if self._inflate.eof:
                data = data.lstrip(b"\0") or self._source.read(CHUNK)
                if not data:
                    return b""
                self._inflate = zlib.decompressobj(31)
            data = data or self._source.read(CHUNK)
            if not data:
                raise BadLayer("it ends too early")
            found = self._inflate.decompress(data, size)
            if found:
                return found


class _Counted:
    """What tarfile reads from: hashes and counts what passes, and ends where bounds do."""

    def __init__(self, source: _Reader, folder: str, bounds: Bounds) -> None:
        self.digest = hashlib.sha256()
        self.bytes = 0
        self._source = source
        self._folder = folder
        self._bounds = bounds
        self._data, self._at = b"", 0  # what was read and not yet handed out begins there: no piece is copied twice
        self._looked_at = 0

    def read(self, size: int) -> bytes:
        while len(self._data) - self._at < size:
            data = self._source.read(CHUNK)
            if not data:
                break
            self.digest.update(data)
            self.bytes += len(data)
            self._check()
            self._data, self._at = self._data[self._at :] + data, 0
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        return found

    def drain(self) -> None:
        while self.read(CHUNK):
            pass

    def _check(self) -> None:
        if self.bytes > self._bounds.bytes:
            raise BadLayer(f"it unpacks to more than {self._bounds.bytes >> 20} MiB")
        if self.bytes - self._looked_at >= 32 * CHUNK:
            self._looked_at = self.bytes
            disk = os.statvfs(self._folder)
            if disk.f_bavail * disk.f_frsize < self._bounds.kept_free:
                raise BadLayer(f"less than {self._bounds.kept_free >> 20} MiB of the disk would be left")


class Unpacker:
    def __init__(self, tree: str, bounds: Bounds) -> None:
        self.layer = Layer()
        self._tree = tree
        self._bounds = bounds
        self._is_root = os.geteuid() == 0
        self._folders: set[str] = {""}  # known to be folders of this tree
        self._late: dict[str, tarfile.TarInfo] = {}  # folders, which get modes and times when all is in them

    def unpack(self, source: _Reader) -> Layer:
        counted = _Counted(source, self._tree, self._bounds)
        with tarfile.open(fileobj=counted, mode="r|", tarinfo=_Header, errorlevel=2) as archive:  # type: ignore[call-overload]
            for member in archive:
                self.layer.entries += 1
                if self.layer.entries > self._bounds.entries:
                    raise BadLayer(f"it has more than {self._bounds.entries} entries")
                self._take(archive, member)
                archive.members = []  # it would remember all of them
        counted.drain()
        for path, member in sorted(self._late.items(), reverse=True):
            self._dress(path, member)
        self.layer.diff_id = f"sha256:{counted.digest.hexdigest()}"
        self.layer.bytes = counted.bytes
        return self.layer

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = _inside(member.name)
        folder, name = posixpath.split(path)
        if not name:
            if member.isdir():
                self._late[""] = member
            return
        folder = self._folder(folder)
        if name.startswith(WHITEOUT):
            self._hide(folder, name)
            return
        path = posixpath.join(folder, name)
        if member.isdir():
            self._make_folder(path, member)
        elif member.isreg():
            self._make_room(path)
            self._write(archive, member, path)
        elif member.issym():
            self._make_room(path)
            os.symlink(member.linkname, self._at(path))
            self._own(path, member)
        elif member.islnk():
            self._link(path, member)
        elif member.isfifo():
            self._make_room(path)
            os.mkfifo(self._at(path))
            self._dress(path, member)
        elif member.ischr() or member.isblk():
            if len(self.layer.left_out) < LISTED:
                self.layer.left_out.append(path)
        else:
            raise BadLayer(f"{path!r} is of a kind that layers do not have")

    def _at(self, path: str) -> str:
        return f"{self._tree}/{path}"

    # -- folders

    def _folder(self, path: str) -> str:
        """The same folder without links in its path; it is made where it is missing."""
        if path in self._folders:
            return path
        at, rest, links = "", path.split("/")[::-1], 0
        while rest:
            part = rest.pop()
            if part in ("", "."):
                continue
            if part == "..":
                at = posixpath.dirname(at)
                continue
            inner = posixpath.join(at, part)
            if inner in self._folders:
                at = inner
                continue
            try:
                mode = os.lstat(self._at(inner)).st_mode
            except FileNotFoundError:
                os.mkdir(self._at(inner), 0o755)
                mode = stat.S_IFDIR
            if stat.S_ISLNK(mode):
                links += 1
                if links > MOST_LINKS:
                    raise BadLayer(f"{path!r} has too many links in it")
                target = os.readlink(self._at(inner))
                at = "" if target.startswith("/") else at
                rest += target.split("/")[::-1]
            elif stat.S_ISDIR(mode):
                at = inner
                self._folders.add(inner)
            else:
                raise BadLayer(f"{inner!r} is a file and has files in it")
        return at

    def _make_folder(self, path: str, member: tarfile.TarInfo) -> None:
        try:
            mode = os.lstat(self._at(path)).st_mode
        except FileNotFoundError:
            mode = 0
        if not stat.S_ISDIR(mode):
            self._make_room(path)
            os.mkdir(self._at(path), 0o755)
        self._folders.add(path)
        self._late[path] = member

    def _make_room(self, path: str) -> None:
        """What an earlier entry of this layer has put there goes."""
        try:
            mode = os.lstat(self._at(path)).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            shutil.rmtree(self._at(path))
            self._folders = {""}
            self._late = {at: one for at, one in self._late.items() if at != path and not at.startswith(f"{path}/")}
        else:
            os.unlink(self._at(path))

    # -- what is in them

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        source = archive.extractfile(member)
        assert source is not None
        handle = os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(handle, "wb", buffering=0) as file:
            while data := source.read(CHUNK):
                file.write(data)
        self._dress(path, member)

    def _link(self, path: str, member: tarfile.TarInfo) -> None:
        folder, name = posixpath.split(_inside(member.linkname))
        target = posixpath.join(self._folder(folder), name)
        if target == path:
            return
        try:
            if stat.S_ISDIR(os.lstat(self._at(target)).st_mode):
                raise BadLayer(f"{path!r} is a hard link to a folder")
            self._make_room(path)
            os.link(self._at(target), self._at(path), follow_symlinks=False)
        except FileNotFoundError:
            raise BadLayer(f"{path!r} is a hard link to {member.linkname!r}, which is not in the layer") from None

    def _hide(self, folder: str, name: str) -> None:
        if name == OPAQUE:
            self.layer.opaque.append(folder)
            self._mark_opaque(folder)
            return
        hidden = name.removeprefix(WHITEOUT)
        if name.startswith(AUFS):
            return  # an old file system's own
        if hidden in ("", ".", ".."):
            raise BadLayer(f"{name!r} hides nothing that there is")
        path = posixpath.join(folder, hidden)
        if os.path.lexists(self._at(path)):
            return  # this layer has put another there: it hides the old one anyway
        self.layer.whiteouts.append(path)
        try:
            os.mknod(self._at(path), stat.S_IFCHR, os.makedev(0, 0))
        except OSError:
            self.layer.marked = False

    def _mark_opaque(self, folder: str) -> None:
        done = False
        for space in ("user", "trusted"):
            with contextlib.suppress(OSError):
                os.setxattr(self._at(folder), f"{space}.overlay.opaque", b"y", follow_symlinks=False)
                done = done or space == ("trusted" if self._is_root else "user")
        self.layer.marked = self.layer.marked and done

    def _dress(self, path: str, member: tarfile.TarInfo) -> None:
        """Owner, mode, attributes and times, in this order: a new owner takes the set-uid bit away."""
        self._own(path, member)
        at = self._at(path)
        os.chmod(at, member.mode & 0o7777)
        for key, value in member.pax_headers.items():
            name = key.removeprefix(ATTRIBUTE)
            kept = name == "security.capability" or (name.startswith("user.") and not name.startswith("user.overlay"))
            if key.startswith(ATTRIBUTE) and kept:
                with contextlib.suppress(OSError, UnicodeError):
                    os.setxattr(at, name, value.encode("utf-8", "surrogateescape"), follow_symlinks=False)
        with contextlib.suppress(OSError, OverflowError, ValueError):
            os.utime(at, (member.mtime, member.mtime))

    def _own(self, path: str, member: tarfile.TarInfo) -> None:
        uid, gid = member.uid, member.gid
        if not uid and not gid:
            return
        if self._is_root and 0 <= uid <= LARGEST_ID and 0 <= gid <= LARGEST_ID:
            with contextlib.suppress(OSError):
                os.chown(self._at(path), uid, gid, follow_symlinks=False)
                return
        if len(self.layer.owners) < LISTED:
            self.layer.owners[path] = f"{uid}:{gid}"


def _inside(name: str) -> str:
    """As a path below the layer's root, whatever it begins with."""
    path = posixpath.normpath("/".join(part for part in name.split("/") if part not in ("", ".")) or ".")
    if path == ".." or path.startswith("../"):
        raise BadLayer(f"{name!r} leads out of the image")
    return "" if path == "." else path


@contextlib.contextmanager
def opened(blob: str) -> Iterator[_Reader]:
    """A layer's tar, unpacked by what it begins with."""
    with open(blob, "rb") as file:
        head = file.read(6)
        file.seek(0)
        if head.startswith(GZIP):
            yield _Inflated(file)
        elif head.startswith(BZIP2):
            with bz2.BZ2File(file) as source:
                yield source
        elif head.startswith(XZ):
            with lzma.LZMAFile(file) as source:
                yield source
        elif head.startswith(ZSTD):
            with _zstd(blob) as output:
                yield output
        else:
            yield file


@contextlib.contextmanager
def _zstd(blob: str) -> Iterator[IO[bytes]]:
    program = shutil.which("zstd")
    if program is None:
        raise BadLayer("it is packed with zstd, and this machine has no program of that name: install it (zstd)")
    with subprocess.Popen([program, "-dcq", blob], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()


def unpack(blob: str, folder: str, bounds: Bounds) -> Layer:
    """Raises BadLayer, OSError."""
    tree = f"{folder}/{TREE}"
    os.mkdir(tree, 0o755)
    try:
        with opened(blob) as source:
            layer = Unpacker(tree, bounds).unpack(source)
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
        raise BadLayer(f"it cannot be read: {error}") from error
    with open(f"{folder}/{ABOUT}", "w") as file:
        json.dump(asdict(layer), file)
    return layer


def main() -> None:
    """Of the process of its own: arguments as JSON on the standard input, the answer on the standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.umask(0o022)
    asked: dict[str, Any] = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        layer = unpack(asked["blob"], asked["folder"], Bounds(**asked["bounds"]))
        answer = {"diff_id": layer.diff_id}
    except BadLayer as error:
        answer = {"refused": str(error)}
    except MemoryError:
        answer = {"refused": f"it takes more than {MEMORY >> 20} MiB of memory to read"}
    except OSError as error:
        answer = {"problem": error.strerror or str(error)}
    json.dump(answer, sys.stdout)
