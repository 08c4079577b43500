"""Which requests an admission policy, or a binding of one, is about: its rules and selectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.registry import Registry
from danlu.meta.kind import Object
from danlu.meta.labels import from_label_selector
from danlu.meta.wellknown import NAMESPACE


def matches(constraints: Mapping[str, Any], a: Attributes, namespace: Object | None, registry: Registry) -> bool:
    """`constraints`: matchConstraints of a policy, or matchResources of a binding; rules left out match everything."""
    if not _namespace_fits(constraints.get("namespaceSelector"), a, namespace):
        return False
    if not _object_fits(constraints.get("objectSelector"), a):
        return False
    versions = _versions(constraints, a, registry)
    if any(rule_fits(rule, a, versions) for rule in constraints.get("excludeResourceRules") or ()):
        return False
    rules = constraints.get("resourceRules")
    return not rules or any(rule_fits(rule, a, versions) for rule in rules)


def may_match(constraints: Mapping[str, Any], a: Attributes, registry: Registry) -> bool:
    """Whether a write of this kind, by this operation, can match at all, whatever the object and its namespace are."""
    rules = constraints.get("resourceRules")
    versions = _versions(constraints, a, registry)
    return not rules or any(_is_about(rule, a, versions) for rule in rules)


def _versions(constraints: Mapping[str, Any], a: Attributes, registry: Registry) -> list[str]:
    kind = a.served.kind
    if constraints.get("matchPolicy") == "Exact":
        return [kind.version]
    return [served.kind.version for served in registry.by_resource(kind.group, kind.plural)]


def _namespace_fits(selector: Mapping[str, Any] | None, a: Attributes, namespace: Object | None) -> bool:
    if not selector:
        return True
    if a.served.key == NAMESPACE.resource:
        namespace = a.obj or a.old
    if namespace is None:  # not in a namespace: no selector keeps it out
        return True
    return from_label_selector(selector).matches((namespace.get("metadata") or {}).get("labels") or {})


def _object_fits(selector: Mapping[str, Any] | None, a: Attributes) -> bool:
    if not selector:
        return True
    wanted = from_label_selector(selector)
    return any(
        wanted.matches((obj.get("metadata") or {}).get("labels") or {}) for obj in (a.obj, a.old) if obj is not None
    )


def rule_fits(rule: Mapping[str, Any], a: Attributes, versions: Sequence[str]) -> bool:
    names = rule.get("resourceNames")
    return _is_about(rule, a, versions) and (not names or a.name in names)


def _is_about(rule: Mapping[str, Any], a: Attributes, versions: Sequence[str]) -> bool:
    kind = a.served.kind
    scope = rule.get("scope") or "*"
    return (
        _has(rule.get("operations"), a.operation)
        and _has(rule.get("apiGroups"), kind.group)
        and any(_has(rule.get("apiVersions"), version) for version in versions)
        and any(_resource_fits(one, kind.plural, a.subresource) for one in rule.get("resources") or ())
        and scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
    )


def _has(values: Sequence[str] | None, value: str) -> bool:
    return bool(values) and ("*" in values or value in values)  # type: ignore[operator]


def _resource_fits(pattern: str, plural: str, subresource: str) -> bool:
    """`pods`, `pods/status`, `pods/*`, `*/status`, `*` (no subresources), `*/*`."""
    wanted, slash, below = pattern.partition("/")
    if wanted not in ("*", plural):
        return False
    return below in ("*", subresource) if slash else not subresource
