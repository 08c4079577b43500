"""Rules that roles, and rules that bindings, have in common."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column
from danlu.embedded.builtin._shared.hooks import AGE, NAME
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid, not_supported, required
from danlu.meta.kind import Object

GROUP = "rbac.authorization.k8s.io"


def created_at(obj: Object) -> str | None:
    return (obj.get("metadata") or {}).get("creationTimestamp")


# Roles have no printer of their own in Kubernetes; this is what it shows of any such kind.
ROLE_COLUMNS = (NAME, Column("Created At", created_at, type="date", description="When the object was created."))


# -- roles


def rule_errors(rules: list[Object] | None, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(rules or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            field = f"{path}.nonResourceURLs"
            if namespaced:
                errors.append(invalid(field, urls, "namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(field, urls, text))
            continue
        if not rule.get("apiGroups"):
            errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


# -- bindings


def default_binding(obj: Object) -> None:
    reference = obj.get("roleRef")
    if not isinstance(reference, dict):
        reference = obj["roleRef"] = {}
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def binding_errors(obj: Object, kinds: tuple[str, ...], namespaced: bool) -> list[FieldError]:
    reference = obj.get("roleRef") or {}
    errors: list[FieldError] = []
    if reference.get("apiGroup") != GROUP:
        errors.append(not_supported("roleRef.apiGroup", reference.get("apiGroup") or "", [GROUP]))
    if reference.get("kind") not in kinds:
        errors.append(not_supported("roleRef.kind", reference.get("kind") or "", kinds))
    name = reference.get("name")
    if not name:
        errors.append(required("roleRef.name"))
    else:
        errors += [invalid("roleRef.name", name, text) for text in names.path_segment(name)]
    for index, subject in enumerate(obj.get("subjects") or ()):
        errors += _subject_errors(subject, namespaced, f"subjects[{index}]")
    return errors


def _subject_errors(subject: Object, namespaced: bool, path: str) -> list[FieldError]:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += [invalid(f"{path}.name", name, text) for text in names.dns_subdomain(name)]
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
    else:
        errors.append(not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return errors


def reference_errors(new: Object, old: Object) -> list[FieldError]:
    if new.get("roleRef") == old.get("roleRef"):
        return []
    reference = new.get("roleRef") or {}
    shown = {go: reference.get(key) or "" for go, key in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))}
    return [invalid("roleRef", shown, "cannot change roleRef")]


def _role(obj: Object) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind') or ''}/{reference.get('name') or ''}"


def _subjects(obj: Object, kind: str) -> str:
    found = [subject for subject in obj.get("subjects") or () if subject.get("kind") == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{subject.get('namespace') or ''}/{subject.get('name')}" for subject in found)
    return ", ".join(subject.get("name") or "" for subject in found)


def binding_columns(kind: str) -> tuple[Column, ...]:
    return (
        NAME,
        Column("Role", _role, description="The role that is granted."),
        AGE,
        Column("Users", lambda obj: _subjects(obj, "User"), priority=1, description=f"Users in the {kind}"),
        Column("Groups", lambda obj: _subjects(obj, "Group"), priority=1, description=f"Groups in the {kind}"),
        Column(
            "ServiceAccounts",
            lambda obj: _subjects(obj, "ServiceAccount"),
            priority=1,
            description=f"ServiceAccounts in the {kind}",
        ),
    )
