"""What a Project's `reconcile` sees: its children, the namespace it names, the QuotaProfile it follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from danlu import errors
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.project.quotaprofile import NAMESPACE as NAMESPACE_OF_PROFILES
from danlu.kinds.project.quotaprofile import QUOTA_PROFILE
from danlu.kinds.project.reconcile import NETWORK_POLICY, reconcile
from danlu.kinds.project.schema import PROJECT
from danlu.meta.kind import Object
from danlu.meta.wellknown import NAMESPACE, RESOURCE_QUOTA, SERVICE_ACCOUNT
from danlu.runtime.reconcile import Outcome, Refusal
from danlu.runtime.reconciler import Children, Context, Reconciler, Watch

PROFILE_S = 30.0  # until a changed QuotaProfile is followed


class ProjectReconciler(Reconciler[Children]):
    kind = PROJECT
    owns = (RESOURCE_QUOTA, SERVICE_ACCOUNT)
    reads = (Watch(NAMESPACE),)
    writes = (NETWORK_POLICY,)

    def __init__(self, settings: PlatformSettings) -> None:
        self._settings = settings

    def start(self, context: Context) -> None:
        self._client = context.client
        self._namespaces = context.caches[NAMESPACE]

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Children:
        here = self._namespaces.get(None, obj["metadata"]["namespace"])
        return {
            **children,
            QUOTA_PROFILE: await self._profile(obj),
            NAMESPACE: [here] if here is not None else [],
        }

    async def _profile(self, obj: Object) -> list[Object]:
        """Asked for, not watched: a cluster where nobody has QuotaProfiles need not serve them."""
        name = obj["spec"].get("quotaProfile")
        if not name:
            return []
        try:
            return [await self._client.get(QUOTA_PROFILE, name, NAMESPACE_OF_PROFILES)]
        except errors.NotFound:
            return []

    def decide(self, obj: Object, seen: Children, now: datetime) -> Outcome:
        outcome = reconcile(obj, seen, now, self._settings)
        if obj["spec"].get("quotaProfile"):
            outcome.requeue_after = PROFILE_S
        return outcome
