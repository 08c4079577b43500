"""Datagram sockets that may send to port 53 of an address, and hear from port 53, where nobody may bind that port.

Who connects a datagram socket can be led to the port that is meant (`lowports`), and never sees another. Who does not
(musl's resolver, dnspython) looks at where an answer comes from. For those the process' socket is replaced by one of a
network namespace of the container, in which a relay has port 53 and passes on what it gets:

    process' socket -> relay, port 53 | the container's namespace
                       relay's socket -> the port that is meant | the machine's

The relay is a child of the shim, begun when the first socket is asked for, and ends with it. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
from collections import OrderedDict
from typing import Any, NoReturn

from danlu.embedded.node.sandbox import kernel

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
REPLACE_FD, SET_FD = 0x40182103, 1  # an ioctl of seccomp notifications (Linux 5.9)
REPLACEMENT = struct.Struct("=QIIII")  # id of the notification, flags, our descriptor, theirs, its flags
MOST_CLIENTS = 64  # whose answers the relay knows where to send, in one container
MOST_KNOWN = 1024
MOST_DATAGRAM = 65536
ANSWER_SECONDS = 3.0
KEPT_OPTIONS = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)


class StandIns:
    """The shim's side."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._known: OrderedDict[int, None] = OrderedDict()  # inodes

    def has(self, copy: socket.socket) -> bool:
        return os.fstat(copy.fileno()).st_ino in self._known

    def replace(self, listener: int, id: int, process: tuple[int, int], copy: socket.socket, to: Any) -> None:
        """`process`: (its pid, the descriptor). `to`: (host, port, port that is meant). Raises OSError."""
        pid, fd = process
        with self._ask({"family": int(copy.family), "to": to}) as made:
            made.setblocking(copy.getblocking())
            for option in KEPT_OPTIONS:
                made.setsockopt(socket.SOL_SOCKET, option, copy.getsockopt(socket.SOL_SOCKET, option, 16))
            asked = REPLACEMENT.pack(id, SET_FD, made.fileno(), fd, _close_on_exec(pid, fd))
            fcntl.ioctl(listener, REPLACE_FD, asked)
            self._known[os.fstat(made.fileno()).st_ino] = None
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def _ask(self, wanted: dict[str, Any]) -> socket.socket:
        if self._channel is None:
            self._channel = _start_relay()
        try:
            self._channel.send(json.dumps(wanted).encode())
            said, fds, _, _ = socket.recv_fds(self._channel, 1024, 1)
        except OSError:
            self._channel.close()
            self._channel = None
            raise
        if not fds:
            raise OSError(int(said or b"5"), "no socket of the container's network")
        return socket.socket(fileno=fds[0])


def _close_on_exec(pid: int, fd: int) -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration), open(f"/proc/{pid}/fdinfo/{fd}") as file:
        flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
        return flags & os.O_CLOEXEC
    return 0


def _start_relay() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        _relay(theirs)
    theirs.close()
    ours.settimeout(ANSWER_SECONDS)
    return ours


# ---------------------------------------------------------------- the relay


def _relay(channel: socket.socket) -> NoReturn:
    try:
        kernel.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, 1 << 16)
        # Made before, they are the machine's; all that is made after belongs to the namespace.
        outside = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(MOST_CLIENTS)]
        kernel.check(kernel.libc().unshare(kernel.CLONE_NEWUSER | CLONE_NEWNET), "unshare")
        _raise_loopback()
        _Relay(channel, outside).run()
    finally:
        os._exit(0)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


class _Relay:
    def __init__(self, channel: socket.socket, outside: list[socket.socket]) -> None:
        self._channel = channel
        self._servers: dict[socket.socket, tuple[str, int]] = {}  # and where it really is
        self._at: dict[tuple[str, int], socket.socket] = {}
        # (server, client) -> the socket that asks for it; the one that has been quiet longest comes first
        self._clients: OrderedDict[tuple[socket.socket, Any], socket.socket] = OrderedDict()
        self._unused = outside

    def run(self) -> None:
        while True:
            asking = {one: key for key, one in self._clients.items()}
            for found in select.select([self._channel, *self._servers, *asking], [], [])[0]:
                if found is self._channel:
                    wanted = self._channel.recv(1024)
                    if not wanted:
                        return
                    self._make(json.loads(wanted))
                elif found in self._servers:
                    self._pass_on(found)
                else:
                    server, client = asking[found]
                    with contextlib.suppress(OSError):
                        server.sendto(found.recv(MOST_DATAGRAM), client)

    def _make(self, wanted: dict[str, Any]) -> None:
        host, port, meant = wanted["to"]
        try:
            if (host, port) not in self._at:
                server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                server.bind((host, port))
                self._at[(host, port)], self._servers[server] = server, (host, meant)
            with socket.socket(wanted["family"], socket.SOCK_DGRAM) as made:
                socket.send_fds(self._channel, [b"ok"], [made.fileno()])
        except OSError as error:
            self._channel.send(str(error.errno or 5).encode())

    def _pass_on(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            data, client = server.recvfrom(MOST_DATAGRAM)
            key = (server, client)
            one = self._clients.pop(key, None)
            if one is None:
                one = self._unused.pop() if self._unused else self._clients.popitem(last=False)[1]
            self._clients[key] = one
            one.connect(self._servers[server])  # again, too: what came for another client meanwhile is not this one's
            one.send(data)
