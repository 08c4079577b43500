"""PodGroup as the platform sees it."""

from __future__ import annotations

from collections.abc import Hashable

from danlu.kinds._gang import markers
from danlu.kinds.platform import PlatformKind, PlatformSettings, Right
from danlu.kinds.podgroup.reconcile import reconcile
from danlu.kinds.podgroup.schema import COLUMNS, POD_GROUP, RULES, PodGroupSpec, PodGroupStatus
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD
from danlu.runtime.applying import Applier
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

NAME = "podgroup-controller"
GATHER_S = 0.2  # changes of a group's pods come in bursts: one status for all of them
BY_GROUP = "podgroup"


def _group_key(pod: Object) -> list[Hashable]:
    name = markers.group_of(pod)
    return [(pod["metadata"].get("namespace") or "", name)] if name else []


def controller(manager: Manager, _settings: PlatformSettings) -> Controller:
    groups, pods = manager.informer(POD_GROUP), manager.informer(POD)
    pods.add_index(BY_GROUP, _group_key)
    applier = Applier(manager.client, NAME, manager.recorder(NAME))

    async def run(request: Request) -> Outcome | None:
        group = groups.get(request.namespace, request.name)
        if group is None:
            return None
        own = pods.by_index(BY_GROUP, (request.namespace, request.name))
        outcome = reconcile(group, own, manager.clock())
        await applier.carry_out(POD_GROUP, group, outcome)
        return outcome

    found = Controller(NAME, run)

    def changed(_event: str, obj: Object, _old: Object | None) -> None:
        name = markers.group_of(obj)
        if name:
            found.queue.add_after(Request(obj["metadata"].get("namespace") or "", name), GATHER_S)

    def group_changed(event: str, group: Object, old: Object | None) -> None:
        if old is None or old.get("spec") != group.get("spec"):
            meta = group["metadata"]
            found.queue.add_after(Request(meta.get("namespace") or "", meta["name"]), GATHER_S)

    groups.add_handler(group_changed)
    pods.add_handler(changed)
    return found


KIND = PlatformKind(
    kind=POD_GROUP,
    spec=PodGroupSpec,
    status=PodGroupStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    rights=(Right(("",), ("pods",), ("get", "list", "watch")),),
)
