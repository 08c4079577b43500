"""A controller from a pure function: load → decide → apply, where only "decide" is the kind's own.

`reconcile(obj, observed, now) -> Outcome` sees the object and the children it controls, by kind, as they are in the
cache. What it returns is carried out by `applying`; what it said before is not remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from danlu.client.informer import controller_uid
from danlu.meta.kind import Kind, Object
from danlu.runtime.applying import Applier
from danlu.runtime.controller import DEFAULT_WORKERS, Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

Children = Mapping[Kind, Sequence[Object]]
PureReconcile = Callable[[Object, Children, datetime], Outcome]

BY_CONTROLLER = "controller"


def pure_controller(
    manager: Manager,
    name: str,
    kind: Kind,
    owns: Sequence[Kind],
    reconcile: PureReconcile,
    *,
    workers: int = DEFAULT_WORKERS,
) -> Controller:
    """`name` is the field manager and the source of events; children in `owns` wake the object that controls them."""
    parents = manager.informer(kind)
    children = {child: manager.informer(child) for child in owns}
    applier = Applier(manager.client, name, manager.recorder(name), children.values())

    async def run(request: Request) -> Outcome | None:
        obj = parents.get(request.namespace, request.name)
        if obj is None:
            return None
        uid = obj["metadata"]["uid"]
        observed = {child: informer.by_index(BY_CONTROLLER, uid) for child, informer in children.items()}
        outcome = reconcile(obj, observed, manager.clock())
        await applier.carry_out(kind, obj, outcome)
        return outcome

    controller = Controller(name, run, workers=workers)
    controller.watches(parents)
    for informer in children.values():
        informer.add_index(BY_CONTROLLER, controller_uid)
        controller.owns(informer, kind)
    return controller
