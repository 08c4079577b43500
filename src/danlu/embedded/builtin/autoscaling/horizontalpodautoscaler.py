"""HorizontalPodAutoscalers, version 2, in which they are stored. Who scales: `controllers/autoscaling`."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import number_at, text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.embedded.builtin._shared.quantities import canonicalise_field
from danlu.embedded.builtin._shared.workloads import counter_errors, spec_of
from danlu.embedded.builtin.autoscaling.autoscalerrules import SOURCES, spec_errors
from danlu.meta import names, objects
from danlu.meta.fields import FieldError
from danlu.meta.kind import Object
from danlu.meta.wellknown import AUTOSCALER

CPU_UTILIZATION = 80  # percent of the request, where nobody says otherwise
MOST_SHOWN = 2
_UP: Object = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Object = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def cpu_metric(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def default(obj: Object) -> None:
    spec = spec_of(obj)
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_UTILIZATION)]
    for metric in spec["metrics"]:
        for source in SOURCES.values():
            target = (metric.get(source) or {}).get("target") or {}
            canonicalise_field(target, "value")
            canonicalise_field(target, "averageValue")
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        for side, usual in (("scaleUp", _UP), ("scaleDown", _DOWN)):
            given = {key: value for key, value in (behavior.get(side) or {}).items() if value is not None}
            behavior[side] = {**objects.copy(usual), **given}
            canonicalise_field(behavior[side], "tolerance")


def prepare_create(obj: Object) -> None:
    obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return spec_errors(new.get("spec") or {}, old.get("spec") or {})


# -- columns


def _reference(obj: Object) -> str:
    target = objects.get(obj, "spec.scaleTargetRef") or {}
    return f"{target.get('kind') or ''}/{target.get('name') or ''}"


def shown_metrics(obj: Object) -> str:
    specs = objects.get(obj, "spec.metrics") or []
    statuses = objects.get(obj, "status.currentMetrics") or []
    shown = [_shown(spec, statuses[i] if i < len(statuses) else {}) for i, spec in enumerate(specs)]
    if len(shown) > MOST_SHOWN:
        return f"{', '.join(shown[:MOST_SHOWN])} + {len(shown) - MOST_SHOWN} more..."
    return ", ".join(shown) or "<none>"


def _shown(spec: Object, status: Object) -> str:
    source = SOURCES.get(spec.get("type") or "")
    if source is None:
        return "<unknown type>"
    target: dict[str, Any] = (spec.get(source) or {}).get("target") or {}
    current: dict[str, Any] = (status.get(source) or {}).get("current") or {}
    of_resource = source in ("resource", "containerResource")
    before = f"{(spec.get(source) or {}).get('name') or ''}: " if of_resource else ""
    if target.get("averageValue") is not None:
        after = "" if of_resource or source == "pods" else " (avg)"
        return f"{before}{current.get('averageValue', '<unknown>')}/{target['averageValue']}{after}"
    if not of_resource:
        return f"{current.get('value', '<unknown>')}/{target.get('value') or 0}"
    used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    percent = "<unknown>" if used is None else f"{used}%"
    return f"{before}{percent}/{'<auto>' if wanted is None else f'{wanted}%'}"


COLUMNS = (
    NAME,
    Column("Reference", _reference, description="What it scales."),
    Column("Targets", shown_metrics, description="What is used, and what should be."),
    Column("MinPods", text_at("spec.minReplicas", "<unset>"), description="At least so many."),
    Column("MaxPods", number_at("spec.maxReplicas"), description="At most so many."),
    Column("Replicas", number_at("status.currentReplicas"), description="How many there were when it last looked."),
    AGE,
)


def status_errors(new: Object, _old: Object) -> list[FieldError]:
    return counter_errors(new.get("status") or {}, "status", ("currentReplicas", "desiredReplicas"))


SERVED = ServedKind(
    kind=AUTOSCALER,
    schema=schema_of("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"),
    name_errors=names.as_dns_subdomain,
    columns=COLUMNS,
    prepare_create=prepare_create,
    prepare_update=keep_status,
    prepare_status=keep_spec,
    default=default,
    validate=lambda obj: spec_errors(obj.get("spec") or {}, None),
    validate_update=validate_update,
    validate_status=status_errors,
    has_status=True,
)
