"""Archives of images: what `docker save` and `podman save` write, and OCI layouts as a tar or a folder. Blocks.

Read: the archive's own index says what is in it; nothing is taken by any other name. Written: an OCI layout that is a
docker-archive, too, so every engine reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import platform
import posixpath
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from danlu.embedded.node.images import reference, unpacking
from danlu.embedded.node.images.imagestore import (
    CONFIG,
    DOCKER_INDEX,
    INDEX,
    LARGEST_DOCUMENT,
    LAYER,
    MANIFEST,
    ImageStore,
    StoredImage,
)
from danlu.embedded.node.imagesource import ImageError

REF_NAME, FULL_NAME = "org.opencontainers.image.ref.name", "io.containerd.image.name"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
DEPTH = 4  # indices within indices
Progress = Callable[[str], None]


class Loaded(NamedTuple):
    name: str  # canonical; "" where the archive gives none
    digest: str


class NotAnArchive(ImageError):
    pass


class _Source(Protocol):
    def open(self, path: str) -> IO[bytes]:
        """Raises KeyError, FileNotFoundError."""
        ...


class _Tar:
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._members = {posixpath.normpath(member.name): member for member in archive}

    def open(self, path: str) -> IO[bytes]:
        found = self._archive.extractfile(self._members[posixpath.normpath(path)])
        if found is None:
            raise KeyError(path)
        return found


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def open(self, path: str) -> IO[bytes]:
        found = (self._root / path).resolve()
        if not found.is_relative_to(self._root):
            raise KeyError(path)
        return found.open("rb")


def load(store: ImageStore, source: Path | IO[bytes], progress: Progress = lambda line: None) -> list[Loaded]:
    """Raises ImageError, OSError."""
    with store.adding(), _opened(store, source) as opened:
        try:
            if (listed := _json(opened, "manifest.json")) is not None:
                return [_docker(store, opened, entry, progress) for entry in listed for entry in _per_name(entry)]
            if (index := _json(opened, "index.json")) is not None:
                return [_layout(store, opened, entry, progress) for entry in index["manifests"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotAnArchive(f"its index is not one: {type(error).__name__} {error}") from error
    raise NotAnArchive("it has neither manifest.json (docker save) nor index.json (OCI layout)")


def _per_name(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in entry.get("RepoTags") or [""]:
        yield {**entry, "RepoTags": name}


@contextlib.contextmanager
def _opened(store: ImageStore, source: Path | IO[bytes]) -> Iterator[_Source]:
    if isinstance(source, Path) and source.is_dir():
        yield _Folder(source)
        return
    with contextlib.ExitStack() as stack:
        if isinstance(source, Path):
            file: IO[bytes] = stack.enter_context(source.open("rb"))
        else:  # a pipe cannot be read twice
            file, _ = stack.enter_context(store.partial())
            shutil.copyfileobj(source, file, unpacking.CHUNK)
            file.flush()
            file.seek(0)
        try:
            archive = stack.enter_context(tarfile.open(fileobj=file, mode="r:*"))
            opened = _Tar(archive)
        except tarfile.TarError as error:
            raise NotAnArchive(f"it is not a tar archive: {error}") from error
        yield opened


def _json(source: _Source, path: str) -> Any:
    try:
        with source.open(path) as file:
            data = file.read(LARGEST_DOCUMENT + 1)
    except (KeyError, FileNotFoundError):
        return None
    if len(data) > LARGEST_DOCUMENT:
        raise NotAnArchive(f"{path} is larger than {LARGEST_DOCUMENT >> 20} MiB")
    return json.loads(data)


def _docker(store: ImageStore, source: _Source, entry: dict[str, Any], progress: Progress) -> Loaded:
    """Its layers are plain tars, by whatever path it names; the manifest is made here."""
    with source.open(entry["Config"]) as file:
        config = file.read(LARGEST_DOCUMENT)
    layers = []
    for number, path in enumerate(entry["Layers"], 1):
        progress(f"layer {number}/{len(entry['Layers'])}")
        with source.open(path) as file:
            digest, size = store.put_stream(file)
        layers.append({"mediaType": _kind_of(store.blob(digest)), "digest": digest, "size": size})
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": store.put(config), "size": len(config)},
        "layers": layers,
    }
    return _named(store, entry["RepoTags"], store.put(json.dumps(manifest).encode()))


def _kind_of(blob: Path) -> str:
    with blob.open("rb") as file:
        head = file.read(4)
    packed = {unpacking.GZIP: "+gzip", unpacking.ZSTD: "+zstd"}
    return LAYER + next((suffix for start, suffix in packed.items() if head.startswith(start)), "")


def _layout(store: ImageStore, source: _Source, entry: dict[str, Any], progress: Progress) -> Loaded:
    notes = entry.get("annotations") or {}
    name = str(notes.get(FULL_NAME) or notes.get(REF_NAME) or "")
    return _named(store, name, _manifest(store, source, entry, progress, DEPTH))


def _manifest(store: ImageStore, source: _Source, entry: dict[str, Any], progress: Progress, depth: int) -> str:
    digest = str(entry["digest"])
    data = _blob(store, source, digest)
    found = json.loads(data)
    if found.get("mediaType", entry.get("mediaType")) in (INDEX, DOCKER_INDEX):
        if depth == 0:
            raise NotAnArchive("an index in an index in an index: that is no image")
        return _manifest(store, source, for_this_machine(found["manifests"]), progress, depth - 1)
    store.put(data)
    store.put(_blob(store, source, str(found["config"]["digest"])))
    for number, layer in enumerate(found["layers"], 1):
        progress(f"layer {number}/{len(found['layers'])}")
        if not store.has(str(layer["digest"])):
            with source.open(_path(layer["digest"])) as file:
                store.put_stream(file, str(layer["digest"]))
    return digest


def _path(digest: str) -> str:
    return f"blobs/{str(digest).replace(':', '/')}"


def _blob(store: ImageStore, source: _Source, digest: str) -> bytes:
    with source.open(_path(digest)) as file:
        data = file.read(LARGEST_DOCUMENT + 1)
    if len(data) > LARGEST_DOCUMENT:
        raise NotAnArchive(f"{digest} is larger than {LARGEST_DOCUMENT >> 20} MiB")
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
        raise NotAnArchive(f"{digest} was changed or cut")
    return data


def _named(store: ImageStore, name: str, digest: str) -> Loaded:
    store.image(digest)  # whole, or it gets no name
    if not name:
        return Loaded("", digest)
    canonical = str(reference.parse(name))
    store.name(canonical, digest, by_hand=True)
    return Loaded(canonical, digest)


def for_this_machine(manifests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of an index, the manifest of this machine's platform. Raises ImageError, which names those that there are."""
    wanted = ARCHITECTURES.get(platform.machine(), platform.machine())
    there = []
    for entry in manifests:
        about = entry.get("platform") or {}
        if not about or (about.get("os"), about.get("architecture")) == ("linux", wanted):
            return entry
        there.append(f"{about.get('os')}/{about.get('architecture')}")
    raise ImageError(f"there is no image for linux/{wanted}, only for {', '.join(there) or 'nothing'}")


# -- writing


def save(store: ImageStore, names: Sequence[tuple[str, StoredImage]], target: IO[bytes]) -> None:
    """An OCI layout with docker-archive's manifest.json beside it. Raises OSError."""
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [
            {
                "mediaType": image.manifest.get("mediaType") or MANIFEST,
                "digest": image.digest,
                "size": store.blob(image.digest).stat().st_size,
                "annotations": {FULL_NAME: name, REF_NAME: reference.parse(name).tag},
            }
            for name, image in names
        ],
    }
    listed = [
        {
            "Config": _path(image.manifest["config"]["digest"]),
            "RepoTags": [reference.parse(name).familiar],
            "Layers": [_path(blob) for blob, _ in image.layers],
        }
        for name, image in names
    ]
    digests = {
        digest
        for _, image in names
        for digest in (image.digest, image.manifest["config"]["digest"], *(blob for blob, _ in image.layers))
    }
    with tarfile.open(fileobj=target, mode="w|") as archive:
        _add(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
        _add(archive, "index.json", index)
        _add(archive, "manifest.json", listed)
        for digest in sorted(digests):
            header = tarfile.TarInfo(_path(digest))
            header.size = store.blob(digest).stat().st_size
            with store.blob(digest).open("rb") as file:
                archive.addfile(header, file)


def _add(archive: tarfile.TarFile, path: str, content: object) -> None:
    data = json.dumps(content).encode()
    header = tarfile.TarInfo(path)
    header.size = len(data)
    archive.addfile(header, io.BytesIO(data))
