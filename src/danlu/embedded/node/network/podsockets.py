"""Connections to pods, each verified before a byte is sent: that a socket answers does not say whose it is.

Pods share the loopback of the machine, so any process may bind the address that a pod had, or has not bound yet. The
kernel says which socket answers (`sockdiag`) and which processes hold it (/proc/PID/fd); a process belongs to a pod
when it descends from one of the pod's shims, which reap their orphans: no process can leave that tree, whatever it
forks, renames or writes into its environment.

The order of the steps matters:

1. Before connecting: who listens must be held by the pod. Who has been seen to be is remembered by the socket's cookie.
2. Connect.
3. The same socket still listens, and no other could have shared its address meanwhile (`exclusive`: without
   SO_REUSEPORT the kernel lets nobody): then it was the one that was reached.
4. Else the connection itself is looked at: who accepted it must be of the pod, or, while it waits to be accepted, all
   who listen there.

So a usual connection costs two questions to the kernel, about 20 µs each.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from danlu.diagnose import stated
from danlu.embedded.node.network import lowports, sockdiag
from danlu.embedded.node.network.podaddresses import Addresses
from danlu.embedded.node.sandbox import kernel, procfs
from danlu.embedded.node.sandbox.processes import Containers, Spawner
from danlu.meta.kind import Object

REASON = "AddressTaken"  # of the event that says so
ADOPTION_SECONDS = 5.0  # after a restart, until the node has found the pod's processes again
ACCEPT_SECONDS = 5.0  # for a connection to be accepted, where only that can tell whose it is
MOST_KNOWN = 4096
MOST_GENERATIONS = 1000
SO_REUSEPORT = getattr(socket, "SO_REUSEPORT", 15)


class ForeignSocket(ConnectionRefusedError):
    """Something else than the pod answers at its address. The message is for people; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.ECONNREFUSED, "connection refused")
        self.message = message


@dataclass(frozen=True, slots=True)
class _Known:
    pod_uid: str
    exclusive: bool  # no other socket can be reached at the same address


class PodSockets:
    """`connect` is the only way to a pod for whatever carries somebody's bytes: services, proxies, probes."""

    def __init__(self, containers: Containers, addresses: Addresses) -> None:
        self.containers = containers
        self.addresses = addresses
        self._source = sockdiag.source()
        # Ports before it are bound as others, which the shims know (`lowports`); 0 where nobody would lead there.
        self.first_free = 0
        self._known: OrderedDict[int, _Known] = OrderedDict()  # by cookie
        # Set by the node's agent: the object of a pod, and where events about it go (pod uid, reason, message).
        self.pod_of: Callable[[str], Object | None] = lambda pod_uid: None
        self.report: Callable[[str, str, str], None] = lambda pod_uid, reason, message: None

    @classmethod
    def of(cls, data_dir: Path, pod_network: str) -> PodSockets:
        """For a machine whose containers nobody knows yet."""
        return cls(Containers(data_dir, Spawner()), Addresses(pod_network, data_dir))

    def meant(self, port: int) -> int:
        """The port that a pod or a service really has where it is called this."""
        return lowports.meant(port, self.first_free)

    @property
    def verifies(self) -> bool:
        """False where the system cannot tell whose a socket is."""
        return self._source is not None

    async def connect(self, hosts: Sequence[str], port: int, pod_uid: str = "") -> socket.socket:
        """To the first of the pod's addresses that answers. Raises OSError; ForeignSocket is told in an event, too.

        Without `pod_uid` an address of the pod network means the pod that has it; other addresses are no pod's.
        """
        problem: OSError = ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        for number, host in enumerate(hosts):
            try:
                return await self._connect(host, port, pod_uid)
            except OSError as error:
                if number == 0 or isinstance(error, ForeignSocket):
                    problem = error
        if isinstance(problem, ForeignSocket):
            self._tell(pod_uid or self.addresses.owner(hosts[0]), problem)
        raise problem

    async def _connect(self, host: str, port: int, pod_uid: str) -> socket.socket:
        source = self._source
        if source is None or (not pod_uid and not self.addresses.covers(host)):
            return await _open(host, port)
        port = self.meant(port)
        owner = pod_uid or self.addresses.owner(host)
        if not owner:  # an address of the pod network that no pod has
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        listener = source.receiver((host, port))
        if listener is not None:
            await self._require(listener, (host, port), owner)
        made = await _open(host, port)
        try:
            await self._verify(source, made, owner, listener)
        except BaseException:
            made.close()
            raise
        return made

    # -- datagrams: there is no connection to look at, so each is asked for before it is sent

    def receives(self, at: sockdiag.Endpoint, own: sockdiag.Endpoint, pod_uid: str) -> bool:
        """Whether a datagram from `own` reaches a socket that is known to be the pod's."""
        if self._source is None or not pod_uid:
            return True
        found = self._source.receiver(at, sockdiag.UDP, own)
        known = self._known.get(found.cookie) if found is not None else None
        return known is not None and known.pod_uid == pod_uid

    async def require_receiver(self, at: sockdiag.Endpoint, own: sockdiag.Endpoint, pod_uid: str) -> None:
        """Raises OSError when a datagram would reach nobody; ForeignSocket, and tells it, when somebody else."""
        if self._source is None or not pod_uid:
            return
        found = self._source.receiver(at, sockdiag.UDP, own)
        if found is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        try:
            await self._require(found, at, pod_uid)
        except ForeignSocket as error:
            self._tell(pod_uid, error)
            raise

    # -- who listens

    async def _require(self, listener: sockdiag.FoundSocket, at: sockdiag.Endpoint, pod_uid: str) -> None:
        if not await self._is_of(listener, pod_uid):
            raise ForeignSocket(await self._words(at, listener))

    async def _is_of(self, listener: sockdiag.FoundSocket, pod_uid: str) -> bool:
        known = self._known.get(listener.cookie)
        if known is not None and known.pod_uid == pod_uid:
            return True
        await self._adopted(pod_uid)
        held = await asyncio.to_thread(procfs.holder, self._shims(pod_uid), listener.inode)
        if held is None:
            return False
        self._known[listener.cookie] = _Known(pod_uid, _is_exclusive(*held))
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return True

    async def _adopted(self, pod_uid: str) -> None:
        """After a restart services are there a moment before the node has found all pods again."""
        for _ in range(round(ADOPTION_SECONDS / 0.02)):
            if self.containers.is_adopted(pod_uid):
                return
            await asyncio.sleep(0.02)

    def _shims(self, pod_uid: str) -> list[int]:
        return [shim for c in self.containers.running_in(pod_uid) if (shim := c.shim_pid)]

    # -- who was reached

    async def _verify(
        self, source: sockdiag.Source, made: socket.socket, pod_uid: str, before: sockdiag.FoundSocket | None
    ) -> None:
        at, own = made.getpeername()[:2], made.getsockname()[:2]
        after = source.receiver(at)
        if before is not None and after is not None and after.cookie == before.cookie:
            known = self._known.get(before.cookie)
            if known is not None and known.exclusive:
                return
        loop = asyncio.get_running_loop()
        ends, pause = loop.time() + ACCEPT_SECONDS, 0.0005
        while loop.time() < ends:
            reached = source.receiver(at, peer=own)
            if reached is not None and reached.inode and reached.state != sockdiag.LISTEN:
                if await asyncio.to_thread(procfs.holder, self._shims(pod_uid), reached.inode) is None:
                    raise ForeignSocket(await self._words(at, reached))
                return
            if reached is None or reached.state not in (sockdiag.ESTABLISHED, sockdiag.SYN_RECV):
                raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")  # over before it began
            if await self._all_are_of(source, at, pod_uid) and source.receiver(at, peer=own) == reached:
                return  # it waited all the while, so whoever may accept it was among those we looked at
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")

    async def _all_are_of(self, source: sockdiag.Source, at: sockdiag.Endpoint, pod_uid: str) -> bool:
        found = [one for one in source.listeners(at[1]) if sockdiag.covers(one.address, at[0])]
        return bool(found) and all([await self._is_of(one, pod_uid) for one in found])

    # -- telling

    async def listener(self, host: str, port: int, protocol: int = sockdiag.TCP) -> tuple[str, str]:
        """(pod uid, who it is in words) of what listens there; both "" when nothing does, or nobody can tell."""
        found = self._source.receiver((host, port), protocol) if self._source is not None else None
        if found is None:
            return "", ""
        pid = await asyncio.to_thread(procfs.any_holder, found.inode)
        return self._pod_of_process(pid), self._name(pid)

    def _tell(self, pod_uid: str, error: ForeignSocket) -> None:
        self.report(pod_uid, REASON, stated("DL-NOTHING-SENT", why=error.message))

    async def _words(self, at: sockdiag.Endpoint, found: sockdiag.FoundSocket) -> str:
        pid = await asyncio.to_thread(procfs.any_holder, found.inode)
        return stated("DL-FOREIGN-SOCKET", port=at[1], address=at[0], holder=self._name(pid))

    def _pod_of_process(self, pid: int) -> str:
        by_shim = {c.shim_pid: c.pod_uid for c in self.containers.running()}
        for _ in range(MOST_GENERATIONS):
            if pid in by_shim or pid <= 1:
                break
            pid = procfs.parent(pid)
        return by_shim.get(pid, "")

    def _name(self, pid: int) -> str:
        if not pid:
            return stated("DL-HOLDER-UNKNOWN")
        pod = self.pod_of(self._pod_of_process(pid))
        if pod is None:
            return stated("DL-HOLDER-PROCESS", pid=pid, name=procfs.name(pid))
        meta = pod["metadata"]
        return stated("DL-HOLDER-POD", pid=pid, pod=f"{meta['namespace']}/{meta['name']}")


async def _open(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not _is_address(host):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, host = found[0][0], str(found[0][4][0])
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(made, (host, port))
    except BaseException:
        made.close()
        raise
    return made


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_exclusive(pid: int, fd: int) -> bool:
    """Whether the kernel keeps all others from the address of this listening socket. False when that cannot be told."""
    try:
        copy = kernel.take_fd(pid, fd)
    except OSError:
        return False
    with socket.socket(fileno=copy) as listener:
        return listener.getsockopt(socket.SOL_SOCKET, SO_REUSEPORT) == 0
