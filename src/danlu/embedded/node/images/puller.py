"""An image from its registry into the store: layers side by side, each checked by its digest, and unpacked as it comes.

Where it is asked for, in order: mirrors, then the registry, with each of the credentials that fit and then with none.
A download that is cut goes on where it was, also after a restart; one that is not what its digest says is thrown away
and fetched again.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from danlu.diagnose import say
from danlu.embedded.node.images.archive import DEPTH, for_this_machine
from danlu.embedded.node.images.credentials import RegistryKeyring
from danlu.embedded.node.images.imagestore import DOCKER_INDEX, INDEX, ImageStore
from danlu.embedded.node.images.reference import Reference
from danlu.embedded.node.images.registry import RegistryClient, RegistryError
from danlu.embedded.node.images.registrysettings import RegistrySettings
from danlu.embedded.node.imagesource import ImageError

AT_ONCE = 3  # layers of one image; docker's own
TRIES = 5  # for one blob, while something comes
BAD_TRIES = 2  # for one that is not what its digest says
CHUNK = 1 << 18
WAIT_S = 0.1  # between two looks at what another fetches
PAUSE_S = 0.5  # before a cut download goes on; doubles


class PullError(ImageError):
    """ErrImagePull. `offline`: nobody answered."""

    def __init__(self, message: str, *, offline: bool = False) -> None:
        super().__init__(message)
        self.offline = offline


@dataclass(slots=True)
class TransferProgress:
    """Of one pull, for whoever shows it."""

    total: int = 0  # bytes that have to come
    done: int = 0
    changed: Callable[[TransferProgress], None] = field(default=lambda progress: None)

    def add(self, count: int) -> None:
        self.done += count
        self.changed(self)


class Puller:
    def __init__(self, store: ImageStore, settings: RegistrySettings) -> None:
        self.store = store
        self.settings = settings

    async def pull(
        self, reference: Reference, keyring: RegistryKeyring, progress: TransferProgress | None = None
    ) -> str:
        """The digest of the manifest, whole in the store and unpacked; it has no name yet. Raises ImageError."""
        tried: list[RegistryError] = []
        who: list[str] = []
        for endpoint in self.settings.endpoints(reference.registry):
            for own in (*keyring.matching(reference), None):
                by = f"{endpoint.url}{f' with {own.source}' if own else ''}"
                try:
                    async with RegistryClient(endpoint, reference, own) as registry:
                        return await _Pull(registry, self.store, progress or TransferProgress()).run()
                except RegistryError as error:
                    tried.append(error)
                    who.append(by)
                    if not error.is_denied:
                        break  # other credentials change nothing about it
        raise self._failed(reference, tried, who)

    def _failed(self, reference: Reference, tried: list[RegistryError], who: list[str]) -> PullError:
        """What says most of what was answered, and all that was asked."""
        told = max(tried, key=lambda error: (not error.is_unreachable, error.is_denied, error.status == 404))
        code = "DL-PULL-FAILED"
        if told.is_unreachable:
            code = "DL-PULL-UNREACHABLE"
        elif told.is_denied:
            code = "DL-PULL-DENIED"
        elif told.status == 404:
            code = "DL-PULL-NOT-FOUND"
        asked = ", ".join(dict.fromkeys(who))
        text = say(
            code, image=reference.familiar, registry=reference.registry, answer=str(told), tried=asked,
            file=str(self.settings.file),
        )  # fmt: skip
        return PullError(text, offline=told.is_unreachable)


class _Pull:
    """From one registry."""

    def __init__(self, registry: RegistryClient, store: ImageStore, progress: TransferProgress) -> None:
        self.registry = registry
        self.store = store
        self.progress = progress
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> str:
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, self.store.adding())
            digest, manifest = await self._manifest(self.registry.reference.version, DEPTH)
            config = manifest["config"]
            missing = [one for one in (config, *manifest["layers"]) if not self.store.has(str(one["digest"]))]
            self.progress.total = sum(int(one.get("size") or 0) for one in missing)
            await self._fetch(config)
            image = self.store.image(digest)
            await _all(
                [
                    self._layer(entry, blob, diff_id)
                    for entry, (blob, diff_id) in zip(manifest["layers"], image.layers, strict=True)
                ]
            )
        return digest

    async def _manifest(self, version: str, depth: int) -> tuple[str, dict[str, Any]]:
        data = await self.registry.manifest(version)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if version.startswith("sha256:") and version != digest:
            raise RegistryError(f"{self.registry.endpoint.host} gave {digest} for {version}: it is refused", 500)
        try:
            found = json.loads(data)
            if (depth and found.get("mediaType") in (INDEX, DOCKER_INDEX)) or "manifests" in found:
                return await self._manifest(str(for_this_machine(found["manifests"])["digest"]), depth - 1)
            manifest = {"config": dict(found["config"]), "layers": [dict(one) for one in found["layers"]]}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            told = "schema 1 is too old" if b'"schemaVersion": 1' in data else f"{type(error).__name__} {error}"
            raise ImageError(f"{self.registry.endpoint.host} gave a manifest that is none: {told}") from error
        self.store.put(data)
        return digest, manifest

    async def _layer(self, entry: dict[str, Any], blob: str, diff_id: str) -> None:
        async with self._turns:
            if not self.store.is_unpacked(diff_id):
                await self._fetch(entry)
            await asyncio.to_thread(self.store.unpack_layer, blob, diff_id)

    async def _fetch(self, entry: dict[str, Any]) -> None:
        digest, size = str(entry["digest"]), int(entry.get("size") or 0)
        bad = 0
        async with self._partial(digest) as file:
            for attempt in range(TRIES * 2):
                if self.store.has(digest):
                    return
                begin = file.seek(0, os.SEEK_END)
                try:
                    await self._download(digest, size, file)
                except RegistryError as error:
                    # What has got further may go on for as long as it does; what has not is asked a few times.
                    if error.status not in (0, 500, 502, 503, 504) or (attempt >= TRIES and file.tell() <= begin):
                        raise
                    if not begin and not file.tell() and error.is_unreachable:
                        raise
                    await asyncio.sleep(min(PAUSE_S * 2**attempt, 10.0))
                    continue
                found = await asyncio.to_thread(_digest_of, file)
                if found == digest:
                    file.flush()
                    self.store.keep(self.store.partial_path(digest), digest)
                    return
                bad += 1
                self.progress.add(-file.tell())
                file.truncate(0)
                if bad >= BAD_TRIES:
                    host = self.registry.endpoint.host
                    raise RegistryError(f"{host} gave {found} for {digest}, {bad} times: it is refused", 500)
        raise RegistryError(f"{self.registry.endpoint.host} never gave the whole of {digest}")

    async def _download(self, digest: str, size: int, file: IO[bytes]) -> None:
        begin = file.seek(0, os.SEEK_END)
        if size and begin >= size:
            return
        async with self.registry.blob(digest, begin) as answer:
            if begin and answer.status != 206:
                file.truncate(0)
                self.progress.add(-begin)
            file.seek(0, os.SEEK_END)
            async for piece in answer.content.iter_chunked(CHUNK):
                try:
                    file.write(piece)
                except OSError as error:
                    raise ImageError(f"{digest} cannot be written: {error.strerror}") from error
                self.progress.add(len(piece))
                if size and file.tell() > size:
                    break  # its digest will say so

    @contextlib.asynccontextmanager
    async def _partial(self, digest: str) -> AsyncIterator[IO[bytes]]:
        """For one at a time: whoever else fetches the same waits, and then finds it in the store."""
        with _opened(self.store.partial_path(digest)) as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(WAIT_S)
            self.progress.add(file.seek(0, os.SEEK_END))
            yield file


def _opened(path: Path) -> IO[bytes]:
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


async def _all(works: list[Any]) -> None:
    """One that fails ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _digest_of(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while data := file.read(1 << 20):
        digest.update(data)
    return f"sha256:{digest.hexdigest()}"
