"""Files into a container and out of it, by the container's own `tar`, as `kubectl cp` does it.

A container is not trusted: what comes out of it is unpacked beside where it belongs, only files, folders and links that
stay inside, and put into place when it is whole.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO

from danlu.client.http import HttpTransport
from danlu.resources.execution import ContainerPlace, ExecStreams, execute

CHUNK = 256 * 1024
Progress = Callable[[int], None]
"""Told how many bytes have passed."""


class CopyFailed(Exception):
    """What `tar` in the container said."""


class _Said:
    def __init__(self) -> None:
        self.text = b""

    async def write(self, data: bytes) -> None:
        self.text = (self.text + data)[-4096:]

    def problem(self, code: int) -> CopyFailed:
        return CopyFailed(self.text.decode(errors="replace").strip() or f"tar: exit code {code}")


async def _ignore(_data: bytes) -> None:
    pass


async def upload(
    transport: HttpTransport, place: ContainerPlace, source: Path, target: str, progress: Progress
) -> None:
    said = _Said()
    target = target.rstrip("/") or "/"
    own_name = (await asyncio.to_thread(source.resolve)).name
    if await execute(transport, place, ["test", "-d", target], ExecStreams(_ignore, _ignore)) == 0:
        target = posixpath.join(target, own_name)
    folder, name = posixpath.split(target)
    command = ["tar", "-xmf", "-", "-C", folder or "."]
    code = await execute(transport, place, command, ExecStreams(_ignore, said.write, _packed(source, name, progress)))
    if code:
        raise said.problem(code)


async def _packed(source: Path, name: str, progress: Progress) -> AsyncIterator[bytes]:
    """A pipe with a thread at its other end: a folder of any size takes no memory."""
    reading, writing = os.pipe()

    def pack() -> None:
        with os.fdopen(writing, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|", bufsize=CHUNK) as archive:
            archive.add(source, arcname=name)

    packing = asyncio.create_task(asyncio.to_thread(pack))
    passed = 0
    try:
        while chunk := await asyncio.to_thread(os.read, reading, CHUNK):
            yield chunk
            passed += len(chunk)
            progress(passed)
    finally:
        os.close(reading)
        await asyncio.gather(packing, return_exceptions=True)


async def download(
    transport: HttpTransport, place: ContainerPlace, source: str, target: Path, progress: Progress
) -> list[str]:
    """Names of what was left out: devices, and links that lead out of what is copied."""
    folder, name = posixpath.split(posixpath.normpath(source))
    command = ["tar", "-cf", "-", "-C", folder or ".", "--", name or "."]
    beside = await asyncio.to_thread(lambda: target if target.is_dir() else target.parent)
    said, passed = _Said(), 0
    with tempfile.TemporaryFile(dir=beside) as archive:

        async def take(data: bytes) -> None:
            nonlocal passed
            archive.write(data)
            passed += len(data)
            progress(passed)

        if code := await execute(transport, place, command, ExecStreams(take, said.write)):
            raise said.problem(code)
        archive.seek(0)
        return await asyncio.to_thread(_unpack, archive, beside, name, target)


def _unpack(archive: IO[bytes], beside: Path, name: str, target: Path) -> list[str]:
    """Raises CopyFailed. What is there is touched when all of it is unpacked."""
    left_out: list[str] = []

    def safe(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        try:
            return tarfile.data_filter(member, path)
        except tarfile.FilterError:
            left_out.append(member.name)
            return None

    with tempfile.TemporaryDirectory(prefix=".danlu-cp-", dir=beside) as work:
        content = Path(work) / "content"
        try:
            with tarfile.open(fileobj=archive, mode="r:", bufsize=CHUNK) as opened:
                opened.extractall(content, filter=safe)
        except tarfile.TarError as error:
            raise CopyFailed(str(error)) from error
        found = content / name if name not in ("", ".", "..") else content
        _put(found, target / found.name if name and target.is_dir() and found != content else target)
    return left_out


def _put(found: Path, final: Path) -> None:
    """A folder goes into a folder of its name that is there already; a file replaces a file in one step."""
    if found.is_dir() and not found.is_symlink() and final.is_dir():
        for inner in sorted(found.iterdir()):
            _put(inner, final / inner.name)
    elif found.is_dir() and not found.is_symlink():
        shutil.move(found, final)
    else:
        found.replace(final)
