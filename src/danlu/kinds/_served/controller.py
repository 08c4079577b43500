"""What a served kind's `reconcile` sees: what the object names is looked up, its program is asked what it does."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.diagnose.refusals import explained
from danlu.kinds._served.idle_policy import idle_policy
from danlu.kinds._served.observation import Activity, Observed, ServedOutcome
from danlu.kinds._served.shape import COMPONENT, OWNER_NAME, digits
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.references import Needed
from danlu.kinds.unboundclaims import unbound
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.objects import copy
from danlu.meta.wellknown import NAMESPACE, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from danlu.runtime.reconcile import EventNote, Outcome, Refusal, Request
from danlu.runtime.reconciler import Children, Context, Reconciler, Watch

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 5.0  # for a Secret or ConfigMap that is missing; claims are watched
REFUSED_S = 30.0  # until what the server refused is tried again

Reconcile = Callable[[Object, Observed, datetime], ServedOutcome]
Ask = Callable[[Client, Object, Object, datetime], Awaitable[Activity | None]]
"""The client, the object, its pod: what the program in it says of its activity; None when it does not answer."""


@dataclass(frozen=True, slots=True)
class PageKind:
    """A kind whose objects serve a web page, as this controller sees it."""

    kind: Kind
    owns: tuple[Kind, ...]
    reconcile: Reconcile
    needs: Callable[[Object], Sequence[Needed]]
    ask: Ask | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    when: datetime
    activity: Activity | None
    namespace: Object | None


class PageReconciler(Reconciler[Observed]):
    def __init__(self, page: PageKind, settings: PlatformSettings) -> None:
        self._page = page
        self._settings = settings
        self.kind = page.kind
        self.owns = page.owns
        self.reads = (
            Watch(POD, self._owner_of),
            Watch(PERSISTENT_VOLUME_CLAIM, self._users_of),
            Watch(STORAGE_CLASS),
        )
        # By label: an operator has no business with all Secrets of a cluster.
        self.child_labels = dict.fromkeys(page.owns, f"{COMPONENT}={page.kind.kind.lower()}")
        self._by_owner = f"served-by {page.kind.kind}"
        self._answers: dict[str, _Answer] = {}

    def start(self, context: Context) -> None:
        self._context = context
        self._parents: Informer = context.caches[self.kind]
        self._pods: Informer = context.caches[POD]
        self._claims: Informer = context.caches[PERSISTENT_VOLUME_CLAIM]
        self._classes: Informer = context.caches[STORAGE_CLASS]
        self._pods.add_index(self._by_owner, self._index_pod)

    # -- what wakes it

    def _index_pod(self, pod: Object) -> list[Hashable]:
        return [(r.namespace, r.name) for r in self._owner_of(pod)]

    def _owner_of(self, pod: Object) -> list[Request]:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(COMPONENT) != self.kind.kind.lower() or not labels.get(OWNER_NAME):
            return []
        return [Request(pod["metadata"]["namespace"], labels[OWNER_NAME])]

    def _users_of(self, claim: Object) -> list[Request]:
        wanted = Needed(PERSISTENT_VOLUME_CLAIM, claim["metadata"]["name"])
        namespace = claim["metadata"]["namespace"]
        return [
            Request(namespace, obj["metadata"]["name"])
            for obj in self._parents.list(namespace)
            if wanted in self._page.needs(obj)
        ]

    # -- what it sees

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Observed:
        pod = self._pod(obj)
        activity, namespace = await self._ask(obj, pod, self._context.now())
        return Observed(
            self._settings,
            children,
            pod,
            [need for need in self._page.needs(obj) if not await self._exists(need, obj["metadata"]["namespace"])],
            activity,
            secrets.token_hex(24),
            unbound([pod] if pod is not None else (), self._claims, self._classes),
            namespace,
        )

    def _pod(self, obj: Object) -> Object | None:
        """Not that of an object of the same name that was deleted a moment ago."""
        meta = obj["metadata"]
        own = f"managed-{self.kind.kind.lower()}-{digits(obj)}-"
        alive = [
            pod
            for pod in self._pods.by_index(self._by_owner, (meta["namespace"], meta["name"]))
            if pod["metadata"]["name"].startswith(own) and not pod["metadata"].get("deletionTimestamp")
        ]
        return alive[0] if alive else None

    async def _exists(self, need: Needed, namespace: str) -> bool:
        if need.kind == PERSISTENT_VOLUME_CLAIM:
            return self._claims.get(namespace, need.name) is not None
        try:
            await self._context.client.get(need.kind, need.name, namespace)
        except errors.NotFound:
            return False
        return True

    async def _ask(self, obj: Object, pod: Object | None, now: datetime) -> tuple[Activity | None, Object | None]:
        """Also what its namespace says; at most once each scan interval: what was said is good until then."""
        uid = obj["metadata"]["uid"]
        ask = self._page.ask
        ready = pod is not None and conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready")
        if ask is None or pod is None or not ready:
            self.forget(uid)
            return None, None
        answer = self._answers.get(uid)
        if answer is None or (now - answer.when).total_seconds() >= self._scan_s(answer) * 0.9:
            activity, namespace = await asyncio.gather(
                ask(self._context.client, obj, pod, now), self._namespace(obj["metadata"]["namespace"])
            )
            answer = self._answers[uid] = _Answer(now, activity, namespace)
        return answer.activity, answer.namespace

    def _scan_s(self, answer: _Answer) -> float:
        return idle_policy(answer.namespace, self._settings).scan_s

    async def _namespace(self, name: str) -> Object | None:
        try:
            return await self._context.client.get(NAMESPACE, name)
        except errors.ApiError:  # an operator of a few namespaces need not have the right
            return None

    def forget(self, uid: str) -> None:
        self._answers.pop(uid, None)

    # -- what follows

    def decide(self, obj: Object, seen: Observed, now: datetime) -> ServedOutcome:
        outcome = self._page.reconcile(obj, seen, now)
        if any(need.kind != PERSISTENT_VOLUME_CLAIM for need in seen.missing):
            outcome.requeue_within(LOOK_AGAIN_S)
        return outcome

    def refused(self, obj: Object, error: errors.ApiError, now: datetime) -> Outcome:
        """The template passed our schema and yet is no pod, or a quota is spent: whoever wrote it has to hear of it."""
        log.info("%s %s: %s", self.kind.kind, obj["metadata"]["name"], error)
        message = explained(error.message)
        status = copy(obj.get("status") or {})
        status.setdefault("phase", "Initializing")
        changed = conditions.set(
            status.setdefault("conditions", []), "Ready", "False", "Refused", message, rfc3339(now)
        )
        events = [EventNote("Warning", "Refused", message)] if changed else []
        return Outcome(status=status, events=events, requeue_after=REFUSED_S)

    async def finish(self, obj: Object, outcome: Outcome) -> None:
        if isinstance(outcome, ServedOutcome) and outcome.suspend:
            meta = obj["metadata"]
            await self._context.client.patch(self.kind, meta["name"], meta["namespace"], {"spec": {"suspend": True}})
