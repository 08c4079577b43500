"""`pods/NAME/portforward`: TCP connections to a pod's ports through the API server.

Two ways to carry them: SPDY streams in WebSocket messages (kubectl), and two WebSocket channels for each port, one
connection each (the Python client and other libraries).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.embedded.apiserver.subresources import spdy
from danlu.embedded.apiserver.subresources.nodestreams import ByteQueue, NodeStreams, node_of, plain_words, pod_of
from danlu.embedded.apiserver.subresources.websocket import PROTOCOL_ERROR, Channels, Socket
from danlu.errors import BadRequest, InternalError
from danlu.meta.kind import Kind, Object

TUNNEL = "SPDY/3.1+portforward.k8s.io"
CHANNELS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io", "")
CHUNK = 64 * 1024
MOST_PORTS = 100  # of one connection: a channel is a byte, and two are taken for each


async def stream(call: Call, scope: Any, receive: Any, send: Any) -> None:
    socket = Socket(scope, receive, send)
    protocol = socket.choose((TUNNEL, *CHANNELS))
    pod = pod_of(call)
    node = _running_node(call, pod)
    if protocol == TUNNEL:
        await socket.accept(protocol)
        await _Tunnel(socket, node, pod).run()
        return
    ports = _ports(call)
    await socket.accept(protocol)
    await _Forwarder(Channels(socket, protocol), node, pod, ports).run()


async def handle(call: Call) -> Response:
    _running_node(call, pod_of(call))
    raise BadRequest(f"Upgrade request required: this server forwards ports over WebSocket ({TUNNEL}), not SPDY alone")


def _running_node(call: Call, pod: Object) -> NodeStreams:
    node = node_of(call, pod)
    phase = pod.get("status", {}).get("phase")
    if phase != "Running":
        raise InternalError(f"unable to forward port because pod is not running. Current status={phase or 'Pending'}")
    return node


def _ports(call: Call) -> list[int]:
    ports = []
    for text in ",".join(call.query.getall("ports")).split(","):
        if not text:
            continue
        if not text.isdigit() or len(text) > 5 or not 0 < int(text) < 65536:
            raise BadRequest(f'unable to parse "{text}" as a port: it must be between 1 and 65535')
        ports.append(int(text))
    if not ports:
        raise BadRequest('query parameter "ports" is required')
    if len(ports) > MOST_PORTS:
        raise BadRequest(f"at most {MOST_PORTS} ports can be forwarded over one connection")
    return ports


async def connect(node: NodeStreams, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Raises OSError with the words that kubelet has for it."""
    try:
        return await node.connect(pod, port)
    except OSError as error:
        meta = pod["metadata"]
        raise OSError(
            f"error forwarding port {port} to pod {meta['uid']}, uid : failed to connect to localhost:{port} inside "
            f'pod "{meta["name"]}": connect: {plain_words(error)}'
        ) from error


async def pump(read: Callable[[], Awaitable[bytes]], writer: asyncio.StreamWriter) -> None:
    """Copies until the end, then says so to the other side."""
    with suppress(OSError):
        while data := await read():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


class _Tunnel:
    """SPDY in WebSocket messages: for each connection an error stream and a data stream with the same request id."""

    def __init__(self, socket: Socket, node: NodeStreams, pod: Object) -> None:
        self._socket = socket
        self._node = node
        self._pod = pod
        self._halves: dict[str, spdy.Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connection = spdy.Connection(socket.send, self._accept)

    async def run(self) -> None:
        try:
            while (data := await self._socket.receive()) is not None:
                await self._connection.feed(data)
        except spdy.ProtocolError as error:
            await self._socket.close(PROTOCOL_ERROR, str(error))
        finally:
            self._connection.abort()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, stream: spdy.Stream) -> bool:
        kind, port = stream.headers.get("streamtype"), stream.headers.get("port", "")
        if kind not in ("error", "data") or not port.isdigit() or not 0 < int(port) < 65536:
            return False
        request = stream.headers.get("requestid") or f"port {port}"
        other = self._halves.pop(request, None)
        if other is None:
            self._halves[request] = stream
            return True
        if other.headers.get("streamtype") == kind:
            return False
        error, data = (other, stream) if kind == "data" else (stream, other)
        task = asyncio.create_task(self._forward(error, data, int(port)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _forward(self, error: spdy.Stream, data: spdy.Stream, port: int) -> None:
        try:
            reader, writer = await connect(self._node, self._pod, port)
        except OSError as problem:
            await error.write(str(problem).encode())
            await error.finish()
            await data.finish()
            error.forget()
            data.forget()
            return
        try:
            coming = asyncio.create_task(pump(data.read, writer))
            try:
                with suppress(OSError):
                    while chunk := await reader.read(CHUNK):
                        await data.write(chunk)
                await data.finish()
                await error.finish()
                # The pod has said its last word; what the client still sends has no reader.
                if not coming.done():
                    await data.reset()
            finally:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        finally:
            writer.close()
            error.forget()
            data.forget()


class _Forwarder:
    """Two channels for each port: data, and errors. Both begin with the port's number, least byte first."""

    def __init__(self, channels: Channels, node: NodeStreams, pod: Object, ports: list[int]) -> None:
        self._channels = channels
        self._node = node
        self._pod = pod
        self._ports = ports
        self._inputs = [ByteQueue() for _ in ports]
        self._done: set[int] = set()  # ports whose connection has ended: what still comes for them is dropped

    async def run(self) -> None:
        for number, port in enumerate(self._ports):
            for channel in (2 * number, 2 * number + 1):
                await self._channels.send(channel, struct.pack("<H", port))
        tasks = [asyncio.create_task(self._forward(number, port)) for number, port in enumerate(self._ports)]
        coming = asyncio.create_task(self._receive())
        try:
            while tasks_left := [task for task in tasks if not task.done()]:
                await asyncio.wait({coming, *tasks_left}, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    break
        finally:
            for task in (coming, *tasks):
                task.cancel()
            await asyncio.gather(coming, *tasks, return_exceptions=True)
            await self._channels.socket.close()

    async def _receive(self) -> None:
        while (message := await self._channels.receive()) is not None:
            channel, data = message
            number, is_error = divmod(channel, 2)
            if not is_error and number < len(self._inputs) and number not in self._done and data:
                await self._inputs[number].put(data)

    async def _forward(self, number: int, port: int) -> None:
        try:
            reader, writer = await connect(self._node, self._pod, port)
        except OSError as problem:
            await self._channels.send(2 * number + 1, str(problem).encode())
            self._end(number)
            return
        coming = asyncio.create_task(pump(self._inputs[number].get, writer))
        try:
            with suppress(OSError):
                while chunk := await reader.read(CHUNK):
                    await self._channels.send(2 * number, chunk)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            writer.close()
            self._end(number)

    def _end(self, number: int) -> None:
        self._done.add(number)
        self._inputs[number].clear()


PORT_FORWARD = Subresource(
    verbs=("create", "get"), kind=Kind("", "v1", "PodPortForwardOptions", "pods"), handle=handle, stream=stream
)
