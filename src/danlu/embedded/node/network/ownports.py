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
from typing import NamedTuple, NotRequired, TypedDict

from danlu.embedded.node.network import lowports, portfilter, sockdiag
from danlu.embedded.node.network.portfilter import MACHINES
from danlu.embedded.node.network.standins import StandIns
from danlu.embedded.node.sandbox import kernel, procfs


class Ports(TypedDict):
    """A part of the container's spec.json."""

    address: str  # the pod's own; "" where it has the machine's network
    networks: list[str]  # of pods and services: each address there is somebody's
    first_free: NotRequired[int]  # ports before this one cannot be bound here: see `lowports`
    reserved: str  # a file: [[address, first port, last port], …] of Danlu's own


LOCAL = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
LOCALHOSTS = (ipaddress.IPv4Network("127.32.0.0/11"), ipaddress.IPv4Network("127.128.0.0/11"))


class Home(NamedTuple):
    """The addresses of one pod. The last two stand for its 127.0.0.1 and, since the machine has one ::1 for all, for
    what only IPv6 reaches: they lie as far from the first as `LOCALHOSTS` do from the network of pods."""

    own: ipaddress.IPv4Address
    localhost: ipaddress.IPv4Address
    localhost6: ipaddress.IPv4Address

    @classmethod
    def of(cls, address: str) -> Home | None:
        """None where it has those of the machine."""
        try:
            own = ipaddress.IPv4Address(address)
        except ValueError:
            return None
        if own == LOCAL[0]:
            return None
        below = int(own) & int(LOCALHOSTS[0].hostmask)
        first, second = (network.network_address + below for network in LOCALHOSTS)
        return cls(own, first, second)

    def of_server(self, host: sockdiag.Address, only_ipv6: bool) -> ipaddress.IPv4Address:
        if host.version == 6 and (only_ipv6 or not host.is_unspecified):
            return self.localhost6
        return self.own if host.is_unspecified else self.localhost

    def of_client(self, host: sockdiag.Address) -> tuple[ipaddress.IPv4Address, ...]:
        """Where localhost may be, in the order in which it is looked for."""
        return (self.localhost6 if host.version == 6 else self.localhost, self.own)


RECEIVE, SEND = 0xC0502100, 0xC0182101  # ioctls
NOTIFICATION = struct.Struct("=QIIiIQ6Q")  # id, pid, flags; number, arch, instruction pointer, arguments
ANSWER = struct.Struct("=QqiI")  # id, value, error, flags
LET_IT = 1  # the kernel goes on with the call itself
MOST_ADDRESS, MOST_DATAGRAM = 128, 65536
KINDS = {socket.SOCK_STREAM: sockdiag.TCP, socket.SOCK_DGRAM: sockdiag.UDP}
TIME = struct.Struct("@ll")  # struct timeval
AT_ONCE_US = 10_000  # so long the shim itself waits for a connection within this machine
PROBE_SECONDS = 5.0


# ---------------------------------------------------------------- the shim's side


class _Refused(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


class _Answered(Exception):
    """By somebody else."""


class _Call(NamedTuple):
    """What a thread of the container has asked of the kernel."""

    thread: int
    number: int
    arguments: list[int]


class _Done(Exception):
    """The call has been made for the process, and this is its value."""

    def __init__(self, value: int) -> None:
        self.value = value


class Supervisor:
    """Answers for one container. `refused` is told (address, port) of what was not the pod's to have."""

    def __init__(self, ports: Ports, refused: Callable[[str, int], None] = lambda address, port: None) -> None:
        self._home = Home.of(ports["address"])
        self._networks = [ipaddress.ip_network(network) for network in ports["networks"]]
        self._first_free = ports.get("first_free", 0)
        self._reserved = ports["reserved"]
        self._refused = refused
        self._machine = MACHINES[os.uname().machine]
        self._stand_ins = StandIns()

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
        self._answer(listener, id, _Call(thread, number, arguments))
        return True

    def _answer(self, listener: int, id: int, call: _Call) -> None:
        value, error, flags = 0, 0, 0
        try:
            if call.number in (self._machine.connect, self._machine.sendto):
                flags = self._reach(listener, id, call)
            else:
                with socket.socket(fileno=_take(call.thread, call.arguments[0])) as copy:
                    if call.number == self._machine.listen:
                        self._listen(copy, ctypes.c_int(call.arguments[1] & 0xFFFFFFFF).value)
                    elif copy.family not in (socket.AF_INET, socket.AF_INET6):
                        flags = LET_IT
                    else:
                        self._bind(copy, _read(call.thread, call.arguments[1], call.arguments[2]))
        except _Answered:
            return
        except _Done as done:
            value = done.value
        except _Refused as refused:
            error = refused.number
        except OSError as problem:
            error = problem.errno or errno.EACCES
        _send(listener, id, error, flags, value)

    # -- servers

    def _bind(self, copy: socket.socket, address: bytes) -> None:
        host, port = _parse(address)
        if host is not None:
            self._require(host, port, errno.EADDRNOTAVAIL)
            # With port 0 it may as well be a client that wants to go out: that one keeps its choice of address,
            # and `listen` tells who is a server.
            if self._home is not None and port and _is_local(host):
                address = _address(copy, self._home.of_server(host, _only_ipv6(copy)), self._meant(port))
            elif self._home is not None and port and host in self._home:
                address = _address(copy, host, self._meant(port))
        _call("bind", copy, address)

    def _listen(self, copy: socket.socket, backlog: int) -> None:
        if copy.family in (socket.AF_INET, socket.AF_INET6):
            name, port = copy.getsockname()[:2]
            host = _plain(ipaddress.ip_address(name.partition("%")[0]))
            self._require(host, port, errno.EADDRINUSE)
            if self._home is not None and _is_local(host):
                self._bring_home(copy, host, port)
        if kernel.libc().listen(copy.fileno(), backlog) != 0:
            raise OSError(ctypes.get_errno(), "listen")

    def _bring_home(self, copy: socket.socket, host: sockdiag.Address, port: int) -> None:
        """A server whose port the kernel has chosen (0, or never bound) gets the same port of the pod's own address.

        A socket that has listened can be disconnected, which gives such a port back. One that was bound to a port by
        its number keeps that: it came past `bind`, in a race, and is refused.
        """
        assert self._home is not None
        home = self._home.of_server(host, _only_ipv6(copy))
        if kernel.libc().listen(copy.fileno(), 1) != 0:
            raise OSError(ctypes.get_errno(), "listen")
        port = port or int(copy.getsockname()[1])
        _call("connect", copy, bytes(16))  # AF_UNSPEC: disconnect
        try:
            _call("bind", copy, _address(copy, home, port))
        except OSError as problem:
            raise _Refused(errno.EADDRINUSE) from problem

    # -- clients

    def _reach(self, listener: int, id: int, call: _Call) -> int:
        """connect, and sendto with a destination: LET_IT, or done by us where it must lead elsewhere than it says."""
        connects = call.number == self._machine.connect
        place, length = (1, 2) if connects else (4, 5)
        address = _read(call.thread, call.arguments[place], call.arguments[length])
        host, port = _parse(address)
        if host is None or not port or not self._may_differ(host, port):
            return LET_IT
        with socket.socket(fileno=_take(call.thread, call.arguments[0])) as copy:
            kind = copy.type
            if copy.family not in (socket.AF_INET, socket.AF_INET6) or kind not in KINDS:
                return LET_IT
            meant = self._leads_to(host, port, KINDS[kind])
            if meant is None:
                return LET_IT
            if _only_ipv6(copy):
                return LET_IT
            address = _address(copy, *meant)
            if connects:
                self._connect(copy, address, lambda error: _send(listener, id, error))
                return 0
            if kind != socket.SOCK_DGRAM:
                return LET_IT
            if meant == (host, self._meant(port)) != (host, port):
                return self._send_as_said(listener, id, call, copy, (str(host), port, meant[1]))
            size = min(call.arguments[2], MOST_DATAGRAM)
            data = _read_memory(call.thread, call.arguments[1], size) if size else b""
            raise _Done(_send_to(copy, data, call.arguments[3], address))

    def _send_as_said(self, listener: int, id: int, call: _Call, copy: socket.socket, to: tuple[str, int, int]) -> int:
        """From a socket that hears from the port that was said, not from the one that is meant: see `standins`."""
        if not self._stand_ins.has(copy):
            process = procfs.process_of(call.thread)
            self._stand_ins.replace(listener, id, (process, call.arguments[0]), copy, to)
        return LET_IT

    def _may_differ(self, host: sockdiag.Address, port: int) -> bool:
        """A first look, before the socket is taken: most connections go where they say."""
        if not host.is_loopback and not host.is_unspecified:
            return False
        return self._home is not None or self._meant(port) != port

    def _leads_to(self, host: sockdiag.Address, port: int, protocol: int) -> tuple[sockdiag.Address, int] | None:
        """Where it really is; None where it is just there. Raises _Refused for the localhost of another pod."""
        meant = self._meant(port)
        if self._home is not None and _is_local(host):
            for home in self._home.of_client(host):
                if _listens(home, meant, protocol):
                    return home, meant
            return None
        if any(host in network for network in LOCALHOSTS) and (self._home is None or host not in self._home):
            raise _Refused(errno.ECONNREFUSED)
        is_somebodys = any(host in network for network in self._networks)
        return (host, meant) if is_somebodys and meant != port else None

    def _connect(self, copy: socket.socket, address: bytes, answer: Callable[[int], None]) -> None:
        """On this machine it takes no time, unless the server has too much to do. A process that wants to wait for
        that is answered by one of its own: the shim has others to serve."""
        if copy.type == socket.SOCK_DGRAM or not copy.getblocking():
            _call("connect", copy, address)
            return
        before = copy.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, TIME.size)
        copy.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, TIME.pack(0, AT_ONCE_US))
        try:
            _call("connect", copy, address)
        except OSError as problem:
            if problem.errno not in (errno.EINPROGRESS, errno.EAGAIN):
                raise
        else:
            return
        finally:
            copy.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, before)
        if os.fork() == 0:
            try:
                _call("connect", copy, address)
                answer(0)
            except OSError as problem:
                answer(problem.errno or errno.ECONNREFUSED)
            finally:
                os._exit(0)
        raise _Answered

    def _meant(self, port: int) -> int:
        return lowports.meant(port, self._first_free)

    # -- whose it is

    def _require(self, host: sockdiag.Address, port: int, error: int) -> None:
        if not host.is_loopback or (self._home is not None and host in self._home):
            return
        if any(host in network for network in (*self._networks, *LOCALHOSTS)):
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
    return _read_memory(thread, at, length)


def _read_memory(thread: int, at: int, length: int) -> bytes:
    try:
        with open(f"/proc/{thread}/mem", "rb", 0) as memory:
            memory.seek(at)
            return memory.read(length)
    except (OSError, OverflowError) as error:
        raise OSError(errno.EFAULT, "memory of the process cannot be read") from error


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


def _is_local(host: sockdiag.Address) -> bool:
    """Names no address of anybody: all of them, or the one that every machine has."""
    return host.is_unspecified or host in LOCAL


def _only_ipv6(copy: socket.socket) -> bool:
    return copy.family == socket.AF_INET6 and bool(copy.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))


def _address(copy: socket.socket, host: sockdiag.Address, port: int) -> bytes:
    """struct sockaddr; an IPv6 socket has IPv4 addresses as mapped ones, unless it was told not to."""
    if copy.family == socket.AF_INET:
        return struct.pack("=H", socket.AF_INET) + port.to_bytes(2, "big") + host.packed + bytes(8)
    if _only_ipv6(copy):
        copy.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    mapped = bytes(10) + b"\xff\xff" + host.packed
    return struct.pack("=H", socket.AF_INET6) + port.to_bytes(2, "big") + bytes(4) + mapped + bytes(4)


def _listens(host: sockdiag.Address, port: int, protocol: int) -> bool:
    """Whether a server of the pod has this port; in whichever of its containers."""
    source = sockdiag.source()
    return source is not None and source.receiver((str(host), port), protocol) is not None


def _send_to(copy: socket.socket, data: bytes, flags: int, address: bytes) -> int:
    sent = int(kernel.libc().sendto(copy.fileno(), data, len(data), flags | socket.MSG_DONTWAIT, address, len(address)))
    if sent < 0:
        raise OSError(ctypes.get_errno(), "sendto")
    return sent


def _call(name: str, copy: socket.socket, address: bytes) -> None:
    if getattr(kernel.libc(), name)(copy.fileno(), address, len(address)) != 0:
        raise OSError(ctypes.get_errno(), name)


def _send(listener: int, id: int, error: int, flags: int = 0, value: int = 0) -> None:
    with contextlib.suppress(OSError):  # who asked has been killed meanwhile
        fcntl.ioctl(listener, SEND, array.array("B", ANSWER.pack(id, value, -error, flags)), True)


# ---------------------------------------------------------------- whether it can be had


def watches_clients(ports: Ports) -> bool:
    """Whether it matters where the container connects and sends to."""
    return bool(ports["address"]) or ports.get("first_free", 0) > 0


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
        fd = portfilter.install(clients=True)
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
