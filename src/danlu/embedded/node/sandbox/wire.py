"""JSON lines, and file descriptors beside them, over a unix socket: how agent, spawner and shims talk.

Standard library only: the helpers that import this start for each container.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from typing import Any

Message = dict[str, Any]
MOST_FDS = 4
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
CHUNK = 65536


def send(to: socket.socket, message: Message, fds: list[int] | None = None) -> None:
    """Blocks for as long as the other side does not read; messages are small."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if fds:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = to.sendmsg([data], ancillary)
        data = data[sent:]
    if data:
        to.sendall(data)


def is_same_account(connection: socket.socket) -> bool:
    """Whether it is us, or root, at the other end. A folder closed to others is the first lock; this is the second."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # no way to ask here
    try:
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    except OSError:
        return False
    return CREDENTIALS.unpack(found)[1] in (0, os.geteuid())


class Reader:
    """Cuts what arrives on one socket into messages; descriptors that came along are handed out with `take_fds`."""

    def __init__(self, source: socket.socket) -> None:
        self.source = source
        self.ended = False
        self._rest = b""
        self._fds: list[int] = []

    def read(self) -> list[Message]:
        """What one receive brings. Sets `ended` at the end of the stream."""
        try:
            data, ancillary, _, _ = self.source.recvmsg(CHUNK, socket.CMSG_SPACE(MOST_FDS * 4), CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data, ancillary = b"", []
        for level, kind, raw in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(raw[: len(raw) - len(raw) % found.itemsize])
                self._fds += found
        if not data:
            self.ended = True
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [message for line in lines if line and isinstance(message := json.loads(line), dict)]

    def take_fds(self) -> list[int]:
        taken, self._fds = self._fds, []
        return taken

    def close(self) -> None:
        for fd in self.take_fds():
            os.close(fd)
        self.source.close()


CLOEXEC: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
