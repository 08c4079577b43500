"""What the API server asks of a node, and how a request finds its pod, its container and its node.

The server knows nodes only through `NodeStreams`, so it neither imports them nor cares where they run.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from danlu.embedded.apiserver.request import Call
from danlu.embedded.streamoptions import LogOptions, StreamOptions
from danlu.errors import BadRequest, NotFound, ServiceUnavailable
from danlu.meta.kind import Object

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)


class Connect(Protocol):
    """Makes connections to pods. Raises OSError; what is sent reaches the pod that is meant, or nobody."""

    async def __call__(self, hosts: Sequence[str], port: int, pod_uid: str = "") -> socket.socket:
        """To the first of `hosts` that answers. Without `pod_uid` the address says which pod, if it is one's."""
        ...


async def plain_connection(hosts: Sequence[str], port: int, pod_uid: str = "") -> socket.socket:
    """Where no node runs: what answers is taken for what is meant."""
    loop = asyncio.get_running_loop()
    problem: OSError | None = None
    for host in hosts:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        made.setblocking(False)
        try:
            await loop.sock_connect(made, (host, port))
            return made
        except OSError as error:
            made.close()
            problem = problem or error
    raise problem or ConnectionRefusedError("connection refused")


CHUNK_BYTES = 64  # that a chunk takes beside what is in it
QUEUED_BYTES = 1024 * 1024  # that wait for their reader, before whoever sends them waits


class ByteQueue:
    """Chunks between a sender and a reader, with a bound in bytes: a count would say nothing, for the client chooses
    how long a message is. b"" is the end, by agreement of the two."""

    def __init__(self, most: int = QUEUED_BYTES) -> None:
        self._most = most
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._not_full, self._not_empty = asyncio.Event(), asyncio.Event()
        self._not_full.set()

    async def put(self, chunk: bytes) -> None:
        while not self._not_full.is_set():
            await self._not_full.wait()
        self.put_nowait(chunk)

    def put_nowait(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk) + CHUNK_BYTES
        if self._size >= self._most:
            self._not_full.clear()
        self._not_empty.set()

    async def get(self) -> bytes:
        while not self._chunks:
            await self._not_empty.wait()
        chunk = self._chunks.popleft()
        self._size -= len(chunk) + CHUNK_BYTES
        if self._size < self._most:
            self._not_full.set()
        if not self._chunks:
            self._not_empty.clear()
        return chunk

    def clear(self) -> None:
        self._chunks.clear()
        self._size = 0
        self._not_full.set()
        self._not_empty.clear()


class StreamSession(Protocol):
    """One exec or attach, seen from the server."""

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """(STDOUT or STDERR, bytes), until both have ended."""
        ...

    async def write(self, data: bytes) -> None:
        """To the program's stdin; waits while the program does not read."""
        ...

    def close_stdin(self) -> None: ...

    def resize(self, width: int, height: int) -> None: ...

    async def wait(self) -> int:
        """The exit code; of an attached container 0 when it has ended."""
        ...

    async def close(self) -> None:
        """The client is gone or all is done: gives everything back, ends what an exec has started."""
        ...


class NodeStreams(Protocol):
    """Each method raises ApiError in kubelet's words when the container is not in a state for it."""

    async def logs(
        self, pod: Object, container: str, options: LogOptions, *, previous: bool
    ) -> AsyncIterator[bytes]: ...

    async def check(self, pod: Object, container: str) -> None:
        """That a command could be run in the container now."""

    async def exec(
        self, pod: Object, container: str, command: Sequence[str], streams: StreamOptions
    ) -> StreamSession: ...

    async def attach(self, pod: Object, container: str, streams: StreamOptions) -> StreamSession: ...

    async def connect(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To a port of the pod. Raises OSError when nothing listens there."""
        ...


def plain_words(error: OSError | None) -> str:
    """ "connection refused" and the like, whichever event loop made the error."""
    if error is None:
        return "no address"
    return (os.strerror(error.errno) if error.errno else str(error)).lower()


def pod_of(call: Call) -> Object:
    stored = call.server.store.get("pods", call.namespace, call.name)
    if stored is None:
        raise NotFound.of("pods", call.name)
    return stored.obj


def container_of(pod: Object, asked: str) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    names = [
        container["name"]
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in spec.get(field) or []
    ]
    if asked:
        if asked not in names:
            raise BadRequest(f"container {asked} is not valid for pod {name}")
        return asked
    containers = spec.get("containers") or []
    if len(containers) == 1:
        return str(containers[0]["name"])
    raise BadRequest(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")


def node_of(call: Call, pod: Object) -> NodeStreams:
    node = pod["spec"].get("nodeName")
    if not node:
        raise BadRequest(f"pod {pod['metadata']['name']} does not have a host assigned")
    streams = call.server.node_streams.get(node)
    if streams is not None:
        return streams
    if call.server.store.get("nodes", "", node) is None:
        raise NotFound.of("nodes", node)
    raise ServiceUnavailable(f'node "{node}" is not running: pod "{pod["metadata"]["name"]}" cannot be reached')
