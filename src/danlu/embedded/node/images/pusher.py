"""An image from the store to a registry: what is not there yet, then the manifest."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from danlu.diagnose import say
from danlu.embedded.node.images.credentials import RegistryKeyring
from danlu.embedded.node.images.imagestore import MANIFEST, ImageStore, StoredImage
from danlu.embedded.node.images.puller import CHUNK, PullError, TransferProgress
from danlu.embedded.node.images.reference import Reference
from danlu.embedded.node.images.registry import RegistryClient, RegistryError
from danlu.embedded.node.images.registrysettings import RegistrySettings

ACTION = "pull,push"


async def push(
    store: ImageStore, settings: RegistrySettings, image: StoredImage, to: Reference, keyring: RegistryKeyring,
    progress: TransferProgress | None = None,
) -> None:  # fmt: skip
    """Raises ImageError with what the registry said. Never to a mirror."""
    told: RegistryError | None = None
    for endpoint in settings.endpoints(to.registry):
        if endpoint.is_mirror:
            continue
        for own in (*keyring.matching(to), None):
            try:
                async with RegistryClient(endpoint, to, own) as registry:
                    await _push(registry, store, image, progress or TransferProgress())
                    return
            except RegistryError as error:
                told = error if told is None or told.is_unreachable else told
                if not error.is_denied:
                    break
    raise PullError(say("DL-PUSH-FAILED", image=to.familiar, registry=to.registry, answer=str(told)))


async def _push(registry: RegistryClient, store: ImageStore, image: StoredImage, progress: TransferProgress) -> None:
    blobs = [str(image.manifest["config"]["digest"]), *(blob for blob, _ in image.layers)]
    progress.total = image.packed
    for digest in dict.fromkeys(blobs):
        size = (await asyncio.to_thread(store.blob(digest).stat)).st_size
        if await _has(registry, digest):
            progress.add(size)
            continue
        async with registry.request("POST", "blobs/uploads/", action=ACTION) as answer:
            location = registry.absolute(answer.headers["Location"])
        target = f"{location}{'&' if '?' in location else '?'}digest={digest}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        with _opened(store.blob(digest)) as file:
            data = _pieces(file, progress)
            async with registry.request("PUT", target, headers=headers, data=data, action=ACTION):
                pass
    manifest = store.read(image.digest)
    assert image.digest == f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    headers = {"Content-Type": str(image.manifest.get("mediaType") or MANIFEST)}
    path = f"manifests/{registry.reference.version}"
    async with registry.request("PUT", path, headers=headers, data=manifest, action=ACTION):
        pass


async def _has(registry: RegistryClient, digest: str) -> bool:
    try:
        async with registry.request("HEAD", f"blobs/{digest}", action=ACTION):
            return True
    except RegistryError as error:
        if error.status == 404:
            return False
        raise


def _opened(path: Path) -> IO[bytes]:
    return open(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb")


async def _pieces(file: IO[bytes], progress: TransferProgress) -> AsyncIterator[bytes]:
    while data := file.read(CHUNK):
        yield data
        progress.add(len(data))
