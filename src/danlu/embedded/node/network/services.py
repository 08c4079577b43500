"""kube-proxy's work: cluster IPs and node ports lead to ready pods.

Cluster IPs lie in 127.96.0.0/12, so a listener on the address itself is all that is needed, for root and user alike.

- Nothing listens while a service has no ready backend: callers get "connection refused", as in a cluster.
- Pods share the host's network. One that listens on all addresses already answers on the cluster IP where the service's
  port and its own are the same; a listener of ours there would take the port from the pod when it restarts. So such a
  port is listened on only when the pod is seen not to answer there itself.
- Anybody else who holds a service's address is named in an event, and what is sent to a backend goes to the pod that is
  meant or nowhere: see `podsockets`.
- Connections that are open when a backend goes are left to end by themselves.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import resource
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from danlu.diagnose import stated
from danlu.embedded.node.network import listening, lowports
from danlu.embedded.node.network.forwarder import Destination, Rotation, TcpForwarder, UdpForwarder
from danlu.embedded.node.network.listening import NODE_ADDRESS, ListenKey
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.network.servicetable import Key, ServiceBackend, ServiceTable
from danlu.meta.kind import Object
from danlu.runtime.recorder import EventRecorder

log = logging.getLogger("danlu.services")

RETRY_SECONDS = 5.0
MOST_SOCKETS = 65536
KUBERNETES: Key = ("default", "kubernetes")


@dataclass(slots=True)
class _Listener:
    owner: Key
    forwarder: TcpForwarder | UdpForwarder
    rotation: Rotation


@dataclass(slots=True)
class _Wanted:
    rotation: Rotation = field(default_factory=Rotation)
    same_port: bool = False  # a backend has this very port: it may answer here itself


class ServiceProxy:
    """One for a machine, however many virtual nodes there are."""

    def __init__(self, table: ServiceTable, recorder: EventRecorder, api: tuple[str, int], sockets: PodSockets) -> None:
        self._table = table
        self._recorder = recorder
        self._api = api
        self._sockets = sockets
        self._listeners: dict[ListenKey, _Listener] = {}
        self._by_service: dict[Key, set[ListenKey]] = {}
        self._dirty: set[Key] = set()
        self._wake = asyncio.Event()
        self._failed: dict[ListenKey, Key] = {}
        self._told: dict[ListenKey, str] = {}  # who held it when that was told
        self._task: asyncio.Task[None] | None = None
        self._held: list[str] = []
        self.write_held: Callable[[list[str]], None] = lambda lines: None  # for `danlu status`
        table.listen(self._changed)

    async def start(self) -> None:
        """Returns when every service that is known has been looked at."""
        _allow_many_sockets()
        self._dirty.update((s["metadata"]["namespace"], s["metadata"]["name"]) for s in self._table.services.list())
        await self._settle()
        self._task = asyncio.create_task(self._run(), name="service proxy")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for listener in self._listeners.values():
            listener.forwarder.abort()
        self._listeners.clear()

    async def connect(self, key: Key, port: int) -> socket.socket:
        """To a pod behind a port of a service, as a client of the cluster IP would be led. Raises OSError."""
        service = self._table.service(key)
        problem: OSError = ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        for spec in (service.get("spec") or {}).get("ports") or [] if service is not None else []:
            if spec["port"] == port and (spec.get("protocol") or "TCP") == "TCP":
                chosen = [*self._destinations(key, spec, self._table.backends(key))]
                random.shuffle(chosen)
                for destination in chosen:
                    try:
                        return await self._connect(destination)
                    except OSError as error:
                        problem = error
        raise problem

    async def _connect(self, destination: Destination) -> socket.socket:
        return await self._sockets.connect((destination.host,), destination.port, destination.pod_uid)

    def api_address(self) -> tuple[str, int]:
        """Where pods find the API: its service, or the server itself while the service cannot be listened on.

        The latter is so for users who may not have port 443, and where a second danlu runs on the machine.
        """
        for _, address, port in self._by_service.get(KUBERNETES, ()):
            if port == lowports.said(port):
                return address, port
        return self._api

    def _changed(self, key: Key) -> None:
        self._dirty.add(key)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self._failed else None):
                    await self._wake.wait()
            self._wake.clear()
            self._dirty.update(self._failed.values())
            try:
                await self._settle()
            except Exception:
                log.exception("services could not be brought up to date")

    async def _settle(self) -> None:
        while self._dirty:
            key = self._dirty.pop()
            try:
                await self._apply(key)
            except Exception:  # one that cannot be understood is not the others' loss, nor the start's
                log.exception("service %s/%s could not be brought up to date", *key)
        held = [
            f"{at[1]}:{lowports.said(at[2])} of service {'/'.join(key)} is held by {self._told[at]}"
            for at, key in self._failed.items()
            if self._told.get(at) and key != KUBERNETES
        ]
        if held != self._held:
            self._held = held
            self.write_held(held)

    async def _apply(self, key: Key) -> None:
        service = self._table.service(key)
        wanted = self._wanted(key, service) if service is not None else {}
        for gone in self._by_service.get(key, set()) - wanted.keys():
            self._close(gone)
        for at in [at for at, owner in self._failed.items() if owner == key and at not in wanted]:
            del self._failed[at]
        for at, want in wanted.items():
            current = self._listeners.get(at)
            if current is not None and current.owner == key:
                current.rotation.backends = want.rotation.backends
                current.rotation.sticky = want.rotation.sticky
            elif service is not None:
                await self._open(key, service, at, want)

    def _wanted(self, key: Key, service: Object) -> dict[ListenKey, _Wanted]:
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return {}
        backends = self._table.backends(key)
        address = spec.get("clusterIP")
        wanted: dict[ListenKey, _Wanted] = {}
        for port in spec.get("ports") or []:
            want = _Wanted()
            want.rotation.sticky = spec.get("sessionAffinity") == "ClientIP"
            want.rotation.backends = [*self._destinations(key, port, backends)]
            if not want.rotation.backends:
                continue
            protocol = port.get("protocol") or "TCP"
            if protocol not in ("TCP", "UDP"):
                continue
            if address and address != "None":
                number = self._sockets.meant(int(port["port"]))
                want.same_port = any(backend.port == number for backend in want.rotation.backends)
                wanted[(protocol, address, number)] = want
            if port.get("nodePort"):
                wanted[(protocol, NODE_ADDRESS, int(port["nodePort"]))] = _Wanted(want.rotation)
        return wanted

    def _destinations(self, key: Key, port: Object, backends: Iterable[ServiceBackend]) -> Iterable[Destination]:
        if key == KUBERNETES:
            return [Destination(*self._api)]
        name = port.get("name") or ""
        return [
            Destination(b.address, self._sockets.meant(number) if b.pod_uid else number, b.pod_uid)
            for b in backends
            if (number := b.port(name)) is not None
        ]

    async def _open(self, key: Key, service: Object, at: ListenKey, want: _Wanted) -> None:
        protocol, address, port = at
        if len(self._listeners) >= most_listeners():
            self._refuse(key, service, at, stated("DL-SOCKETS-SPENT", at=f"{address}:{lowports.said(port)}"))
            return
        owner, holder = await self._sockets.listener(address, port, listening.PROTOCOLS[protocol])
        if want.same_port and owner and any(backend.pod_uid == owner for backend in want.rotation.backends):
            self._failed.pop(at, None)
            return
        forwarder: TcpForwarder | UdpForwarder
        if protocol == "TCP":
            forwarder = TcpForwarder(want.rotation, self._connect)
        else:
            forwarder = UdpForwarder(want.rotation, self._sockets)
        try:
            await forwarder.listen(address, port)
        except OSError as error:
            self._refuse(key, service, at, listening.explain(at, error, holder), holder)
            return
        self._failed.pop(at, None)
        self._told.pop(at, None)
        self._listeners[at] = _Listener(key, forwarder, want.rotation)
        self._by_service.setdefault(key, set()).add(at)

    def _refuse(self, key: Key, service: Object, at: ListenKey, why: str, holder: str = "") -> None:
        """It is tried again later, and told once, again when somebody else holds it."""
        self._failed[at] = key
        if self._told.get(at) != holder:
            self._told[at] = holder
            if key == KUBERNETES:  # pods are told the server's own address then: nobody has to act
                log.info("service kubernetes: %s", why)
            else:
                self._recorder.warning(service, "FailedToListen", why)

    def _close(self, at: ListenKey) -> None:
        listener = self._listeners.pop(at)
        listener.forwarder.close()
        owned = self._by_service[listener.owner]
        owned.discard(at)
        if not owned:
            del self._by_service[listener.owner]


def _allow_many_sockets() -> None:
    """Each service takes a descriptor, each connection two; the usual limit for a user is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_SOCKETS if hard == resource.RLIM_INFINITY else min(hard, MOST_SOCKETS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_listeners() -> int:
    """Half of the descriptors that this process may have: a service of 20,000 ports must leave some to the API."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (MOST_SOCKETS if soft == resource.RLIM_INFINITY else soft) // 2
