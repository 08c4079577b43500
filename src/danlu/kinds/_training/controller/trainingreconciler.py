"""What a job kind's `reconcile` sees besides the job."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

from danlu.diagnose.refusals import explained
from danlu.kinds._training import lifecycle
from danlu.kinds._training.children import COMPANION_OF
from danlu.kinds._training.controller.mount_events import MountEvents
from danlu.kinds._training.controller.portbookings import BY_PORT, Bookings, TakenPorts, ports_of
from danlu.kinds._training.jobkind import JobKind
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import service_ports
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.unboundclaims import unbound
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, POD, SECRET, SERVICE, STORAGE_CLASS
from danlu.runtime.reconcile import Outcome, Refusal, Request
from danlu.runtime.reconciler import Children, Context, Reconciler, Watch

WORKERS = 64  # most of them wait for writes, and none is to keep another job's pods from being made


class TrainingReconciler(Reconciler[Observed]):
    reads = (Watch(PERSISTENT_VOLUME_CLAIM), Watch(STORAGE_CLASS))
    workers = WORKERS

    def __init__(self, job: JobKind, settings: PlatformSettings) -> None:
        self.kind = job.kind
        self._job = job
        self._settings = settings
        self._others = job.watched(settings)
        self.owns = (POD, SERVICE, *self._others)
        # By label: an operator has no business with all Secrets of a cluster.
        selector = f"{COMPANION_OF}={job.kind.kind.lower()}"
        self.child_labels = {kind: selector for kind in self._others if kind in (CONFIG_MAP, SECRET)}

    def start(self, context: Context) -> None:
        self._services, self._pods = context.caches[SERVICE], context.caches[POD]
        self._claims, self._classes = context.caches[PERSISTENT_VOLUME_CLAIM], context.caches[STORAGE_CLASS]
        self._bookings = context.shared(Bookings)
        self._mount_events = MountEvents(self._pods, context.controller)
        if self._settings.shared_network:
            self._services.add_index(BY_PORT, ports_of)

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Observed:
        meta = obj["metadata"]
        pods, services = children[POD], children[SERVICE]
        shared = self._settings.shared_network
        if shared and services:
            self._bookings.forget(meta["uid"])
        taken = TakenPorts(meta["uid"], self._services, self._pods, self._bookings) if shared else frozenset[int]()
        return Observed(
            pods=pods,
            services=services,
            others=[child for other in self._others for child in children[other]],
            events=self._mount_events.about(pods, Request(meta["namespace"], meta["name"])),
            unbound=unbound(pods, self._claims, self._classes),
            taken_ports=taken,
            refused=refused,
            settings=self._settings,
            seed=_seed,
        )

    def decide(self, obj: Object, seen: Observed, now: datetime) -> Outcome:
        outcome = lifecycle.reconcile(self._job, obj, seen, now)
        if self._settings.shared_network:
            made = [creation.obj for creation in outcome.create if creation.obj["kind"] == SERVICE.kind]
            self._bookings.book(obj["metadata"]["uid"], {port for service in made for port in service_ports(service)})
        return outcome

    def forget(self, uid: str) -> None:
        self._bookings.forget(uid)

    def explain(self, message: str) -> str:
        return explained(message)


def _seed() -> bytes:
    return secrets.token_bytes(32)
