"""A controller from a pure function: load → decide → apply, where only "decide" is the kind's own.

`reconcile(obj, observed, now) -> Outcome` sees the object and the children it controls, by kind, as they are in the
cache. What it returns is carried out by `applying`; what it said before is not remembered.

What the server refuses to create is shown to the function in a second look, so that the status can tell of it. A right
that we lack to read, change or delete is told by a condition of ours beside what the function says (`blocking`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from danlu import errors
from danlu.client.informer import controller_uid
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.runtime import blocking
from danlu.runtime.applying import Applier
from danlu.runtime.controller import DEFAULT_WORKERS, Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Creation, Outcome, Refusal, Request, Unreconcilable

log = logging.getLogger(__name__)

Children = Mapping[Kind, Sequence[Object]]
Seen = TypeVar("Seen")
PureReconcile = Callable[[Object, Seen, datetime], Outcome]
Observe = Callable[[Object, Children, Sequence[Refusal]], Seen]
"""What the function is to see: made of the object, its children, and what was refused in the attempt just made."""

BY_CONTROLLER = "controller"
LONGEST_PATIENCE_S = 5.0  # while many others start
PATIENCE_S = 1.0  # four replicas that start or end at nearly the same time are one write, not four
BLINK_S = 0.05
RETRY_REFUSED_S = 5.0  # a quota may be raised, a name may become free: nobody tells us


Explain = Callable[[str], str]
"""A server's words, with what mends it behind them."""


def children_only(_obj: Object, children: Children, _refused: Sequence[Refusal]) -> Children:
    return children


def pure_controller(
    manager: Manager,
    name: str,
    kind: Kind,
    owns: Sequence[Kind],
    reconcile: PureReconcile[Children],
    *,
    workers: int = DEFAULT_WORKERS,
) -> Controller:
    """`name` is the field manager and the source of events; children in `owns` wake the object that controls them."""
    return observing_controller(manager, name, kind, owns, children_only, reconcile, workers=workers)


def observing_controller(
    manager: Manager,
    name: str,
    kind: Kind,
    owns: Iterable[Kind],
    observe: Observe[Seen],
    reconcile: PureReconcile[Seen],
    *,
    workers: int = DEFAULT_WORKERS,
    reads: Iterable[Kind] = (),
    explain: Explain = str,
) -> Controller:
    """As `pure_controller`, for a function that must see more than the children; `reads` are the kinds of what more."""
    parents = manager.informer(kind)
    children = {child: manager.informer(child) for child in owns}
    applier = Applier(manager.client, name, manager.recorder(name), (*children.values(), parents), explain=explain)
    needed = {kind, *children, *reads}

    # By uid and whether it is patient: when a status that may wait is to be written at the latest.
    unwritten: dict[tuple[str, bool], float] = {}
    making: set[str] = set()  # by uid: whose last creations are under way
    refusals: dict[str, list[Refusal]] = {}  # by uid: what was refused of those

    async def run(request: Request) -> Outcome | None:
        obj = parents.get(request.namespace, request.name)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return None  # its children go with it
        uid = obj["metadata"]["uid"]
        found = {child: informer.by_index(BY_CONTROLLER, uid) for child, informer in children.items()}
        refused = refusals.pop(uid, [])
        try:
            outcome = reconcile(obj, observe(obj, found, refused), manager.clock())
        except Unreconcilable:
            raise  # the controller tells its owner, once
        except Exception as error:
            # A mistake of ours. Whoever owns the object would wait for ever and never learn why.
            applier.recorder.warning(obj, "InternalError", f"{name} cannot handle this object: {error!r}")
            raise
        over = blocking.is_over(_conditions(obj.get("status")))
        lacking = "" if over else next(iter(manager.forbidden(needed)), "")
        now_refused: list[Refusal] = []
        try:
            refused += (now_refused := await applier.carry_out_children(obj, outcome))
        except errors.Forbidden as error:
            if over or blocking.NO_RIGHT not in error.message:
                applier.recorder.warning(obj, blocking.REFUSED, explain(error.message))
                raise
            lacking = error.message
            # What was not done is not told either.
            outcome = Outcome(status=dict(obj.get("status") or {}), requeue_after=RETRY_REFUSED_S)
        if now_refused:
            outcome.status = reconcile(obj, observe(obj, found, refused), manager.clock()).status
        if refused:
            outcome.patient = outcome.beginning = False
            outcome.requeue_after = min(outcome.requeue_after or RETRY_REFUSED_S, RETRY_REFUSED_S)
        tell_lacking(obj, outcome, lacking)
        await tell(obj, outcome)
        last = [one for one in outcome.create_last if not applier.is_seen(one.obj)]  # some may have come meanwhile
        if last and not refused and uid not in making:
            making.add(uid)
            controller.aside(make_last(request, obj, last), f"{name}: last children of {request}")
        return outcome

    async def make_last(request: Request, obj: Object, wanted: Sequence[Creation]) -> None:
        uid = obj["metadata"]["uid"]
        try:
            refused = await applier.create_all(obj, wanted)
            if refused:
                refusals[uid] = refused
        except errors.ApiError as error:
            log.debug("%s: %s: %s; again", name, request, error)
            await asyncio.sleep(1.0)
        finally:
            making.discard(uid)
        controller.queue.add(request)  # to tell of it, or to make what has come to be wanted meanwhile

    def tell_lacking(obj: Object, outcome: Outcome, said: str) -> None:
        """Beside what the function says."""
        status, before = outcome.status, _conditions(obj.get("status"))
        if status is None:
            return
        if not said:
            if blocking.is_told(_conditions(status)):
                status["conditions"] = blocking.freed(_conditions(status))
            return
        message = explain(said)
        status["conditions"] = blocking.told(_conditions(status), message, before, rfc3339(manager.clock()))
        if not blocking.is_told(before, message):
            outcome.patient = outcome.beginning = False
            applier.recorder.warning(obj, blocking.REASON, message)

    async def tell(obj: Object, outcome: Outcome) -> None:
        uid = obj["metadata"]["uid"]
        patient = outcome.patient
        if (patient or outcome.beginning) and outcome.status != (obj.get("status") or {}):
            now = asyncio.get_running_loop().time()
            left = unwritten.setdefault((uid, patient), now + (PATIENCE_S if patient else BLINK_S)) - now
            if left > 0 or (patient and left > PATIENCE_S - LONGEST_PATIENCE_S and not manager.calm()):
                wait = left if left > 0 else PATIENCE_S
                outcome.requeue_after = min(outcome.requeue_after or wait, wait)
                return
        for key in ((uid, True), (uid, False)):
            unwritten.pop(key, None)
        try:
            await applier.tell(kind, obj, outcome)
        except errors.Forbidden as error:
            applier.recorder.warning(obj, blocking.REFUSED, explain(error.message))
            raise

    controller = Controller(name, run, workers=workers)
    controller.watches(parents)
    for informer in children.values():
        informer.add_index(BY_CONTROLLER, controller_uid)
        controller.owns(informer, kind)
    return controller


def _conditions(status: Object | None) -> Sequence[Object]:
    return (status or {}).get("conditions") or ()
