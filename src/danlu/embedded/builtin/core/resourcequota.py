"""ResourceQuotas: what a namespace may hold and ask for in all."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.embedded.builtin._shared.quantities import canonicalise
from danlu.embedded.builtin._shared.resources import amount_errors, is_standard_quota, name_errors, quota_name_texts
from danlu.meta import names
from danlu.meta.fields import IMMUTABLE, FieldError, invalid, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import RESOURCE_QUOTA

_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_RESOURCES_OF_SCOPE = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_EXISTS_ONLY = frozenset({"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"})
_EXISTS_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


def default(obj: Object) -> None:
    canonicalise((obj.get("spec") or {}).get("hard"))
    status = obj.get("status") or {}
    canonicalise(status.get("hard"))
    canonicalise(status.get("used"))


def prepare_create(obj: Object) -> None:
    obj["status"] = {}


def _amounts(values: dict[str, Any] | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in (values or {}).items():
        field = f"{path}[{name}]"
        errors += name_errors(field, name, quota_name_texts)
        errors += amount_errors(field, name, value)
    return errors


def _fits(scope: str, resource: str) -> bool:
    """Whether a scope can narrow the count of this resource."""
    if scope not in _RESOURCES_OF_SCOPE or not is_standard_quota(resource):
        return True
    return resource in _RESOURCES_OF_SCOPE[scope]


def _scope_errors(spec: Object) -> list[FieldError]:
    scopes = spec.get("scopes") or []
    errors: list[FieldError] = []
    for scope in scopes:
        if scope not in _RESOURCES_OF_SCOPE:
            errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
        for resource in sorted(spec.get("hard") or {}):
            if not _fits(scope, resource):
                errors.append(invalid("spec.scopes", scopes, "unsupported scope applied to resource"))
    errors += [invalid("spec.scopes", scopes, "conflicting scopes") for pair in _CONFLICTS if pair <= set(scopes)]
    return errors


def _selector_errors(spec: Object) -> list[FieldError]:
    selector = spec.get("scopeSelector")
    if selector is None:
        return []
    path = "spec.scopeSelector.matchExpressions"
    expressions = selector.get("matchExpressions") or []
    errors: list[FieldError] = []
    for expression in expressions:
        scope, operator = expression.get("scopeName") or "", expression.get("operator") or ""
        values = expression.get("values") or []
        if scope not in _RESOURCES_OF_SCOPE:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        for resource in sorted(spec.get("hard") or {}):
            if not _fits(scope, resource):
                errors.append(invalid(path, selector, "unsupported scope applied to resource"))
        if scope in _EXISTS_ONLY and operator != "Exists":
            errors.append(invalid(f"{path}.operator", operator, _EXISTS_TEXT))
        errors += _operator_errors(operator, values, path)
    used = {expression.get("scopeName") for expression in expressions}
    scopes = spec.get("scopes") or []
    return errors + [invalid(path, scopes, "conflicting scopes") for pair in _CONFLICTS if pair <= used]


def _operator_errors(operator: str, values: list[str], path: str) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [required(f"{path}.values", text)]
    if operator in ("Exists", "DoesNotExist"):
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [invalid(f"{path}.values", values, text)] if values else []
    return [invalid(f"{path}.operator", operator, "not a valid selector operator")]


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return _amounts(spec.get("hard"), "spec.hard") + _scope_errors(spec) + _selector_errors(spec)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors = validate(new)
    before = set((old.get("spec") or {}).get("scopes") or ())
    scopes = (new.get("spec") or {}).get("scopes") or []
    if before != set(scopes):
        errors.append(invalid("spec.scopes", scopes, IMMUTABLE))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    return _amounts(status.get("hard"), "status.hard") + _amounts(status.get("used"), "status.used")


def _used_of_hard(obj: Object, limits: bool) -> str:
    status = obj.get("status") or {}
    used = status.get("used") or {}
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard}"
        for name, hard in sorted((status.get("hard") or {}).items())
        if name.startswith("limits.") is limits
    )


SERVED = ServedKind(
    kind=RESOURCE_QUOTA,
    schema=schema_of("io.k8s.api.core.v1.ResourceQuota"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Request", lambda obj: _used_of_hard(obj, limits=False), description="Used of what may be requested."),
        Column("Limit", lambda obj: _used_of_hard(obj, limits=True), description="Used of what limits may add up to."),
        AGE,
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status,
    prepare_status=keep_spec,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    has_status=True,
    returns_deleted=True,
)
