"""ClusterRoles with an aggregationRule: their rules are the union of the rules of the roles it selects."""

from __future__ import annotations

from danlu import errors
from danlu.meta import labels, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CLUSTER_ROLE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request


def aggregated(role: Object, roles: list[Object]) -> list[Object]:
    rules: list[Object] = []
    for stated in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = labels.from_label_selector(stated)
        for other in sorted(roles, key=objects.name):
            if objects.uid(other) == objects.uid(role) or not selector.matches(objects.labels_of(other)):
                continue
            rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules


def make(manager: Manager) -> Controller:
    roles, client = manager.informer(CLUSTER_ROLE), manager.client

    async def reconcile(request: Request) -> Outcome | None:
        role = roles.get(None, request.name)
        if role is None or not role.get("aggregationRule"):
            return None
        rules = aggregated(role, roles.list())
        if rules != (role.get("rules") or []):
            try:
                await client.update(CLUSTER_ROLE, {**role, "rules": rules})
            except errors.NotFound:
                return None
        return None

    controller = Controller("cluster roles", reconcile, workers=1)
    controller.watches(
        roles,
        lambda _: [Request("", objects.name(role)) for role in roles.list() if role.get("aggregationRule")],
    )
    return controller
