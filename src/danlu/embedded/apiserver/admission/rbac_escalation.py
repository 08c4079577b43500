"""Nobody grants rights they do not have, unless `escalate` (roles) or `bind` (bindings) was given to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.auth.policyrules import FULL_AUTHORITY, describe, go_list, missing
from danlu.embedded.apiserver.auth.rbac import MASTERS, RBAC_GROUP, Authorizer, UnknownRole
from danlu.errors import NotFound
from danlu.meta import wellknown
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROLES = frozenset({wellknown.ROLE.resource, wellknown.CLUSTER_ROLE.resource})
_BINDINGS = frozenset({wellknown.ROLE_BINDING.resource, wellknown.CLUSTER_ROLE_BINDING.resource})
_COLLECTED = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class RbacEscalation(Handler):
    resources = _ROLES | _BINDINGS

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate(self, a: Attributes) -> None:
        if a.operation not in (CREATE, UPDATE) or a.obj is None or MASTERS in a.user.groups:
            return
        if a.old is not None and _same_policy(a.obj, a.old):
            return
        if a.served.key in _ROLES:
            self._check_role(a, a.obj)
        else:
            self._check_binding(a, a.obj)

    def _check_role(self, a: Attributes, role: Object) -> None:
        plural = a.served.kind.plural
        name = a.name if a.operation == UPDATE else ""  # a create has no name in its path, as upstream asks it
        if self._authorizer.authorize(a.user, "escalate", RBAC_GROUP, plural, "", a.namespace, name).allowed:
            return
        self._require(a, role.get("rules") or ())
        aggregates = any(
            ((side or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") for side in (role, a.old)
        )
        if aggregates and missing(self._authorizer.held(a.user, a.namespace), FULL_AUTHORITY):
            raise a.forbidden("must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, a: Attributes, binding: Object) -> None:
        reference = binding.get("roleRef") or {}
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(reference.get("kind", ""), "")
        group, name = reference.get("apiGroup", ""), reference.get("name", "")
        if plural and self._authorizer.authorize(a.user, "bind", group, plural, "", a.namespace, name).allowed:
            return
        try:
            rules = self._authorizer.referenced_rules(reference, a.namespace)
        except UnknownRole:
            raise NotFound.of(a.served.kind.plural, name, RBAC_GROUP) from None  # the binding's kind, as upstream
        self._require(a, [rule.rule for rule in rules])

    def _require(self, a: Attributes, wanted: Iterable[Object]) -> None:
        lacking = missing(self._authorizer.held(a.user, a.namespace), wanted)
        if lacking:
            raise a.forbidden(
                f'user "{a.user.name}" (groups={go_list(a.user.groups)}) is attempting to grant RBAC permissions '
                f"not currently held:\n{describe(lacking)}"
            )


def _same_policy(new: Object, old: Object) -> bool:
    """Only what the garbage collector touches has changed."""
    return _without_collected(new) == _without_collected(old)


def _without_collected(obj: Object) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTED}
    return {**obj, "metadata": meta}
