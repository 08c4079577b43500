"""Which socket of this machine answers at an address: asked of the kernel, which nobody can talk into a wrong answer.

Two sources, found by trying (`source`):

- `Netlink`: sock_diag. The kernel looks up the socket as it would for a packet (addresses, wildcards, dual stack,
  SO_REUSEPORT groups) and names it by a cookie that is never given twice. About 10 µs.
- `ProcNet`: /proc/net/tcp and udp, for kernels built without sock_diag. Sockets are named by their inode there.

Not thread-safe: belongs to the event loop's thread. A netlink request is answered before `send` returns, so it does
not block.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple, Protocol

Endpoint = tuple[str, int]
ANYBODY: Endpoint = ("", 0)

TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
ESTABLISHED, SYN_RECV, LISTEN = 1, 3, 10
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
NO_COOKIE = b"\xff" * 8
ALL_STATES = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
REQUEST = struct.Struct("=BBBxI")  # the head of struct inet_diag_req_v2; a sockid follows
PORTS = struct.Struct("!HH")
NUMBERS = struct.Struct("=IIIII")  # expires, rqueue, wqueue, uid, inode, behind the sockid of struct inet_diag_msg
SOCKID_AT, COOKIE_AT, NUMBERS_AT = HEADER.size + 4, HEADER.size + 44, HEADER.size + 52


class FoundSocket(NamedTuple):
    """One socket. `inode` is 0 while no process has it: a connection that waits to be accepted, or an orphan."""

    cookie: int
    inode: int
    state: int
    address: str = ""  # its own; only of `listeners`


class Source(Protocol):
    def receiver(self, at: Endpoint, protocol: int = TCP, peer: Endpoint = ANYBODY) -> FoundSocket | None:
        """The socket that a packet from `peer` to `at` would reach: the connection itself, else who listens."""

    def listeners(self, port: int) -> list[FoundSocket]:
        """All TCP sockets that listen on a port, whatever their address."""


@functools.cache
def source() -> Source | None:
    """The process has one, for good. None where the system cannot tell (macOS), or this process may not ask."""
    if not sys.platform.startswith("linux"):
        return None
    with socket.create_server(("127.0.0.1", 0)) as known:
        inode, at = os.fstat(known.fileno()).st_ino, known.getsockname()
        for make in (Netlink, ProcNet):
            try:
                made: Source = make()
                found = made.receiver(at)
            except OSError:
                continue
            if found is not None and found.inode == inode:
                return made
    return None


class Netlink:
    def __init__(self) -> None:
        self._fd = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG).detach()
        self._without_udp: ProcNet | None = None

    def receiver(self, at: Endpoint, protocol: int = TCP, peer: Endpoint = ANYBODY) -> FoundSocket | None:
        if protocol == UDP:
            if self._without_udp is not None:
                return self._without_udp.receiver(at, protocol, peer)
            at, peer = peer, at  # the kernel has them swapped there, "for historical reasons"
        family = socket.AF_INET6 if ":" in at[0] or ":" in peer[0] else socket.AF_INET
        id = _sockid(family, at, peer)
        self._send(family, protocol, ALL_STATES, id, NLM_F_REQUEST)
        answer = os.read(self._fd, 65536)
        kind = HEADER.unpack_from(answer)[1]
        if kind == SOCK_DIAG_BY_FAMILY:
            return _read(answer)
        number = -struct.unpack_from("=i", answer, HEADER.size)[0]
        if protocol == UDP and not self._knows_udp():
            self._without_udp = ProcNet()
            return self._without_udp.receiver(peer, protocol, at)
        if number not in (2, 0):  # ENOENT: no such socket
            raise OSError(number, f"sock_diag: {os.strerror(number)}")
        return None

    def listeners(self, port: int) -> list[FoundSocket]:
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            id = _sockid(family, ("", port), ANYBODY)
            self._send(family, TCP, 1 << LISTEN, id, NLM_F_REQUEST | NLM_F_DUMP)
            for message in self._messages():
                size = 4 if family == socket.AF_INET else 16
                address = str(ipaddress.ip_address(message[SOCKID_AT + 4 : SOCKID_AT + 4 + size]))
                found.append(_read(message)._replace(address=address))
        return found

    def _send(self, family: int, protocol: int, states: int, id: bytes, flags: int) -> None:
        body = REQUEST.pack(family, protocol, 0, states) + id
        os.write(self._fd, HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, flags, 1, 0) + body)

    def _messages(self) -> Iterator[bytes]:
        """Of one dump, to its end."""
        while True:
            data = os.read(self._fd, 1 << 17)
            while data:
                length, kind = HEADER.unpack_from(data)[:2]
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    return
                yield data[:length]
                data = data[(length + 3) & ~3 :]

    def _knows_udp(self) -> bool:
        """Whether the kernel has udp_diag: TCP's and UDP's are separate modules."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as known:
            known.bind(("127.0.0.1", 0))
            id = _sockid(socket.AF_INET, ANYBODY, known.getsockname())
            self._send(socket.AF_INET, UDP, ALL_STATES, id, NLM_F_REQUEST)
            return bool(HEADER.unpack_from(os.read(self._fd, 65536))[1] == SOCK_DIAG_BY_FAMILY)


def _sockid(family: int, at: Endpoint, peer: Endpoint) -> bytes:
    ends = b"".join(_packed(family, host).ljust(16, b"\0") for host, _ in (at, peer))
    return PORTS.pack(at[1], peer[1]) + ends + b"\0\0\0\0" + NO_COOKIE


def _packed(family: int, host: str) -> bytes:
    if not host:
        return bytes(4 if family == socket.AF_INET else 16)
    return socket.inet_pton(family, host)


def _read(message: bytes) -> FoundSocket:
    inode = NUMBERS.unpack_from(message, NUMBERS_AT)[4]
    return FoundSocket(int.from_bytes(message[COOKIE_AT : COOKIE_AT + 8], "little"), inode, message[HEADER.size + 1])


class ProcNet:
    """Reads every socket of the machine for each answer: right, and slower the more there are."""

    def receiver(self, at: Endpoint, protocol: int = TCP, peer: Endpoint = ANYBODY) -> FoundSocket | None:
        host, port = _comparable(at[0]), at[1]
        other = (_comparable(peer[0]), peer[1]) if peer[0] else None
        best: tuple[int, FoundSocket] | None = None
        for local, remote, state, inode in _table("tcp" if protocol == TCP else "udp", port):
            if local == host and other is not None and remote == other:
                return FoundSocket(inode, inode, state)
            waits = state == LISTEN if protocol == TCP else remote[1] == 0
            rank = 2 if local == host else 1 if _covers(local, host) else 0
            if waits and rank and (best is None or rank > best[0]):
                best = rank, FoundSocket(inode, inode, state)
        return best[1] if best is not None else None

    def listeners(self, port: int) -> list[FoundSocket]:
        found = _table("tcp", port)
        return [FoundSocket(inode, inode, state, str(local)) for local, _, state, inode in found if state == LISTEN]


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Row = tuple[Address, tuple[Address, int], int, int]


def _table(name: str, port: int) -> Iterator[Row]:
    """(own address, (peer, its port), state, inode) of the sockets with this port of their own."""
    for file in (f"/proc/net/{name}", f"/proc/net/{name}6"):
        try:
            with open(file) as table:
                lines = table.read().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            words = line.split()
            local, own_port = _decode(words[1])
            if own_port == port:
                yield local, _decode(words[2]), int(words[3], 16), int(words[9])


def _decode(text: str) -> tuple[Address, int]:
    """Each 32-bit word of an address is written in the machine's own order."""
    address, _, port = text.partition(":")
    words = (int(address[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(address), 8))
    return _plain(ipaddress.ip_address(b"".join(words))), int(port, 16)


def _comparable(host: str) -> Address:
    return _plain(ipaddress.ip_address(host))


def _plain(address: Address) -> Address:
    """An IPv4 address, also when it is written as one of IPv6; but `::` stays, for it may cover both."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _covers(local: Address, host: Address) -> bool:
    return local.is_unspecified and (local.version == host.version or local.version == 6)


def covers(listening_on: str, host: str) -> bool:
    """Whether a socket with this address of its own may be reached at `host`."""
    local, at = _comparable(listening_on), _comparable(host)
    return local == at or _covers(local, at)
