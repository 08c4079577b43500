"""`NodeRegistration`: the Node objects of this machine and their leases, kept in the API while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.node import nodeobject
from danlu.embedded.node.nodeobject import Offer
from danlu.embedded.node.sandbox.processes import Spawner
from danlu.embedded.node.settings import NodeSettings
from danlu.meta import objects
from danlu.meta.clock import now_rfc3339, now_rfc3339_micro
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION
from danlu.meta.wellknown import LEASE, NODE
from danlu.runtime.recorder import EventRecorder

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_S = 40


class NodeRegistration:
    def __init__(
        self,
        client: Client,
        offers: Sequence[Offer],
        settings: NodeSettings,
        recorders: Mapping[str, EventRecorder],
        spawner: Spawner,
        port: int,
    ) -> None:
        """`recorders` by the node's name; `port`: where the API of this machine listens, for daemonEndpoints."""
        self.client = client
        self.offers = offers
        self.pressures: set[str] = set()  # conditions of the nodes that are true
        self._settings = settings
        self._recorders = recorders
        self._spawner = spawner
        self._port = port
        self._nodes: dict[str, Object] = {}  # as the API answered last

    async def start(self) -> None:
        for offer in self.offers:
            await self._begin(offer)
        await self._mark_absent()

    def node(self, name: str) -> Object:
        return self._nodes[name]

    async def read_again(self, name: str) -> Object:
        """Labels and resources that others gave the node may be newer than our copy."""
        with contextlib.suppress(errors.ApiError):
            self._nodes[name] = await self.client.get(NODE, name)
        return self._nodes[name]

    async def set_pressures(self, pressures: set[str]) -> None:
        if pressures != self.pressures:
            self.pressures = pressures
            for offer in self.offers:
                await self._write(offer)

    def tell(self, type: str, reason: str, message: str) -> None:
        """An event about each node."""
        for offer in self.offers:
            self._recorders[offer.name].event(self._nodes[offer.name], type, reason, message)

    async def heartbeat(self) -> None:
        """Without end."""
        written = time.monotonic()
        while True:
            await asyncio.sleep(self._settings.heartbeat_s)
            due = time.monotonic() - written >= self._settings.status_s
            for offer in self.offers:
                try:
                    if not self._nodes[offer.name]["metadata"].get("uid"):
                        await self._register(offer)
                    await self._renew(offer)
                    if due:
                        await self._write(offer)
                except Exception as error:
                    log.warning("heartbeat of node %s: %s", offer.name, error)
            written = time.monotonic() if due else written

    async def _begin(self, offer: Offer) -> None:
        """What is refused here (a policy, a webhook) must not stop the start: the heartbeat tries again."""
        try:
            await self._register(offer)
        except errors.ApiError as error:
            log.warning("node %s: %s; the heartbeat will try again", offer.name, error)
            self._nodes.setdefault(offer.name, nodeobject.new(offer))

    async def _register(self, offer: Offer) -> None:
        node = nodeobject.new(offer)
        try:
            known = await self.client.create(NODE, node)
            self._recorders[offer.name].event(known, "Normal", "Starting", "Starting kubelet.")
        except errors.AlreadyExists:
            again = {"labels": node["metadata"]["labels"], "annotations": {ANNOTATION: None}}  # it is absent no more
            known = await self.client.patch(NODE, offer.name, None, {"metadata": again})
        self._nodes[offer.name] = known
        await self._write(offer)
        try:
            await self._renew(offer)
        except errors.ApiError as error:
            log.warning("lease of node %s: %s; the heartbeat will try again", offer.name, error)

    async def _mark_absent(self) -> None:
        """Nodes of an earlier start that this one does not have would look Ready until their lease ran out."""
        own = {offer.name for offer in self.offers}
        for node in (await self.client.list(NODE)).items:
            if nodeobject.is_left_over(node, own):
                try:
                    await self.client.update_status(NODE, nodeobject.absent(node, now_rfc3339()))
                except errors.ApiError as error:
                    log.warning(
                        "node %s: %s; it counts as absent when its lease has run out", objects.name(node), error
                    )

    async def _write(self, offer: Offer) -> None:
        old = self._nodes[offer.name].get("status") or {}
        mode = self._spawner.capabilities.mode
        wanted = nodeobject.status(offer, old, self.pressures, now_rfc3339(), mode, self._port)
        try:
            self._nodes[offer.name] = await self.client.patch(
                NODE, offer.name, None, {"status": wanted}, subresource="status"
            )
        except errors.NotFound:
            # Someone deleted the node while its machine is well: it comes back, as a kubelet that restarts would.
            self._nodes[offer.name] = await self.client.create(NODE, nodeobject.new(offer))
            await self.client.patch(NODE, offer.name, None, {"status": wanted}, subresource="status")

    async def _renew(self, offer: Offer) -> None:
        renewed = {"renewTime": now_rfc3339_micro()}
        try:
            await self.client.patch(LEASE, offer.name, LEASE_NAMESPACE, {"spec": renewed})
        except errors.NotFound:
            meta = self._nodes[offer.name]["metadata"]
            owner = {"apiVersion": "v1", "kind": "Node", "name": offer.name, "uid": meta["uid"]}
            lease = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": offer.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
                "spec": {"holderIdentity": offer.name, "leaseDurationSeconds": LEASE_S, **renewed},
            }
            with contextlib.suppress(errors.AlreadyExists):
                await self.client.create(LEASE, lease, LEASE_NAMESPACE)
