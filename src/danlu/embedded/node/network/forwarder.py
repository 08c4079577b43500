"""Carrying bytes from a listener to one of several backends: TCP, and UDP with short memories.

Where a backend is a pod, no byte leaves before `PodSockets` has verified that the pod is what answers.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, cast


class Destination(NamedTuple):
    """`pod_uid` is the pod that is meant; "" where the address is not a pod's."""

    host: str
    port: int
    pod_uid: str = ""


class ConnectionGate(Protocol):
    """Asked before each datagram: see `PodSockets`."""

    def receives(self, at: tuple[str, int], own: tuple[str, int], pod_uid: str) -> bool: ...
    async def require_receiver(self, at: tuple[str, int], own: tuple[str, int], pod_uid: str) -> None: ...


Choose = Callable[[str], list[Destination]]
"""Backends in the order in which to try them, for a client's address."""
Connect = Callable[[Destination], Awaitable[socket.socket]]

BUFFER_BYTES = 256 * 1024  # of one direction of one connection; beyond it the sender waits
CONNECT_SECONDS = 5.0
UDP_IDLE_SECONDS = 60.0
MOST_UDP_CLIENTS = 1024
MOST_WAITING = 16  # datagrams of one client, while its backend is looked for


class Rotation:
    """Round robin; with `sticky` the same client always comes to the same backend."""

    def __init__(self) -> None:
        self.backends: list[Destination] = []
        self.sticky = False
        self._turn = itertools.count()

    def __call__(self, client: str) -> list[Destination]:
        if not self.backends:
            return []
        start = (zlib.crc32(client.encode()) if self.sticky else next(self._turn)) % len(self.backends)
        return self.backends[start:] + self.backends[:start]


class _Half(asyncio.Protocol):
    """One side of a forwarded connection; what it receives its peer sends."""

    def __init__(self, peer: _Half | None = None) -> None:
        self.transport: asyncio.Transport | None = None
        self.peer = peer
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.write(data)

    def eof_received(self) -> bool:
        """The sender has finished; the other direction stays open until it, too, has."""
        self._ended = True
        peer = self.peer
        if peer is None or peer.transport is None or peer.transport.is_closing():
            return False
        if peer.transport.can_write_eof():
            peer.transport.write_eof()
        return not peer._ended

    def connection_lost(self, exc: Exception | None) -> None:
        if self.peer is not None and self.peer.transport is not None:
            if exc is not None:
                self.peer.transport.abort()
            else:
                self.peer.transport.close()

    def pause_writing(self) -> None:
        if self.peer is not None and self.peer.transport is not None and not self.peer.transport.is_closing():
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None and self.peer.transport is not None and not self.peer.transport.is_closing():
            self.peer.transport.resume_reading()


class _Inbound(_Half):
    def __init__(self, choose: Choose, connect: Connect, open_connections: set[_Inbound]) -> None:
        super().__init__()
        self._choose = choose
        self._connect_to = connect
        self._open = open_connections
        self._connecting: asyncio.Task[None] | None = None
        self._early: list[bytes] = []  # came before the backend was reached: uvloop reads even when told to wait

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._open.add(self)
        assert self.transport is not None
        self.transport.pause_reading()
        self._connecting = asyncio.create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        if self.peer is None:
            self._early.append(data)
            assert self.transport is not None
            self.transport.pause_reading()
        else:
            super().data_received(data)

    def eof_received(self) -> bool:
        if self.peer is None:
            self._ended = True
            return True
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        if self._connecting is not None:
            self._connecting.cancel()
        super().connection_lost(exc)

    async def _connect(self) -> None:
        assert self.transport is not None
        client = (self.transport.get_extra_info("peername") or ("",))[0]
        loop = asyncio.get_running_loop()
        for destination in self._choose(client):
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    made = await self._connect_to(destination)
                    # It knows us from the start: a server that speaks first (SSH) may do so before we are woken.
                    _, outbound = await loop.create_connection(lambda: _Half(self), sock=made)
                self._join(outbound)
                return
        self.transport.abort()  # a reset, as where nothing listens

    def _join(self, outbound: _Half) -> None:
        assert self.transport is not None
        assert outbound.transport is not None
        self.peer = outbound
        if self.transport.is_closing():
            outbound.transport.close()
            return
        outbound.transport.writelines(self._early)
        self._early.clear()
        if self._ended and outbound._ended:  # neither will hear of an end again
            outbound.transport.close()
            self.transport.close()
        elif self._ended:
            outbound.transport.write_eof()
        else:
            self.transport.resume_reading()


class TcpForwarder:
    """Listens on one address. `close` stops listening; connections that are open go on to their end."""

    def __init__(self, choose: Choose, connect: Connect) -> None:
        self._choose = choose
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._open: set[_Inbound] = set()

    async def listen(self, host: str, port: int) -> None:
        """Raises OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Inbound(self._choose, self._connect, self._open), host, port, backlog=512, reuse_address=True
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def abort(self) -> None:
        self.close()
        for connection in [*self._open]:
            if connection.transport is not None:
                connection.transport.abort()


class UdpForwarder(asyncio.DatagramProtocol):
    """Each client gets a socket of its own towards its backend, so that answers find back."""

    def __init__(self, choose: Choose, gate: ConnectionGate) -> None:
        self._choose = choose
        self.gate = gate
        self._transport: asyncio.DatagramTransport | None = None
        self._upstreams: dict[Any, _Upstream] = {}

    async def listen(self, host: str, port: int) -> None:
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, (host, port))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        upstream = self._upstreams.get(addr)
        if upstream is None:
            backends = self._choose(addr[0])
            if not backends or len(self._upstreams) >= MOST_UDP_CLIENTS:
                return
            upstream = self._upstreams[addr] = _Upstream(self, addr, backends[0])
            upstream.connect()
        upstream.send(data)

    def answer(self, data: bytes, client: Any) -> None:
        if self._transport is not None:
            self._transport.sendto(data, client)

    def forget(self, client: Any) -> None:
        self._upstreams.pop(client, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        for upstream in [*self._upstreams.values()]:
            upstream.close()

    def abort(self) -> None:
        self.close()


class _Upstream(asyncio.DatagramProtocol):
    def __init__(self, owner: UdpForwarder, client: Any, backend: Destination) -> None:
        self._owner = owner
        self._client = client
        self._backend = backend
        self._own = ("", 0)
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None

    def connect(self) -> None:
        self._connecting = asyncio.create_task(self._connect())

    async def _connect(self) -> None:
        at = self._backend[:2]
        try:
            if self._transport is None:
                await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, remote_addr=at)
            await self._owner.gate.require_receiver(at, self._own, self._backend.pod_uid)
        except OSError:
            self.close()
            return
        self._connecting = None
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self._send(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._own = transport.get_extra_info("sockname")[:2]
        self._touch()

    def send(self, data: bytes) -> None:
        if self._connecting is None and self._send(data):
            return
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(data)
        if self._connecting is None:  # another socket than before would get it: whose is that?
            self.connect()

    def _send(self, data: bytes) -> bool:
        backend = self._backend
        if self._transport is None or not self._owner.gate.receives(backend[:2], self._own, backend.pod_uid):
            return False
        self._transport.sendto(data)
        self._touch()
        return True

    def datagram_received(self, data: bytes, _addr: Any) -> None:
        self._owner.answer(data, self._client)
        self._touch()

    def _touch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(UDP_IDLE_SECONDS, self.close)

    def close(self) -> None:
        self._owner.forget(self._client)
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None:
            self._transport.close()
