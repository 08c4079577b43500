"""`Shell`: the controller around a `Reconciler`: load → observe → decide → apply, the same for every kind.

    debounce          a status that tells of nothing but counts waits for more of them
    refusedcreations  what the server would not create is shown to `decide` in a second look
    blocked           a right that we lack is told by a condition beside what `decide` says
    deferred          children that nobody waits for

What `decide` said before is not remembered. A status that we write ourselves wakes nobody: `decide` has just said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from danlu import errors
from danlu.client.indexer import controller_uid
from danlu.client.informer import DELETED, Informer
from danlu.diagnose import stated
from danlu.meta.kind import Kind, Object
from danlu.runtime import event_priority, refusedcreations
from danlu.runtime.blocked import MissingRights
from danlu.runtime.controller import Controller
from danlu.runtime.debounce import StatusDebounce
from danlu.runtime.deferred import DeferredCreations
from danlu.runtime.manager import Manager
from danlu.runtime.outcomewriter import Applier
from danlu.runtime.reconcile import Outcome, Refusal, Request, Unreconcilable
from danlu.runtime.reconciler import Children, Context, Reconciler, Seen

BY_CONTROLLER = "controller"
REFUSED = (errors.Forbidden, errors.Invalid, errors.BadRequest)


class Shell(Generic[Seen]):
    def __init__(self, manager: Manager, reconciler: Reconciler[Seen]) -> None:
        self._manager = manager
        self._reconciler = reconciler
        self._parents = manager.informer(reconciler.kind)
        labels = reconciler.child_labels
        self._children = {kind: manager.informer(kind, labels=labels.get(kind, "")) for kind in reconciler.owns}
        self._read = {watch.kind: manager.informer(watch.kind) for watch in reconciler.reads}
        self._writing: dict[str, Object] = {}  # by uid: the status that is being written
        recorder = manager.recorder(reconciler.name)
        self._recorder = recorder
        self.controller = Controller(reconciler.name, self.reconcile, workers=reconciler.workers)
        self._applier = Applier(
            *(manager.client, reconciler.name, recorder),
            informers=(*self._read.values(), *self._children.values(), self._parents),
            kinds=reconciler.writes,
            explain=reconciler.explain,
        )
        self._rights = MissingRights(manager, recorder, reconciler.watched, reconciler.explain)
        self._debounce = StatusDebounce(manager.calm)
        self._refusals = refusedcreations.Refusals()
        self._deferred = DeferredCreations(self.controller, self._applier, self._refusals)
        caches: Mapping[Kind, Informer] = {**self._read, **self._children, reconciler.kind: self._parents}
        reconciler.start(Context(manager, self.controller, recorder, caches))
        self._watch()  # a cache that is filled already tells of its objects at once

    @property
    def informers(self) -> Sequence[Informer]:
        """Those that must be filled before the first reconcile."""
        return [self._parents, *self._children.values(), *self._read.values()]

    # -- what wakes it

    def _watch(self) -> None:
        reconciler = self._reconciler
        self.controller.watches(self._parents, gather_s=reconciler.gather_s, ignores=self._is_own_status)
        self._parents.add_handler(self._changed)
        for informer in self._children.values():
            informer.add_index(BY_CONTROLLER, controller_uid)
            self.controller.owns(informer, reconciler.kind)
        for watch in reconciler.reads:
            if watch.wakes is not None:
                self.controller.watches(self._read[watch.kind], watch.wakes, gather_s=watch.gather_s)

    def _is_own_status(self, event: str, obj: Object, old: Object | None) -> bool:
        writing = self._writing.get(obj["metadata"]["uid"])
        return writing is not None and obj.get("status") == writing and not event_priority.is_urgent(event, obj, old)

    def _changed(self, event: str, obj: Object, _old: Object | None) -> None:
        if event == DELETED:
            uid = obj["metadata"]["uid"]
            for part in (self._debounce, self._refusals, self._reconciler):
                part.forget(uid)

    # -- one reconcile

    async def reconcile(self, request: Request) -> Outcome | None:
        obj = self._parents.get(request.namespace, request.name)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return None  # its children go with it
        uid = obj["metadata"]["uid"]
        children = {kind: informer.by_index(BY_CONTROLLER, uid) for kind, informer in self._children.items()}
        refused = self._refusals.take(uid)
        outcome = await self._decide(obj, children, refused)
        lacking = self._rights.unreadable(obj)
        now_refused: Sequence[Refusal] = ()
        try:
            now_refused = await self._applier.carry_out_children(obj, outcome)
        except REFUSED as error:
            told = self._reconciler.refused(obj, error, self._manager.clock())
            if told is None:
                outcome, lacking = self._unable(obj, error), error.message
            else:
                outcome = told
        if now_refused:
            refused += now_refused
            outcome.status = (await self._decide(obj, children, refused)).status
        if refused:
            refusedcreations.retry(outcome)
        self._rights.tell(obj, outcome, lacking)
        await self._tell(obj, outcome)
        if outcome.create_last and not refused:
            self._deferred.start(request, obj, outcome.create_last)
        await self._reconciler.finish(obj, outcome)
        return outcome

    async def _decide(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Outcome:
        try:
            seen = await self._reconciler.observe(obj, children, refused)
            return self._reconciler.decide(obj, seen, self._manager.clock())
        except (Unreconcilable, errors.ApiError):
            raise  # the controller tells the owner of the one, once; the other is the server's
        except Exception as error:
            # A mistake of ours. Whoever owns the object would wait for ever and never learn why.
            name = self._reconciler.name
            self._recorder.warning(obj, "InternalError", stated("DL-INTERNAL", controller=name, error=repr(error)))
            raise

    def _unable(self, obj: Object, error: errors.ApiError) -> Outcome:
        """What was not done for want of a right is not told either. Raises what has another cause."""
        if not self._rights.is_cause(obj, error):
            raise error
        return Outcome(status=dict(obj.get("status") or {}), requeue_after=refusedcreations.RETRY_S)

    async def _tell(self, obj: Object, outcome: Outcome) -> None:
        if self._debounce.holds(obj, outcome):
            return
        uid = obj["metadata"]["uid"]
        if outcome.status is not None:
            self._writing[uid] = outcome.status
        try:
            await self._applier.tell(self._reconciler.kind, obj, outcome)
        except errors.Forbidden as error:
            self._rights.warn(obj, error)
            raise
        finally:
            self._writing.pop(uid, None)


def add_controller(manager: Manager, reconciler: Reconciler[Seen]) -> Controller:
    """Builds a reconciler's controller; it starts with the manager."""
    return manager.add(Shell(manager, reconciler).controller)


async def bring_in(manager: Manager, reconciler: Reconciler[Seen]) -> Controller:
    """As `add_controller`, while others run already; it begins when what it reads is in the caches."""
    shell = Shell(manager, reconciler)
    for informer in shell.informers:
        await informer.synced()
    return manager.add(shell.controller)
