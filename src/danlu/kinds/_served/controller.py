"""The I/O around a served kind's `reconcile`: what it names is looked up, its program is asked what it does."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer, controller_uid
from danlu.kinds._served.keeping import keeping
from danlu.kinds._served.observing import Activity, Observed, ServedOutcome
from danlu.kinds._served.shape import COMPONENT, OWNER_NAME, digits
from danlu.kinds.claims import unbound
from danlu.kinds.mending import with_remedy
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.references import Needed
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.objects import copy
from danlu.meta.wellknown import NAMESPACE, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from danlu.runtime.applying import Applier, write_status
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.pure import BY_CONTROLLER
from danlu.runtime.reconcile import Outcome, Request

log = logging.getLogger(__name__)

BY_OWNER = "served-by"
LOOK_AGAIN_S = 5.0  # for a Secret or ConfigMap that is missing; claims are watched

Reconcile = Callable[[Object, Observed, datetime], ServedOutcome]
Ask = Callable[[Client, Object, Object, datetime], Awaitable[Activity | None]]
"""The client, the object, its pod: what the program in it says of its activity; None when it does not answer."""


@dataclass(frozen=True, slots=True)
class ServedKind:
    kind: Kind
    owns: tuple[Kind, ...]
    reconcile: Reconcile
    needs: Callable[[Object], Sequence[Needed]]
    ask: Ask | None = None


def served_controller(manager: Manager, settings: PlatformSettings, served: ServedKind) -> Controller:
    name = f"{served.kind.kind.lower()}-controller"
    worker = _Worker(manager, settings, served, name)
    controller = Controller(name, worker.run)
    controller.watches(worker.parents)
    for informer in worker.children.values():
        controller.owns(informer, served.kind)
    controller.watches(worker.pods, worker.owner_of)
    controller.watches(worker.claims, worker.users_of)
    return controller


@dataclass(frozen=True, slots=True)
class _Said:
    when: datetime
    activity: Activity | None
    namespace: Object | None


class _Worker:
    def __init__(self, manager: Manager, settings: PlatformSettings, served: ServedKind, name: str) -> None:
        self.manager = manager
        self.settings = settings
        self.served = served
        self.parents = manager.informer(served.kind)
        # By label: an operator has no business with all Secrets of a cluster.
        own = f"{COMPONENT}={served.kind.kind.lower()}"
        self.children: dict[Kind, Informer] = {kind: manager.informer(kind, labels=own) for kind in served.owns}
        self.pods = manager.informer(POD)
        self.claims, self.classes = manager.informer(PERSISTENT_VOLUME_CLAIM), manager.informer(STORAGE_CLASS)
        self.pods.add_index(f"{BY_OWNER} {served.kind.kind}", self._index_pod)
        for informer in self.children.values():
            informer.add_index(BY_CONTROLLER, controller_uid)
        self._applier = Applier(manager.client, name, manager.recorder(name), self.children.values())
        self._said: dict[str, _Said] = {}

    # -- what wakes it

    def _index_pod(self, pod: Object) -> list[Hashable]:
        return [(r.namespace, r.name) for r in self.owner_of(pod)]

    def owner_of(self, pod: Object) -> list[Request]:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(COMPONENT) != self.served.kind.kind.lower() or not labels.get(OWNER_NAME):
            return []
        return [Request(pod["metadata"]["namespace"], labels[OWNER_NAME])]

    def users_of(self, claim: Object) -> list[Request]:
        wanted = Needed(PERSISTENT_VOLUME_CLAIM, claim["metadata"]["name"])
        namespace = claim["metadata"]["namespace"]
        return [
            Request(namespace, obj["metadata"]["name"])
            for obj in self.parents.list(namespace)
            if wanted in self.served.needs(obj)
        ]

    # -- one reconcile

    async def run(self, request: Request) -> Outcome | None:
        obj = self.parents.get(request.namespace, request.name)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            if obj is not None:
                self._said.pop(obj["metadata"]["uid"], None)
            return None
        now = self.manager.clock()
        uid = obj["metadata"]["uid"]
        pod = self._pod(obj)
        activity, namespace = await self._ask(obj, pod, now)
        observed = Observed(
            self.settings,
            {kind: informer.by_index(BY_CONTROLLER, uid) for kind, informer in self.children.items()},
            pod,
            [need for need in self.served.needs(obj) if not await self._exists(need, request.namespace)],
            activity,
            secrets.token_hex(24),
            unbound([pod] if pod is not None else (), self.claims, self.classes),
            namespace,
        )
        outcome = self.served.reconcile(obj, observed, now)
        await self._carry_out(obj, outcome, now)
        if any(need.kind != PERSISTENT_VOLUME_CLAIM for need in observed.missing):
            outcome.requeue_after = min(outcome.requeue_after or LOOK_AGAIN_S, LOOK_AGAIN_S)
        return outcome

    def _pod(self, obj: Object) -> Object | None:
        """Not that of an object of the same name that was deleted a moment ago."""
        meta, word = obj["metadata"], self.served.kind.kind
        own = f"managed-{word.lower()}-{digits(obj)}-"
        found = self.pods.by_index(f"{BY_OWNER} {word}", (meta["namespace"], meta["name"]))
        alive = [
            pod
            for pod in found
            if pod["metadata"]["name"].startswith(own) and not pod["metadata"].get("deletionTimestamp")
        ]
        return alive[0] if alive else None

    async def _exists(self, need: Needed, namespace: str) -> bool:
        if need.kind == PERSISTENT_VOLUME_CLAIM:
            return self.claims.get(namespace, need.name) is not None
        try:
            await self.manager.client.get(need.kind, need.name, namespace)
        except errors.NotFound:
            return False
        return True

    async def _ask(self, obj: Object, pod: Object | None, now: datetime) -> tuple[Activity | None, Object | None]:
        """Also what its namespace says; at most once each scan interval: what was said is good until then."""
        uid = obj["metadata"]["uid"]
        if (
            self.served.ask is None
            or pod is None
            or not conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready")
        ):
            self._said.pop(uid, None)
            return None, None
        said = self._said.get(uid)
        if said is None or (now - said.when).total_seconds() >= keeping(said.namespace, self.settings).scan_s * 0.9:
            activity, namespace = await asyncio.gather(
                self.served.ask(self.manager.client, obj, pod, now), self._namespace(obj["metadata"]["namespace"])
            )
            said = self._said[uid] = _Said(now, activity, namespace)
        return said.activity, said.namespace

    async def _namespace(self, name: str) -> Object | None:
        try:
            return await self.manager.client.get(NAMESPACE, name)
        except errors.ApiError:  # an operator of a few namespaces need not have the right
            return None

    async def _carry_out(self, obj: Object, outcome: ServedOutcome, now: datetime) -> None:
        try:
            await self._applier.carry_out(self.served.kind, obj, outcome)
        except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
            # The template passed our schema and yet is no pod, or a quota is spent: whoever wrote it has to hear of it.
            log.info("%s %s: %s", self.served.kind.kind, obj["metadata"]["name"], error)
            await self._say_refused(obj, with_remedy("", error.message), now)
            outcome.requeue_after = 30.0
            return
        if outcome.suspend:
            meta = obj["metadata"]
            await self.manager.client.patch(
                self.served.kind, meta["name"], meta["namespace"], {"spec": {"suspend": True}}
            )

    async def _say_refused(self, obj: Object, message: str, now: datetime) -> None:
        status = copy(obj.get("status") or {})
        found = status.setdefault("conditions", [])
        status.setdefault("phase", "Initializing")
        if conditions.set(found, "Ready", "False", "Refused", message, rfc3339(now)):
            self._applier.recorder.warning(obj, "Refused", message)
        await write_status(self.manager.client, self.served.kind, obj, status)
