"""Project as the platform sees it."""

from __future__ import annotations

from functools import partial

from danlu import errors
from danlu.client.informer import controller_uid
from danlu.kinds.platform import PlatformKind, PlatformSettings, Right
from danlu.kinds.project.quotaprofile import NAMESPACE as NAMESPACE_OF_PROFILES
from danlu.kinds.project.quotaprofile import QUOTA_PROFILE
from danlu.kinds.project.reconcile import NETWORK_POLICY, reconcile
from danlu.kinds.project.schema import COLUMNS, PROJECT, ProjectSpec, ProjectStatus
from danlu.meta.kind import Object
from danlu.meta.wellknown import NAMESPACE, RESOURCE_QUOTA, SERVICE_ACCOUNT
from danlu.runtime.applying import Applier
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.pure import BY_CONTROLLER
from danlu.runtime.reconcile import Outcome, Request

OWNS = (RESOURCE_QUOTA, SERVICE_ACCOUNT)
NAME = "project-controller"
PROFILE_SECONDS = 30.0  # until a changed QuotaProfile is followed


def controller(manager: Manager, settings: PlatformSettings) -> Controller:
    decide = partial(reconcile, settings=settings)
    projects, namespaces = manager.informer(PROJECT), manager.informer(NAMESPACE)
    children = {kind: manager.informer(kind) for kind in OWNS}
    applier = Applier(
        manager.client, NAME, manager.recorder(NAME), [namespaces, *children.values()], kinds=(NETWORK_POLICY,)
    )

    async def run(request: Request) -> Outcome | None:
        obj = projects.get(request.namespace, request.name)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return None
        uid = obj["metadata"]["uid"]
        observed = {kind: informer.by_index(BY_CONTROLLER, uid) for kind, informer in children.items()}
        observed[QUOTA_PROFILE] = await profile_of(obj)
        here = namespaces.get(None, obj["metadata"]["namespace"])
        observed[NAMESPACE] = [here] if here is not None else []
        outcome = decide(obj, observed, manager.clock())
        if obj["spec"].get("quotaProfile"):
            outcome.requeue_after = PROFILE_SECONDS
        await applier.carry_out(PROJECT, obj, outcome)
        return outcome

    async def profile_of(obj: Object) -> list[Object]:
        """Asked for, not watched: a cluster where nobody has QuotaProfiles need not serve them."""
        name = obj["spec"].get("quotaProfile")
        if not name:
            return []
        try:
            return [await manager.client.get(QUOTA_PROFILE, name, NAMESPACE_OF_PROFILES)]
        except errors.NotFound:
            return []

    made = Controller(NAME, run)
    made.watches(projects)
    for informer in children.values():
        informer.add_index(BY_CONTROLLER, controller_uid)
        made.owns(informer, PROJECT)
    return made


KIND = PlatformKind(
    kind=PROJECT,
    spec=ProjectSpec,
    status=ProjectStatus,
    controller=controller,
    columns=COLUMNS,
    owns=OWNS,
    rights=(
        Right(("",), ("namespaces",), ("get", "list", "watch", "patch")),
        Right(("tensorstack.dev",), ("quotaprofiles",), ("get",)),
        Right(("networking.k8s.io",), ("networkpolicies",), ("get", "create", "patch", "delete")),
    ),
)
