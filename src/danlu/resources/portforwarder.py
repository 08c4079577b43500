"""Ports of this machine that lead into a pod. Each connection has a WebSocket of its own, as every server speaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from danlu import errors
from danlu.client import channels
from danlu.client.channels import ChannelSocket
from danlu.client.client import Client
from danlu.client.http import HttpTransport
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD
from danlu.resources.execution import ContainerPlace

CHUNK = 64 * 1024
DATA, PROBLEM = 0, 1
PORT_NUMBER = 2  # bytes with which both channels begin


@dataclass(frozen=True, slots=True)
class PortPair:
    local: int  # 0: any that is free
    remote: int


def remote_port(kind: Kind, obj: Object, pod: Object, wanted: str) -> int | None:
    """The pod's port that is meant by a number or a name; of a service, what its port leads to. None: there is none."""
    target: str | int = int(wanted) if wanted.isdigit() else wanted
    if kind.kind == "Service":
        for one in obj["spec"].get("ports") or ():
            if target in (one["port"], one.get("name")):
                target = one.get("targetPort") or one["port"]
                break
        else:
            return None
    if isinstance(target, int):
        return target
    named = (one for container in pod["spec"]["containers"] for one in container.get("ports") or ())
    return next((one["containerPort"] for one in named if one.get("name") == target), None)


async def listen(
    transport: HttpTransport, place: ContainerPlace, pair: PortPair, address: str, failed: Callable[[str], None]
) -> asyncio.Server:
    """Raises OSError when the port of this machine is taken. `failed` is told of connections that broke."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path, query = POD.path(place.namespace, place.pod, "portforward"), [("ports", str(pair.remote))]
            async with channels.connected(transport, path, query, channels.PORT_PROTOCOLS) as opened:
                await _carry(opened, reader, writer, failed)
        except errors.ApiError as error:
            failed(error.message)
        except OSError:
            pass  # whoever connected went away
        finally:
            writer.close()

    return await asyncio.start_server(serve, address, pair.local)


async def _carry(
    opened: ChannelSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, failed: Callable[[str], None]
) -> None:
    async def send() -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                await opened.send(DATA, chunk)

    sending = asyncio.create_task(send())
    begun: set[int] = set()
    try:
        async for channel, data in opened.messages():
            if channel not in begun:
                begun.add(channel)
                data = data[PORT_NUMBER:]
            if channel == DATA and data:
                writer.write(data)
                await writer.drain()
            elif channel == PROBLEM and data:
                failed(data.decode(errors="replace").strip())
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def service_or_none(client: Client, kind: Kind, name: str, namespace: str | None) -> Object:
    """The object whose ports are meant; a pod's are its own."""
    return await client.get(kind, name, namespace) if kind.kind == "Service" else {}
