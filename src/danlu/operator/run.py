"""The operator: one replica leads and looks after all kinds, the others wait to take its place."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from danlu import __version__, errors
from danlu.client.client import Client
from danlu.client.config import Config
from danlu.client.http import HttpTransport
from danlu.client.leases import LeaderElection, LeaseTimes
from danlu.kinds import registry
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.meta.wellknown import NAMESPACE
from danlu.operator import health
from danlu.operator.access import Access, Limit
from danlu.operator.health import HealthAnswer
from danlu.operator.metrics import OperatorMetrics
from danlu.operator.supervision import Supervision

log = logging.getLogger("danlu.operator")

LEASE = "danlu-operator"
HOME_NAMESPACE = "danlu-system"


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    config: Config
    platform: PlatformSettings = field(default_factory=PlatformSettings)
    kinds: Sequence[PlatformKind] = registry.REGISTRY
    namespaces: Sequence[str] = ()  # all
    qps: float = 1000.0  # 0: no limit
    burst: int = 2000
    elect: bool = True
    lease_namespace: str = ""  # ours, or the first that is watched
    lease_duration_s: float = 8.0
    host: str = "127.0.0.1"
    port: int = 0


class Operator:
    def __init__(self, settings: OperatorSettings) -> None:
        self.settings = settings
        self.identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
        server = settings.config.server
        transport = HttpTransport(settings.config, f"danlu-operator/{__version__}")
        self.access = Access(transport, server, Limit(settings.qps, settings.burst))
        self.client = Client(self.access, manager="danlu-operator")
        self.election: LeaderElection | None = None
        self.supervision: Supervision | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; what is being written is finished, and the lease given back."""
        pages = {"/healthz": lambda: HealthAnswer(200, "ok\n"), "/readyz": self._readiness, "/metrics": self._metrics}
        server = await health.serve(self.settings.host, self.settings.port, pages)
        where = ":".join(map(str, server.sockets[0].getsockname()[:2]))
        log.info(
            "Danlu operator %s: %s; health and metrics at http://%s", __version__, self.settings.config.server, where
        )
        working = asyncio.create_task(self._work())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, stopping):
                task.cancel()
            ended, _ = await asyncio.gather(working, stopping, return_exceptions=True)
            server.close()
            await self.client.close()
        if isinstance(ended, Exception):
            raise ended
        log.info("stopped")

    async def _work(self) -> None:
        if not self.settings.elect:
            await self._lead()
            return
        duration = self.settings.lease_duration_s
        self.election = LeaderElection(
            self.client,
            LEASE,
            await self._lease_namespace(),
            self.identity,
            # A leader stops in time to end what is being written.
            LeaseTimes(duration, renew_deadline_s=duration * 0.625, retry_s=min(2.0, duration / 4)),
        )
        log.info("waiting for the lease %s/%s", self.election.namespace, LEASE)
        while True:
            await self.election.run(self._lead)  # comes back when another has taken over

    async def _lead(self) -> None:
        settings = self.settings
        self.supervision = Supervision(
            self.client,
            settings.kinds,
            settings.platform,
            settings.namespaces,
            pod_began=self.access.gate.pod_began,
            calm=self.access.gate.is_calm,
        )
        _calm_garbage_collection()
        try:
            await self.supervision.run()
        finally:
            self.supervision = None

    async def _lease_namespace(self) -> str:
        """Every replica must come to the same one: where the operator is installed, or else where the user is."""
        settings = self.settings
        if settings.lease_namespace or settings.namespaces:
            return settings.lease_namespace or settings.namespaces[0]
        if settings.config.token_file:  # in a pod: the namespace it runs in
            return settings.config.namespace
        while True:
            try:
                await self.client.get(NAMESPACE, HOME_NAMESPACE)
            except (errors.NotFound, errors.Forbidden):
                return settings.config.namespace
            except errors.ApiError as error:
                log.debug("namespace %s: %s", HOME_NAMESPACE, error)
                await asyncio.sleep(2.0)
                continue
            return HOME_NAMESPACE

    # -- what is told

    def _readiness(self) -> HealthAnswer:
        if not self.access.reachable:
            return HealthAnswer(503, f"{self.settings.config.server} cannot be reached\n")
        supervision = self.supervision
        if supervision is None:
            return HealthAnswer(200, "ok: another replica leads\n")
        if supervision.filling or not supervision.looked:
            return HealthAnswer(503, f"filling caches: {', '.join(sorted(supervision.filling))}\n")
        return HealthAnswer(200, "ok: leading\n")

    def _metrics(self) -> HealthAnswer:
        supervision = self.supervision
        controllers = supervision.controllers if supervision is not None else {}
        return HealthAnswer(200, OperatorMetrics(controllers, self.access.requests, supervision is not None).text())


def _calm_garbage_collection() -> None:
    """Caches are freed by reference counts: looking through them again and again finds nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
