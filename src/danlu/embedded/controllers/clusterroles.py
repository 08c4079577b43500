"""ClusterRoles with an aggregationRule: their rules are the union of the rules of the roles it selects."""

from __future__ import annotations

from danlu import errors
from danlu.meta import objects
from danlu.meta.roles import aggregated_rules
from danlu.meta.wellknown import CLUSTER_ROLE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request


def make(manager: Manager) -> Controller:
    roles, client = manager.informer(CLUSTER_ROLE), manager.client

    async def reconcile(request: Request) -> Outcome | None:
        role = roles.get(None, request.name)
        if role is None or not role.get("aggregationRule"):
            return None
        rules = aggregated_rules(role, roles.list())
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
