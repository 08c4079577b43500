"""The connections of one listener: how many there may be, who makes room for whom, and how they are accepted.

A connection is cheap to open and costs a descriptor for as long as it is held, so one that only waits (for its TLS
handshake, for the head of a request, for the next request) makes room when there is none: the one that has waited
longest goes, for whoever comes. Whoever holds many open and says nothing so keeps nobody out. Those that are being
served are left alone; who may have how many requests is decided once it is known who asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import socket
import ssl
import time
from collections.abc import Callable

log = logging.getLogger("danlu.net.listener")

HANDSHAKE_S = 10.0  # for TLS; a client at the end of a slow line needs two
BATCH = 64  # connections that are accepted before others have their turn
FREED = 8  # connections that go when there are no descriptors
SHORT_PAUSE_S = 0.01  # then, until they are closed
PAUSE_S = 0.2  # when there are no descriptors, and none that wait: nothing is accepted for so long
TOLD_EVERY_S = 60.0
OUT_OF_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def most_connections() -> int:
    """Of one listener: an eighth of the descriptors that the process may have, which has files and pods as well."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, min(4096, soft // 8))


class ConnectionSeat:
    """One connection's place. `waits` and `works` are told by its protocol."""

    __slots__ = ("_room", "address", "drop")

    def __init__(self, room: Room, address: str) -> None:
        self._room = room
        self.address = address
        self.drop: Callable[[], object] = lambda: None  # cuts the connection

    def waits(self) -> None:
        self._room.waiting.pop(self, None)
        self._room.waiting[self] = None  # at the end: it has only begun to

    def works(self) -> None:
        self._room.waiting.pop(self, None)

    def leave(self) -> None:
        self._room.leave(self)


class Room:
    """`reserved` seats are for this machine alone, so that its owner gets in whatever comes over the network; one
    address elsewhere has at most `most_of_one`."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most or most_connections()
        self.reserved = self.most // 8
        self.most_of_one = self.most // 4
        self.waiting: dict[ConnectionSeat, None] = {}  # the one that waits longest first
        self._seats: set[ConnectionSeat] = set()
        self._by_address: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def enter(self, address: str) -> ConnectionSeat | None:
        """None when there is no room."""
        here = is_this_machine(address)
        if not here and self._by_address.get(address, 0) >= self.most_of_one and not self.make_room(address):
            return None
        if len(self._seats) >= (self.most if here else self.most - self.reserved) and not self.make_room():
            return None
        seat = ConnectionSeat(self, address)
        self._seats.add(seat)
        self._by_address[address] = self._by_address.get(address, 0) + 1
        seat.waits()
        return seat

    def make_room(self, address: str = "") -> bool:
        """Whether somebody (at that address) waited for nothing and is gone now."""
        for seat in self.waiting:
            if not address or seat.address == address:
                break
        else:
            return False
        self.leave(seat)
        seat.drop()
        return True

    def leave(self, seat: ConnectionSeat) -> None:
        self.waiting.pop(seat, None)
        if seat not in self._seats:
            return
        self._seats.discard(seat)
        left = self._by_address[seat.address] - 1
        if left:
            self._by_address[seat.address] = left
        else:
            del self._by_address[seat.address]


def is_this_machine(address: str) -> bool:
    return address.startswith(("127.", "::ffff:127.")) or address in ("", "::1")


class Acceptor:
    """Accepts on one socket, in place of the event loop: it knows no limits, and waits a minute for a handshake."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[ConnectionSeat], asyncio.Protocol],
        room: Room,
        context: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._room = room
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._spare = _spare_descriptor()
        self._pause: asyncio.TimerHandle | None = None
        self._told = -TOLD_EVERY_S
        listener.setblocking(False)
        self._loop.add_reader(listener, self._accept)

    def _accept(self) -> None:
        for _ in range(BATCH):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in OUT_OF_ROOM:
                    self._out_of_descriptors(error)
                    return
                continue  # the client was gone before we came to it
            self._welcome(accepted, str(address[0]) if isinstance(address, tuple) else "")

    def _welcome(self, accepted: socket.socket, address: str) -> None:
        seat = self._room.enter(address)
        if seat is None:
            self._tell("no room for another connection: all %d are in use", len(self._room))
            accepted.close()
            return
        accepted.setblocking(False)
        with contextlib.suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._open(accepted, seat))
        seat.drop = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda ended: _given_up(accepted, seat) if ended.cancelled() else None)

    async def _open(self, accepted: socket.socket, seat: ConnectionSeat) -> None:
        limits = {"ssl": self._context, "ssl_handshake_timeout": HANDSHAKE_S} if self._context is not None else {}
        try:
            await self._loop.connect_accepted_socket(lambda: self._protocol(seat), accepted, **limits)  # type: ignore[arg-type]
        except (OSError, TimeoutError):  # no TLS, another's TLS, gone, or too slow
            _given_up(accepted, seat)

    def _out_of_descriptors(self, error: OSError) -> None:
        """Makes room, or takes one connection off the queue and lets it go, so that nobody waits for an answer that
        will not come. Then rests: the queue is not empty, and would be looked at without a pause."""
        self._tell("no descriptor for another connection (%s): those that wait are closed", error.strerror)
        made = sum(self._room.make_room() for _ in range(FREED))
        if not made and self._spare is not None:
            os.close(self._spare)
            with contextlib.suppress(OSError):
                self._listener.accept()[0].close()
            self._spare = _spare_descriptor()
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(SHORT_PAUSE_S if made else PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._pause = None
        if self._spare is None:
            self._spare = _spare_descriptor()
        self._loop.add_reader(self._listener, self._accept)

    def _tell(self, text: str, *details: object) -> None:
        if time.monotonic() - self._told >= TOLD_EVERY_S:
            self._told = time.monotonic()
            log.warning(text, *details)

    # -- as uvicorn's servers

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        else:
            self._loop.remove_reader(self._listener)
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _given_up(accepted: socket.socket, seat: ConnectionSeat) -> None:
    seat.leave()
    accepted.close()


def _spare_descriptor() -> int | None:
    """Given up when there is no other, to be able to accept at all."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
