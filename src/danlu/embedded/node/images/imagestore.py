"""Images of this node on the disk: blobs and unpacked layers by digest, and names that lead to them.

    blobs/sha256/HEX     manifests, configurations and packed layers, each what its digest says
    layers/HEX/          a layer, unpacked: tree/ and layer.json (see `unpacking`); named by the digest of its tar
    names.json           canonical name -> manifest, who put it there, when
    partial/             what is being written; a download that was cut goes on here
    buildcache/          which layers a step of a build has made, and what `RUN --mount=type=cache` keeps
    building/            what a step has written so far
    lock                 shared by whoever adds, exclusive for whoever removes

Everything appears by a rename, whole. `danlu images` and a running `danlu up` use it side by side. All of it blocks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from danlu.embedded import private_files
from danlu.embedded.node.images import unpacking
from danlu.embedded.node.imagesource import ImageError
from danlu.embedded.node.pressure.cleanup import remove_tree
from danlu.embedded.node.sandbox.interpreter import helper_command

FOLDER = "imagestore"  # in the data directory
LARGEST_DOCUMENT = 4 << 20  # bytes of a manifest or a configuration; registries take no larger ones
MOST_UNPACKED = 100  # times a layer's packed size …
LEAST_UNPACKED = 1 << 30  # … or as many bytes: text packs well, and a bomb packs a thousand times better
MOST_ENTRIES = 2_000_000  # of one layer
KEPT_FREE = 1 << 30  # bytes of the disk, at most a twentieth of it
MOST_LAYERS = 200  # an overlay has a page for all their names

CACHE = "buildcache"  # steps that were carried out, and caches that they asked for: see building/buildcache
WORK = "building"  # what a step needs while it runs

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"


class BadDigest(ImageError):
    """What came is not what its digest says."""


@dataclass(frozen=True, slots=True)
class Named:
    digest: str  # of the manifest
    by_hand: bool = False  # loaded, pulled or built by a person, not by the node for a pod
    at: float = 0.0
    used: float = 0.0  # when a container last asked for it


@dataclass(frozen=True, slots=True)
class StoredImage:
    digest: str
    manifest: dict[str, Any]
    config: dict[str, Any]

    @property
    def layers(self) -> list[tuple[str, str]]:
        """(blob, digest of its tar), the lowest first."""
        return [
            (str(one["digest"]), str(diff))
            for one, diff in zip(self.manifest["layers"], self.config["rootfs"]["diff_ids"], strict=True)
        ]

    @property
    def packed(self) -> int:
        return sum(int(one.get("size") or 0) for one in (*self.manifest["layers"], self.manifest["config"]))


class ImageStore:
    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / FOLDER

    # -- blobs

    def blob(self, digest: str) -> Path:
        algorithm, _, value = digest.partition(":")
        if algorithm != "sha256" or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
            raise BadDigest(f"{digest[:80]!r} is not a digest that is known here (sha256)")
        return self.root / "blobs" / "sha256" / value

    def has(self, digest: str) -> bool:
        return self.blob(digest).exists()

    def read(self, digest: str) -> bytes:
        path = self.blob(digest)
        if path.stat().st_size > LARGEST_DOCUMENT:
            raise ImageError(f"{digest} is larger than {LARGEST_DOCUMENT >> 20} MiB")
        return path.read_bytes()

    def put(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if not self.has(digest):
            with self.partial() as (file, path):
                file.write(data)
                file.flush()
                self.keep(path, digest)
        return digest

    def put_stream(self, source: IO[bytes], expected: str = "") -> tuple[str, int]:
        """Digest and size of what was read. Raises BadDigest."""
        digest, size = hashlib.sha256(), 0
        with self.partial() as (file, path):
            while data := source.read(unpacking.CHUNK):
                digest.update(data)
                size += len(data)
                file.write(data)
            file.flush()
            found = f"sha256:{digest.hexdigest()}"
            if expected and found != expected:
                raise BadDigest(f"{expected} is {found}: it was changed or cut")
            self.keep(path, found)
        return found, size

    @contextlib.contextmanager
    def partial(self) -> Iterator[tuple[IO[bytes], Path]]:
        """A file that goes away again unless it is kept."""
        self._make(self.root / "partial")
        with tempfile.NamedTemporaryFile(dir=self.root / "partial", delete=False) as file:
            path = Path(file.name)
            try:
                yield file, path
            finally:
                path.unlink(missing_ok=True)

    def keep(self, path: Path, digest: str) -> None:
        """A whole file of `partial`, whose digest was looked at."""
        target = self.blob(digest)
        self._make(target.parent)
        os.replace(path, target)

    def partial_path(self, digest: str) -> Path:
        """Where the download of a blob goes, and goes on after a cut."""
        self._make(self.root / "partial")
        return self.root / "partial" / self.blob(digest).name

    # -- images

    def image(self, digest: str) -> StoredImage:
        """Raises ImageError when it is not whole."""
        try:
            manifest = self._document(digest)
            config = self._document(str(manifest["config"]["digest"]))
            image = StoredImage(digest, manifest, config)
            layers = image.layers
        except FileNotFoundError as error:
            raise ImageError(f"{digest} is not whole: {Path(str(error.filename)).name} is missing") from error
        except (KeyError, TypeError, ValueError) as error:
            raise ImageError(f"{digest} is not an image: {type(error).__name__} {error}") from error
        if len(layers) > MOST_LAYERS:
            raise ImageError(f"{digest} has {len(layers)} layers, more than {MOST_LAYERS}")
        return image

    def _document(self, digest: str) -> dict[str, Any]:
        found = json.loads(self.read(digest))
        if not isinstance(found, dict):
            raise ImageError(f"{digest} is not a document of an image")
        return found

    def names(self) -> dict[str, Named]:
        try:
            found = json.loads((self.root / "names.json").read_text())
            return {name: Named(**entry) for name, entry in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ImageError(f"{self.root / 'names.json'} cannot be read: {error}; remove it and load again") from error

    def find(self, name: str) -> Named | None:
        return self.names().get(name)

    def name(self, name: str, digest: str, *, by_hand: bool) -> None:
        now = time.time()
        with self._names() as names:
            old = names.get(name)
            names[name] = Named(digest, by_hand or bool(old and old.by_hand), now, old.used if old else now)

    def used(self, name: str) -> None:
        with self._names() as names:
            old = names.get(name)
            if old is not None:
                names[name] = Named(old.digest, old.by_hand, old.at, time.time())

    def forget(self, name: str) -> bool:
        """Whether it was there. What nothing leads to any more goes with `sweep`."""
        with self._names() as names:
            return names.pop(name, None) is not None

    @contextlib.contextmanager
    def _names(self) -> Iterator[dict[str, Named]]:
        self._make(self.root)
        with open(self.root / "names.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            names = self.names()
            before = dict(names)
            yield names
            if names != before:
                text = json.dumps({name: asdict(entry) for name, entry in names.items()}, indent=1)
                private_files.write(self.root / "names.json", text.encode())

    # -- unpacked layers

    def tree(self, diff_id: str) -> Path:
        return self.root / "layers" / self.blob(diff_id).name

    def unpack(self, image: StoredImage) -> list[Path]:
        """The folders of its layers, the lowest first; made where they are missing. Raises ImageError."""
        with self.adding():
            return [self.unpack_layer(blob, diff_id) for blob, diff_id in image.layers]

    def is_unpacked(self, diff_id: str) -> bool:
        return (self.tree(diff_id) / unpacking.ABOUT).exists()

    def unpack_layer(self, blob: str, diff_id: str) -> Path:
        """For whoever is `adding`."""
        folder = self.tree(diff_id)
        if not self.is_unpacked(diff_id):
            self._unpack(blob, diff_id, folder)
        return folder

    def _unpack(self, blob: str, diff_id: str, folder: Path) -> None:
        self._make(folder.parent)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
        try:
            found = self._unpacked_into(self.blob(blob), new, f"layer {blob}")
            if found != diff_id:
                raise BadDigest(f"layer {blob} is refused: it unpacks to {found}, not to {diff_id}")
            with contextlib.suppress(FileExistsError, OSError):  # another one was quicker
                os.rename(new, folder)
        finally:
            remove_tree(new)

    def unpack_archive(self, archive: Path, folder: Path) -> None:
        """Whatever somebody packed, as if it were a layer. Raises ImageError."""
        self._unpacked_into(archive, folder, archive.name)

    def _unpacked_into(self, archive: Path, folder: Path, what: str) -> str:
        packed = archive.stat().st_size
        bounds = unpacking.Bounds(max(packed * MOST_UNPACKED, LEAST_UNPACKED), MOST_ENTRIES, self._kept_free())
        answer = _ask({"blob": str(archive), "folder": str(folder), "bounds": asdict(bounds)})
        if "refused" in answer:
            raise ImageError(f"{what} is refused: {answer['refused']}")
        if "problem" in answer:
            raise ImageError(f"{what} cannot be unpacked: {answer['problem']}")
        return str(answer["diff_id"])

    def work(self) -> Path:
        """Where steps of builds have their folders; what a killed one left goes with `sweep`."""
        self._make(self.root / WORK)
        return self.root / WORK

    def _kept_free(self) -> int:
        disk = os.statvfs(self.root)
        return min(KEPT_FREE, disk.f_blocks * disk.f_frsize // 20)

    # -- room

    @contextlib.contextmanager
    def adding(self) -> Iterator[None]:
        """Nothing is swept away meanwhile."""
        with self._lock(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def _lock(self, how: int) -> Iterator[None]:
        self._make(self.root)
        with open(self.root / "lock", "w") as lock:
            fcntl.flock(lock, how)
            yield

    def sweep(self, trees: Collection[str] = ()) -> bool:
        """Removes what no name leads to, but for `trees`, the layers of containers that run.

        False, and nothing is removed, while somebody adds: what is half there leads nowhere yet.
        """
        if not self.root.is_dir():
            return True
        try:
            with self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._sweep({entry.digest for entry in self.names().values()}, {*trees})
        except BlockingIOError:
            return False
        return True

    def _sweep(self, kept: set[str], trees: set[str]) -> None:
        blobs = set()
        for digest in kept:
            with contextlib.suppress(ImageError):
                image = self.image(digest)
                blobs |= {digest, str(image.manifest["config"]["digest"]), *(blob for blob, _ in image.layers)}
                trees |= {self.tree(diff).name for _, diff in image.layers}
        for path in _entries(self.root / "blobs" / "sha256"):
            if f"sha256:{path.name}" not in blobs:
                path.unlink(missing_ok=True)
        for path in _entries(self.root / "layers"):
            if path.name not in trees:
                remove_tree(path)
        for path in _entries(self.root / "partial"):
            path.unlink(missing_ok=True)
        for name in (CACHE, WORK):
            remove_tree(self.root / name)

    def _make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _entries(folder: Path) -> list[Path]:
    try:
        return [*folder.iterdir()]
    except FileNotFoundError:
        return []


def usage(folder: Path) -> int:
    """Bytes that it takes on the disk; a file with several names once."""
    seen, total = set(), 0
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError):
            for entry in os.scandir(waiting.pop()):
                about = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif about.st_nlink == 1 or about.st_ino not in seen:
                    seen.add(about.st_ino)
                    total += about.st_blocks * 512
    return total


def _ask(asked: dict[str, Any]) -> dict[str, Any]:
    """The process that unpacks: see `unpacking`."""
    command = helper_command("unpacking", "main", __package__)
    ended = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:
        last = ended.stderr.strip().rsplit("\n", 1)[-1]
        return {"problem": last or f"the process that unpacks ended with {ended.returncode}"}
    return found
