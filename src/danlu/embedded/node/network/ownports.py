"""A pod's sockets stay its own: what it may bind, where it listens, what its localhost is. Without a network namespace.

The shim gets to see `bind`, `listen` and `connect` of its container's processes (a seccomp filter that notifies) and
does them itself, on a copy of the process' socket:

- 0.0.0.0 and :: of a TCP server mean the pod's own address: pods do not take ports from each other, and none catches
  what is sent to addresses that nobody has bound.
- Addresses of other pods and of services, and what Danlu itself listens on, are refused. This holds while `danlu up`
  is down, too: the shim lives as long as its container.
- localhost leads to the pod's own servers, also those of its other containers; else to the machine's.

What may be relied on: `listen` is never left to the process, and looks at the very socket that will listen, so no
race between threads gets a TCP server to an address that is not the pod's. A datagram socket has no such moment: there
`bind` decides, and a race with another thread's descriptors can win; services verify who receives (`podsockets`).
io_uring would pass all this by, and is said not to exist; 32-bit programs cannot become servers.

Standard library only; runs in the shim, between fork and exec, and never in a process with threads.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import ipaddress
import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple, TypedDict

from danlu.embedded.node.network import sockdiag
from danlu.embedded.node.sandbox import kernel, procfs, seccomp
from danlu.embedded.node.sandbox.seccomp import (
    ALLOW,
    AT_ARCH,
    AT_FIRST_ARGUMENT,
    AT_NUMBER,
    ERROR,
    JUMP_AT_LEAST,
    JUMP_EQUAL,
    LOAD,
    RETURN,
    X32,
    Instruction,
)


class Ports(TypedDict):
    """A part of the container's spec.json."""

    address: str  # the pod's own; "" where it has the machine's network
    networks: list[str]  # of pods and services: each address there is somebody's
    reserved: str  # a file: [[address, first port, last port], …] of Danlu's own


class Machine(NamedTuple):
    """Numbers of one kind of processor; `other` are those of its 32-bit programs."""

    arch: int
    bind: int
    listen: int
    connect: int
    other_arch: int
    other_bind: int
    other_listen: int


MACHINES = {
    "x86_64": Machine(0xC000003E, 49, 50, 42, 0x40000003, 361, 363),
    "aarch64": Machine(0xC00000B7, 200, 201, 203, 0x40000028, 282, 284),
}
IO_URING_SETUP = 425
SOCKETCALL, SOCKETCALL_BIND, SOCKETCALL_LISTEN = 102, 2, 4
NOTIFY = 0x7FC00000
NEW_LISTENER, WAIT_KILLABLE = 1 << 3, 1 << 5

RECEIVE, SEND = 0xC0502100, 0xC0182101  # ioctls
NOTIFICATION = struct.Struct("=QIIiIQ6Q")  # id, pid, flags; number, arch, instruction pointer, arguments
ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
LET_IT = 1  # the kernel goes on with the call itself
MOST_ADDRESS = 128
PROBE_SECONDS = 5.0


# ---------------------------------------------------------------- the filter


def install(trap_connect: bool) -> int:
    """In the process that is to be watched, while it still has CAP_SYS_ADMIN in its user namespace. Returns the
    descriptor of its notifications, for the shim."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        raise OSError(errno.ENOSYS, f"system calls are not known on {os.uname().machine}")
    # Linux 5.19: a signal does not break off a call that the shim has begun to do.
    return seccomp.load(
        seccomp.assemble(_instructions(machine, trap_connect)), NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER
    )


def _instructions(machine: Machine, trap_connect: bool) -> list[Instruction]:
    watched = [machine.bind, machine.listen, *([machine.connect] if trap_connect else [])]
    found: list[Instruction] = [
        ("", LOAD, AT_ARCH, "", ""),
        ("", JUMP_EQUAL, machine.arch, "own", "other"),
        ("own", LOAD, AT_NUMBER, "", ""),
        ("", JUMP_EQUAL, IO_URING_SETUP, "missing", ""),
        ("", JUMP_AT_LEAST, X32, "missing", ""),  # x86-64's second set of calls; elsewhere there are no such numbers
        *(("", JUMP_EQUAL, number, "notify", "") for number in watched),
        ("", RETURN, ALLOW, "", ""),
        ("other", JUMP_EQUAL, machine.other_arch, "", "missing"),
        ("", LOAD, AT_NUMBER, "", ""),
        ("", JUMP_EQUAL, IO_URING_SETUP, "missing", ""),
        ("", JUMP_EQUAL, machine.other_bind, "denied", ""),
        ("", JUMP_EQUAL, machine.other_listen, "denied", ""),
        ("", JUMP_EQUAL, SOCKETCALL, "", "allow"),
        ("", LOAD, AT_FIRST_ARGUMENT, "", ""),
        ("", JUMP_EQUAL, SOCKETCALL_BIND, "denied", ""),
        ("", JUMP_EQUAL, SOCKETCALL_LISTEN, "denied", ""),
        ("allow", RETURN, ALLOW, "", ""),
        ("notify", RETURN, NOTIFY, "", ""),
        ("missing", RETURN, ERROR | errno.ENOSYS, "", ""),
        ("denied", RETURN, ERROR | errno.EACCES, "", ""),
    ]
    return found


# ---------------------------------------------------------------- the shim's side


class _Refused(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


class _Answered(Exception):
    """By somebody else."""


class Supervisor:
    """Answers for one container. `refused` is told (address, port) of what was not the pod's to have."""

    def __init__(self, ports: Ports, refused: Callable[[str, int], None] = lambda address, port: None) -> None:
        self._own = ports["address"]
        self._networks = [ipaddress.ip_network(network) for network in ports["networks"]]
        self._reserved = ports["reserved"]
        self._refused = refused
        self._machine = MACHINES[os.uname().machine]

    @property
    def traps_connect(self) -> bool:
        return bool(self._own)

    def serve(self, listener: int) -> bool:
        """One notification, if there is one. False when all who could send any are gone."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        events = poll.poll(0)
        if not events:
            return True
        if not events[0][1] & select.POLLIN:
            return False
        buffer = array.array("B", bytes(NOTIFICATION.size))
        try:
            fcntl.ioctl(listener, RECEIVE, buffer, True)
        except OSError:
            return True  # who asked has been killed meanwhile
        id, thread, _, number, _, _, *arguments = NOTIFICATION.unpack(buffer.tobytes())
        self._answer(listener, id, thread, number, arguments)
        return True

    def _answer(self, listener: int, id: int, thread: int, number: int, arguments: list[int]) -> None:
        error, flags = 0, 0
        try:
            if number == self._machine.connect:
                address = _read(thread, arguments[1], arguments[2])
                host, port = _parse(address)
                if host is None or not _is_localhost(host) or not self._listens(port):
                    flags = LET_IT
                else:
                    with socket.socket(fileno=_take(thread, arguments[0])) as copy:
                        flags = self._connect(copy, address, lambda error: _send(listener, id, error))
            else:
                with socket.socket(fileno=_take(thread, arguments[0])) as copy:
                    if number == self._machine.listen:
                        self._listen(copy, ctypes.c_int(arguments[1] & 0xFFFFFFFF).value)
                    elif copy.family not in (socket.AF_INET, socket.AF_INET6):
                        flags = LET_IT
                    else:
                        self._bind(copy, _read(thread, arguments[1], arguments[2]))
        except _Answered:
            return
        except _Refused as refused:
            error = refused.number
        except OSError as problem:
            error = problem.errno or errno.EACCES
        _send(listener, id, error, flags)

    # -- the three calls

    def _bind(self, copy: socket.socket, address: bytes) -> None:
        host, port = _parse(address)
        if host is not None:
            self._require(host, port, errno.EADDRNOTAVAIL)
            # With port 0 it may as well be a client that wants to go out: that one keeps its choice of address.
            if self._own and port and host.is_unspecified and copy.type == socket.SOCK_STREAM:
                address = self._at_home(copy, address)
        _call("bind", copy, address)

    def _listen(self, copy: socket.socket, backlog: int) -> None:
        if copy.family in (socket.AF_INET, socket.AF_INET6):
            name, port = copy.getsockname()[:2]
            host = _plain(ipaddress.ip_address(name.partition("%")[0]))
            self._require(host, port, errno.EADDRINUSE)
            only_ipv6 = host.version == 6 and copy.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            if self._own and host.is_unspecified and not only_ipv6 and port and not _is_ephemeral(port):
                raise _Refused(errno.EADDRINUSE)  # `bind` would have brought it home
        if kernel.libc().listen(copy.fileno(), backlog) != 0:
            raise OSError(ctypes.get_errno(), "listen")

    def _connect(self, copy: socket.socket, address: bytes, answer: Callable[[int], None]) -> int:
        """To the pod's own address in place of localhost; LET_IT where the socket cannot go there.

        A socket that blocks is waited for by a process of its own, which also answers: the shim has others to serve.
        """
        if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
            return LET_IT
        home = self._at_home(copy, address)
        if home == address:
            return LET_IT
        if not copy.getblocking():
            _call("connect", copy, home)
            return 0
        if os.fork() == 0:
            try:
                _call("connect", copy, home)
                answer(0)
            except OSError as problem:
                answer(problem.errno or errno.ECONNREFUSED)
            finally:
                os._exit(0)
        raise _Answered

    def _listens(self, port: int) -> bool:
        """Whether a server of the pod has this port; in whichever of its containers."""
        source = sockdiag.source()
        return source is not None and source.receiver((self._own, port)) is not None

    def _at_home(self, copy: socket.socket, address: bytes) -> bytes:
        """The same port of the pod's own address, as far as the socket can have it."""
        own = socket.inet_aton(self._own)
        if copy.family == socket.AF_INET:
            return address[:4] + own + address[8:]
        if copy.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
            return address
        return address[:8] + b"\0" * 10 + b"\xff\xff" + own + address[24:]

    # -- whose it is

    def _require(self, host: sockdiag.Address, port: int, error: int) -> None:
        if str(host) == self._own or not host.is_loopback:
            return
        if any(host in network for network in self._networks):
            self._refused(str(host), port)
            raise _Refused(error)
        if port and self._is_reserved(host, port):
            self._refused(str(host), port)
            raise _Refused(errno.EADDRINUSE)

    def _is_reserved(self, host: sockdiag.Address, port: int) -> bool:
        try:
            with open(self._reserved) as file:
                entries = json.load(file)
        except (OSError, ValueError):
            return False
        return any(address == str(host) and first <= port <= last for address, first, last in entries)


def _take(thread: int, fd: int) -> int:
    try:
        return kernel.take_fd(thread, fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ESRCH):
            raise
    return kernel.take_fd(procfs.process_of(thread), fd)  # before Linux 6.9 only a process can be asked, not a thread


def _read(thread: int, at: int, length: int) -> bytes:
    if not 0 < length <= MOST_ADDRESS:
        raise OSError(errno.EINVAL, "length of an address")
    try:
        with open(f"/proc/{thread}/mem", "rb", 0) as memory:
            memory.seek(at)
            return memory.read(length)
    except (OSError, OverflowError) as error:
        raise OSError(errno.EFAULT, "an address cannot be read") from error


def _parse(address: bytes) -> tuple[sockdiag.Address | None, int]:
    """None for what the kernel is to judge: too short, or of another family."""
    family = int.from_bytes(address[:2], "little") if len(address) >= 2 else 0
    port = int.from_bytes(address[2:4], "big")
    if family in (socket.AF_INET, socket.AF_UNSPEC) and len(address) >= 16:
        return ipaddress.IPv4Address(address[4:8]), port
    if family == socket.AF_INET6 and len(address) >= 24:
        return _plain(ipaddress.IPv6Address(address[8:24])), port
    return None, 0


def _plain(address: sockdiag.Address) -> sockdiag.Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def _is_localhost(host: sockdiag.Address) -> bool:
    return host.is_unspecified or str(host) in ("127.0.0.1", "::1")


def _is_ephemeral(port: int) -> bool:
    """Whether the kernel may have chosen it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        first, last = map(int, file.read().split())
    return first <= port <= last


def _call(name: str, copy: socket.socket, address: bytes) -> None:
    if getattr(kernel.libc(), name)(copy.fileno(), address, len(address)) != 0:
        raise OSError(ctypes.get_errno(), name)


def _send(listener: int, id: int, error: int, flags: int = 0) -> None:
    with contextlib.suppress(OSError):  # who asked has been killed meanwhile
        fcntl.ioctl(listener, SEND, array.array("B", ANSWER.pack(id, 0, -error, flags)), True)


# ---------------------------------------------------------------- whether it can be had


def probe(fork: Callable[[], int], enter: Callable[[], None]) -> str:
    """ "" when a process that has gone through `fork` and `enter` can be watched from here, else why not."""
    ours, theirs = socket.socketpair()
    child = fork()
    if child == 0:
        _be_probed(theirs, enter)
    theirs.close()
    ours.settimeout(PROBE_SECONDS)
    try:
        said, fds, _, _ = socket.recv_fds(ours, 4096, 1)
        if not fds:
            return said.decode() or "a process that was to be watched ended"
        supervisor = Supervisor({"address": "127.0.0.1", "networks": [], "reserved": ""})
        ends = time.monotonic() + PROBE_SECONDS
        while supervisor.serve(fds[0]) and time.monotonic() < ends:
            if select.select([ours], [], [], 0.005)[0]:
                break
        os.close(fds[0])
        said = ours.recv(4096)
        return "" if said == b"ok" else said.decode() or "a process that was to be watched ended"
    except OSError as error:
        return error.strerror or str(error)
    finally:
        ours.close()
        with contextlib.suppress(OSError):
            os.kill(child, 9)
            os.waitpid(child, 0)


def _be_probed(channel: socket.socket, enter: Callable[[], None]) -> None:
    try:
        enter()
        fd = install(trap_connect=True)
        socket.send_fds(channel, [b"fd"], [fd])
        os.close(fd)
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
        channel.sendall(b"ok")
    except BaseException as error:  # whatever it is, it is the answer
        with contextlib.suppress(OSError):
            channel.sendall((getattr(error, "strerror", "") or str(error) or type(error).__name__).encode())
    finally:
        os._exit(0)
