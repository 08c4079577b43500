"""Who attacks, and the fuzzer's own model of what each may see and change.

It shares nothing with the server's RBAC: it knows rules as (namespace, resources, verbs) and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

READ = frozenset(("get", "list", "watch"))
WRITE = frozenset(("create", "update", "patch", "delete", "deletecollection"))
EVERY_NAMESPACE = ("a", "b", "c", "d")
ADMIN, ANONYMOUS = "admin", "anonymous"

# Nobody has rights in d; in c nobody may create or delete.
WORK = {
    "": ["configmaps", "secrets", "pods", "pods/log", "pods/status", "pods/exec", "services", "persistentvolumeclaims",
         "serviceaccounts", "podtemplates", "replicationcontrollers", "replicationcontrollers/scale", "events",
         "resourcequotas", "limitranges", "endpoints"],
    "apps": ["*"], "batch": ["*"], "kubeflow.org": ["*"], "batch.tensorstack.dev": ["*"],
    "coordination.k8s.io": ["leases"], "tensorstack.dev": ["quotaprofiles", "notebooks", "tensorboards"],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    home: str = ""  # the only namespace with rights
    rules: tuple[dict[str, Any], ...] = ()
    reads: frozenset[str] = field(default_factory=frozenset)  # plurals, or "*"
    writes: frozenset[str] = field(default_factory=frozenset)  # plurals; "*" all; "configmaps/shared" one object

    def may_read(self, namespace: str, resource: str) -> bool:
        return namespace == self.home and ("*" in self.reads or resource in self.reads)

    def may_change(self, namespace: str, resource: str, name: str) -> bool:
        found = self.writes & {"*", resource, f"{resource}/{name}"}
        return namespace == self.home and bool(found)

    @property
    def may_grant(self) -> bool:
        """Whoever has every right in a namespace may hand it on there."""
        return "*" in self.writes


def _rule(groups: list[str], resources: list[str], verbs: list[str], names: list[str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return found | ({"resourceNames": names} if names else {})


_WORKED = frozenset(resource for resources in WORK.values() for resource in resources if "/" not in resource) - {"*"}
PEOPLE = {
    person.name: person
    for person in (
        Person("alice", "a", (_rule(["*"], ["*"], ["*"]),), frozenset("*"), frozenset("*")),
        Person(
            "bob",
            "b",
            tuple(_rule([group], names, sorted(READ | WRITE)) for group, names in WORK.items()),
            _WORKED,
            _WORKED,
        ),
        Person(
            "carol",
            "c",
            (_rule([""], ["configmaps", "pods", "services"], sorted(READ)), _rule(["apps"], ["*"], sorted(READ))),
            frozenset(("configmaps", "pods", "services")),
        ),
        Person(
            "dave",
            "c",
            (
                _rule([""], ["configmaps"], ["get", "list", "watch"]),
                _rule([""], ["configmaps"], ["update", "patch"], ["shared"]),
                _rule([""], ["secrets"], ["get", "update", "patch"], ["shared"]),
            ),
            frozenset(("configmaps",)),
            frozenset(("configmaps/shared", "secrets/shared")),
        ),
        Person(ANONYMOUS),
    )
}
