"""Roles, made from what each kind says of itself: what its controller writes, and what people may do with it."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.kinds.platform import PlatformKind, Right
from danlu.meta.kind import Object

OPERATOR = "danlu-operator"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
CORE_EVENTS = Right(("",), ("events",), ("list", "create", "patch"))
LEASES = Right(("coordination.k8s.io",), ("leases",), ("get", "create", "update"))  # one operator at work at a time


def operator_role(kinds: Sequence[PlatformKind]) -> Object:
    """All that the controllers do, and nothing else."""
    rights: list[Right] = []
    for kind in kinds:
        group, plural = (kind.kind.group,), kind.kind.plural
        rights.append(Right(group, (plural,), (*READ, "update", "patch", "delete")))
        # Children may name their owner with blockOwnerDeletion only by leave of its finalizers.
        rights.append(Right(group, (f"{plural}/status", f"{plural}/finalizers"), ("get", "update", "patch")))
        rights += [Right((child.group,), (child.plural,), (*READ, *WRITE)) for child in kind.owns]
        rights += kind.rights
    return _role(OPERATOR, [*rights, CORE_EVENTS])


def leader_role(namespace: str) -> Object:
    """The lease by which operators agree who works; only in their own namespace, where nobody else's leases are."""
    role = _role(OPERATOR, [LEASES])
    return {**role, "kind": "Role", "metadata": {**role["metadata"], "namespace": namespace}}


def user_roles(kinds: Sequence[PlatformKind]) -> list[Object]:
    """Join Kubernetes' own roles: who may edit a namespace may edit what the platform adds to it."""
    namespaced = [kind for kind in kinds if kind.kind.namespaced]
    return [
        _role("danlu-view", _rights(namespaced, READ), joins=("view",)),
        _role("danlu-edit", _rights(namespaced, (*READ, *WRITE, "deletecollection")), joins=("edit", "admin")),
    ]


def _rights(kinds: Sequence[PlatformKind], verbs: tuple[str, ...]) -> list[Right]:
    """One for each kind, so that a kind can be left out of an installation with its rights."""
    scaling = tuple(verb for verb in verbs if verb in ("get", "update", "patch"))
    rights = []
    for kind in kinds:
        rights.append(Right((kind.kind.group,), (kind.kind.plural,), verbs))
        if kind.scale is not None:
            rights.append(Right((kind.kind.group,), (f"{kind.kind.plural}/scale",), scaling))
    return rights


def _role(name: str, rights: Sequence[Right], joins: tuple[str, ...] = ()) -> Object:
    labels = {"app.kubernetes.io/part-of": "danlu"}
    labels |= {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in joins}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": [
            {"apiGroups": list(right.groups), "resources": list(right.resources), "verbs": list(right.verbs)}
            for right in sorted(set(rights), key=lambda one: (one.groups, one.resources, one.verbs))
        ],
    }
