"""RBAC: Roles, ClusterRoles and their bindings, evaluated.

The policy lives in mirrors fed by the store, so a change counts from the moment it is submitted. Decisions are kept
until any policy changes: a controller asks the same question thousands of times.
Rules only ever add rights; no rule takes one away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.auth.policyrules import CompiledRule, Rule
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import wellknown
from danlu.meta.kind import Object
from danlu.meta.roles import aggregated_rules

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import User
    from danlu.embedded.storage.store import Store

MASTERS = "system:masters"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
RBAC_GROUP = "rbac.authorization.k8s.io"
_KEPT_DECISIONS = 5_000


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)


class UnknownRole(LookupError):
    """A binding names a role that is not there; the text is Kubernetes' own."""


class Authorizer:
    def __init__(self, store: Store) -> None:
        self._decisions: dict[tuple[object, ...], Decision] = {}
        self._compiled: dict[tuple[str, str, str], list[CompiledRule]] = {}

        def whole(obj: Object) -> Object:
            return obj

        self._roles = Mirror(store, wellknown.ROLE.resource, whole, self._forget)
        self._cluster_roles = Mirror(store, wellknown.CLUSTER_ROLE.resource, whole, self._forget)
        self._bindings = Mirror(store, wellknown.ROLE_BINDING.resource, whole, self._forget)
        self._cluster_bindings = Mirror(store, wellknown.CLUSTER_ROLE_BINDING.resource, whole, self._forget)

    # -- the question every request asks

    def authorize(
        self,
        user: User,
        verb: str,
        group: str,
        resource: str,
        subresource: str,
        namespace: str,
        name: str,
        path: str | None = None,
    ) -> Decision:
        """`path` is set for requests that are not about a resource."""
        if MASTERS in user.groups:
            return ALLOWED
        asked = (user, verb, group, resource, subresource, namespace)
        # What is allowed whatever the name needs one entry for all names, not one for each.
        decision = self._kept(*asked, "", path)
        return decision if decision.allowed or not name else self._kept(*asked, name, path)

    def _kept(
        self,
        user: User,
        verb: str,
        group: str,
        resource: str,
        subresource: str,
        namespace: str,
        name: str,
        path: str | None,
    ) -> Decision:
        key = (user.name, user.groups, verb, group, resource, subresource, namespace, name, path)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(user, verb, group, resource, subresource, namespace, name, path)
            if len(self._decisions) >= _KEPT_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = decision
        return decision

    def _decide(
        self,
        user: User,
        verb: str,
        group: str,
        resource: str,
        subresource: str,
        namespace: str,
        name: str,
        path: str | None,
    ) -> Decision:
        unknown: list[str] = []
        for binding, subject, rules in self._applying(user, namespace, unknown):
            for rule in rules:
                if path is not None:
                    allowed = rule.allows_path(verb, path)
                else:
                    allowed = rule.allows(verb, group, resource, subresource, name)
                if allowed:
                    return Decision(True, f"RBAC: allowed by {_describe(binding, subject)}")
        return Decision(False, f"RBAC: {_joined(unknown)}" if unknown else "")

    # -- what others ask about policy

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], str]:
        """All rules that apply to the user there, and what could not be found, in words."""
        unknown: list[str] = []
        rules = [rule.rule for _, _, rules in self._applying(user, namespace, unknown) for rule in rules]
        return rules, _joined(unknown)

    def held(self, user: User, namespace: str) -> list[CompiledRule]:
        return [rule for _, _, rules in self._applying(user, namespace, []) for rule in rules]

    def referenced_rules(self, role_ref: Object, namespace: str) -> list[CompiledRule]:
        """Raises UnknownRole."""
        kind, name = role_ref.get("kind", ""), role_ref.get("name", "")
        if kind not in ("Role", "ClusterRole"):
            raise UnknownRole(f'unsupported role reference kind: "{kind}"')
        key = (kind, namespace if kind == "Role" else "", name)
        compiled = self._compiled.get(key)
        if compiled is None:
            mirror = self._roles if kind == "Role" else self._cluster_roles
            role = mirror.get(key[1], name)
            if role is None:
                raise UnknownRole(f'{kind.lower()}.{RBAC_GROUP} "{name}" not found')
            rules = self.effective_rules(role) if kind == "ClusterRole" else role.get("rules") or []
            compiled = self._compiled[key] = [CompiledRule(rule) for rule in rules]
        return compiled

    def effective_rules(self, role: Object) -> list[Rule]:
        """A ClusterRole's rules; gathered at once where it aggregates, so no right waits for a controller."""
        if (role.get("aggregationRule") or {}).get("clusterRoleSelectors"):
            return self._gathered(role, frozenset())
        return role.get("rules") or []

    def _gathered(self, role: Object, above: frozenset[str]) -> list[Rule]:
        """Aggregating roles may aggregate each other; `above` ends a circle."""
        above |= {role["metadata"]["name"]}
        others = []
        for name, other in self._cluster_roles.items():
            if other.get("aggregationRule") and name not in above:
                others.append({**other, "rules": self._gathered(other, above)})
            elif name not in above:
                others.append(other)
        return aggregated_rules(role, others)

    # -- bindings

    def _applying(
        self, user: User, namespace: str, unknown: list[str]
    ) -> Iterator[tuple[Object, Object, list[CompiledRule]]]:
        bindings = [(binding, "") for _, binding in self._cluster_bindings.items()]
        if namespace:
            bindings += [(binding, namespace) for _, binding in self._bindings.items(namespace)]
        for binding, where in bindings:
            subject = _matching_subject(user, binding.get("subjects") or (), where)
            if subject is None:
                continue
            try:
                yield binding, subject, self.referenced_rules(binding.get("roleRef") or {}, where)
            except UnknownRole as error:
                unknown.append(str(error))

    def _forget(self, _: str) -> None:
        self._decisions.clear()
        self._compiled.clear()


def _matching_subject(user: User, subjects: list[Object] | tuple[()], namespace: str) -> Object | None:
    for subject in subjects:
        match subject.get("kind"):
            case "User":
                found = subject.get("name") == user.name
            case "Group":
                found = subject.get("name") in user.groups
            case "ServiceAccount":
                home = subject.get("namespace") or namespace
                found = bool(home) and user.name == f"{SERVICE_ACCOUNT_PREFIX}{home}:{subject.get('name')}"
            case _:
                found = False
        if found:
            return subject
    return None


def _describe(binding: Object, subject: Object) -> str:
    meta, role = binding["metadata"], binding["roleRef"]
    namespace = meta.get("namespace") or ""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    own_name = f"{meta['name']}/{namespace}" if namespace else meta["name"]
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    return f'{kind} "{own_name}" of {role["kind"]} "{role["name"]}" to {subject["kind"]} "{who}"'


def _joined(texts: list[str]) -> str:
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""
