"""hostPort: a port of this machine that leads to one pod, whether it is ready or not.

Without hostIP that is a port of 127.0.0.1, where a cluster's node opens it on all its addresses: what runs on this
machine is the business of no other, unless a pod names the address. Addresses of pods and services it cannot name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Sequence
from contextlib import suppress

from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.diagnose import stated
from danlu.embedded.node.network import listening
from danlu.embedded.node.network.forwarder import Destination, Rotation, TcpForwarder, UdpForwarder
from danlu.embedded.node.network.listening import NODE_ADDRESS, ListenKey
from danlu.embedded.node.network.ownports import LOCALHOSTS
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.meta.addresses import parse_address
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD
from danlu.runtime.recorder import EventRecorder

log = logging.getLogger("danlu.hostports")

RETRY_SECONDS = 5.0  # while another program has the port
OVER = ("Succeeded", "Failed")


class HostPorts:
    """One for a machine: virtual nodes share its ports."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        sockets: PodSockets,
        networks: Sequence[str],
        pods: Informer | None = None,
    ) -> None:
        self._own_informer = pods is None
        self._pods = Informer(client, POD) if pods is None else pods
        self._recorder = recorder
        self._sockets = sockets
        self._closed = [*(ipaddress.ip_network(network) for network in networks), *LOCALHOSTS]
        self._open: dict[ListenKey, tuple[str, TcpForwarder | UdpForwarder]] = {}  # and the pod's uid
        self._failed: dict[tuple[str, ListenKey], str] = {}  # why, as it was told
        self._wanted: dict[str, dict[ListenKey, int]] = {}  # pod uid -> the container's port for each
        self._objects: dict[str, Object] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pods.add_handler(self._pod_changed)

    async def start(self) -> None:
        if self._own_informer:
            self._pods.start()
        await self._pods.synced()
        self._task = asyncio.create_task(self._run(), name="host ports")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _, forwarder in self._open.values():
            forwarder.abort()
        self._open.clear()
        if self._own_informer:
            await self._pods.stop()

    def _pod_changed(self, event: str, pod: Object, _old: Object | None) -> None:
        uid = pod["metadata"]["uid"]
        wanted = {} if event == "DELETED" else _wanted(pod)
        if wanted == self._wanted.get(uid, {}):
            return
        if wanted:
            self._wanted[uid], self._objects[uid] = wanted, pod
        else:
            self._wanted.pop(uid, None)
            self._objects.pop(uid, None)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self._failed else None):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._settle()
            except Exception:
                log.exception("host ports could not be brought up to date")

    async def _settle(self) -> None:
        for at, (uid, forwarder) in [*self._open.items()]:
            if at not in self._wanted.get(uid, {}):
                forwarder.close()
                del self._open[at]
        self._failed = {key: why for key, why in self._failed.items() if key[1] in self._wanted.get(key[0], {})}
        for uid, wanted in [*self._wanted.items()]:
            for at, port in wanted.items():
                if at not in self._open or self._open[at][0] != uid:  # two virtual nodes have one machine's ports
                    await self._listen(uid, at, port)

    async def _listen(self, uid: str, at: ListenKey, port: int) -> None:
        pod = self._objects[uid]
        protocol, address, number = at
        ip = parse_address(address)
        if ip is None or any(ip in network for network in self._closed):
            self._refuse(pod, at, stated("DL-HOST-IP-TAKEN", at=f"{address}:{number}"))
            return
        rotation = Rotation()
        rotation.backends = [Destination(pod["status"]["podIP"], self._sockets.meant(port), uid)]
        forwarder: TcpForwarder | UdpForwarder
        if protocol == "TCP":
            forwarder = TcpForwarder(rotation, lambda to: self._sockets.connect((to.host,), to.port, to.pod_uid))
        else:
            forwarder = UdpForwarder(rotation, self._sockets)
        try:
            await forwarder.listen(address, number)
        except OSError as error:
            _, holder = await self._sockets.listener(address, number, listening.PROTOCOLS[protocol])
            self._refuse(pod, at, listening.explain(at, error, holder))
            return
        self._failed.pop((uid, at), None)
        self._open[at] = uid, forwarder

    def _refuse(self, pod: Object, at: ListenKey, why: str) -> None:
        """It is tried again later, and told again when the reason is another."""
        key = pod["metadata"]["uid"], at
        if self._failed.get(key) != why:
            self._failed[key] = why
            self._recorder.warning(pod, "FailedToListen", why)


def _wanted(pod: Object) -> dict[ListenKey, int]:
    status, spec = pod.get("status") or {}, pod["spec"]
    if spec.get("hostNetwork") or status.get("phase") in OVER or not status.get("podIP"):
        return {}
    containers = [*(spec.get("containers") or ())]
    containers += [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    found: dict[ListenKey, int] = {}
    for container in containers:
        for port in container.get("ports") or ():
            protocol = port.get("protocol") or "TCP"
            if port.get("hostPort") and protocol in listening.PROTOCOLS:
                at = (protocol, port.get("hostIP") or NODE_ADDRESS, int(port["hostPort"]))
                found[at] = int(port["containerPort"])
    return found
