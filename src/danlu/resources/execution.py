"""A program in a container, with its streams here: what `kubectl exec` does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import orjson

from danlu import errors
from danlu.client import channels
from danlu.client.channels import ChannelSocket
from danlu.client.http import HttpTransport
from danlu.meta.wellknown import POD

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
Write = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ContainerPlace:
    """A container."""

    namespace: str
    pod: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class ExecStreams:
    stdout: Write
    stderr: Write
    stdin: AsyncIterator[bytes] | None = None
    tty: bool = False
    sizes: AsyncIterator[tuple[int, int]] | None = None  # columns and rows of the terminal, each time they change


async def execute(transport: HttpTransport, place: ContainerPlace, command: list[str], streams: ExecStreams) -> int:
    """The program's exit code. Raises ApiError where it could not be started."""
    wanted = {"stdin": streams.stdin is not None, "stdout": True, "stderr": not streams.tty, "tty": streams.tty}
    query = [("command", word) for word in command] + [(name, "true") for name, given in wanted.items() if given]
    query += [("container", place.container)] if place.container else []
    path = POD.path(place.namespace, place.pod, "exec")
    async with channels.connected(transport, path, query, channels.EXEC_PROTOCOLS) as opened:
        sending = [asyncio.create_task(_send(opened, streams.stdin))] if streams.stdin is not None else []
        sending += [asyncio.create_task(_resize(opened, streams.sizes))] if streams.sizes is not None else []
        try:
            return await _receive(opened, streams)
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)


async def _receive(opened: ChannelSocket, streams: ExecStreams) -> int:
    status: bytes | None = None
    async for channel, data in opened.messages():
        if channel == STDOUT and data:
            await streams.stdout(data)
        elif channel == STDERR and data:
            await streams.stderr(data)
        elif channel == ERROR:
            status = data
    if status is None:
        raise errors.ServiceUnavailable("the stream ended without saying how the program did")
    return _exit_code(status)


def _exit_code(raw: bytes) -> int:
    try:
        status = orjson.loads(raw)
    except ValueError:
        raise errors.InternalError(raw.decode(errors="replace")) from None
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise errors.from_status(status.get("code") or 500, status)


async def _send(opened: ChannelSocket, chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        await opened.send(STDIN, chunk)
    await opened.finish(STDIN)


async def _resize(opened: ChannelSocket, sizes: AsyncIterator[tuple[int, int]]) -> None:
    async for columns, rows in sizes:
        await opened.send(RESIZE, orjson.dumps({"Width": columns, "Height": rows}))
