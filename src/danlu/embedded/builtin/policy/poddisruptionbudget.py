"""PodDisruptionBudgets: how many of some pods may be evicted at a time. Who counts: `controllers/disruption.py`."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import number_at, text_at
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_spec,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import counter_errors, int_or_percent_errors, over_100_percent_errors
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid, not_supported
from danlu.meta.kind import Object
from danlu.meta.labels import validate_label_selector
from danlu.meta.wellknown import POD_DISRUPTION_BUDGET

COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_LIMITS = ("minAvailable", "maxUnavailable")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def prepare_create(obj: Object) -> None:
    obj["status"] = dict.fromkeys(COUNTS, 0)
    first_generation(obj)


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    status = new.get("status")
    if isinstance(status, dict):
        for field in COUNTS:
            status.setdefault(field, 0)


def validate(obj: Object) -> list[FieldError]:
    spec: dict[str, Any] = obj.get("spec") or {}
    errors: list[FieldError] = []
    if all(spec.get(field) is not None for field in _LIMITS):
        errors.append(invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set"))
    for field in _LIMITS:
        if spec.get(field) is not None:
            errors += int_or_percent_errors(spec[field], f"spec.{field}")
            errors += over_100_percent_errors(spec[field], f"spec.{field}")
    if spec.get("selector") is not None:
        errors += validate_label_selector(spec["selector"], "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return errors


def _shown(spec: Object) -> Object:
    """As Kubernetes prints its internal struct in an error."""
    fields = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
    return {field[0].upper() + field[1:]: spec.get(field) for field in fields}


SERVED = ServedKind(
    kind=POD_DISRUPTION_BUDGET,
    schema=schema_of("io.k8s.api.policy.v1.PodDisruptionBudget"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Min Available", text_at("spec.minAvailable", "N/A"), description="How many must stay available."),
        Column("Max Unavailable", text_at("spec.maxUnavailable", "N/A"), description="How many may be missing."),
        Column(
            "Allowed Disruptions",
            number_at("status.disruptionsAllowed"),
            type="integer",
            description="How many may be evicted now.",
        ),
        AGE,
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=prepare_status,
    validate=validate,
    validate_update=lambda new, _: validate(new),
    validate_status=lambda new, _: counter_errors(new.get("status") or {}, "status", COUNTS),
    has_status=True,
)
