"""HorizontalPodAutoscalers, version 1: the same stored objects, of which it shows the cpu target alone.

What it has no fields for stands in annotations, as Kubernetes writes and reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import keep_spec, keep_status, schema_of
from danlu.embedded.builtin._shared.workloads import spec_of
from danlu.embedded.builtin.autoscaling.autoscalerrules import SOURCES, spec_errors
from danlu.embedded.builtin.autoscaling.horizontalpodautoscaler import (
    COLUMNS,
    CPU_UTILIZATION,
    cpu_metric,
    status_errors,
)
from danlu.meta import names, objects
from danlu.meta.fields import FieldError
from danlu.meta.kind import Object
from danlu.meta.wellknown import AUTOSCALER, AUTOSCALER_V1

_PREFIX = "autoscaling.alpha.kubernetes.io"
_METRICS, _CURRENT = f"{_PREFIX}/metrics", f"{_PREFIX}/current-metrics"
_CONDITIONS, _BEHAVIOR = f"{_PREFIX}/conditions", f"{_PREFIX}/behavior"
_OURS = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)

Names = tuple[tuple[str, str], ...]  # of a field here, and its path in version 2
_RESOURCE: Names = (
    ("name", "name"),
    ("targetAverageUtilization", "target.averageUtilization"),
    ("targetAverageValue", "target.averageValue"),
)
_RESOURCE_NOW: Names = (
    ("name", "name"),
    ("currentAverageUtilization", "current.averageUtilization"),
    ("currentAverageValue", "current.averageValue"),
)
_CONTAINER: Names = (("container", "container"),)
_METRIC: Names = (("metricName", "metric.name"), ("selector", "metric.selector"))
_EXTERNAL: Names = (("metricName", "metric.name"), ("metricSelector", "metric.selector"))
_OBJECT: Names = (("target", "describedObject"), *_METRIC)
_SPEC: dict[str, Names] = {
    "resource": _RESOURCE,
    "containerResource": (*_RESOURCE, *_CONTAINER),
    "external": (*_EXTERNAL, ("targetValue", "target.value"), ("targetAverageValue", "target.averageValue")),
    "object": (*_OBJECT, ("targetValue", "target.value"), ("averageValue", "target.averageValue")),
    "pods": (*_METRIC, ("targetAverageValue", "target.averageValue")),
}
_STATUS: dict[str, Names] = {
    "resource": _RESOURCE_NOW,
    "containerResource": (*_RESOURCE_NOW, *_CONTAINER),
    "external": (*_EXTERNAL, ("currentValue", "current.value"), ("currentAverageValue", "current.averageValue")),
    "object": (*_OBJECT, ("currentValue", "current.value"), ("averageValue", "current.averageValue")),
    "pods": (*_METRIC, ("currentAverageValue", "current.averageValue")),
}


def _metric_to_v1(metric: Object, table: dict[str, Names]) -> Object:
    made: Object = {"type": metric.get("type")}
    for source in SOURCES.values():
        if metric.get(source) is not None:
            found = {here: objects.get(metric[source], there) for here, there in table[source]}
            made[source] = {here: value for here, value in found.items() if value is not None}
    return made


def _metric_from_v1(metric: Object, table: dict[str, Names]) -> Object:
    made: Object = {"type": metric.get("type")}
    for source in SOURCES.values():
        if not isinstance(metric.get(source), dict):
            continue
        inner: Object = {}
        for here, there in table[source]:
            if metric[source].get(here) is not None:
                objects.put(inner, there, metric[source][here])
        if table is _SPEC:
            target = inner.setdefault("target", {})
            percent, average = target.get("averageUtilization"), target.get("averageValue")
            target["type"] = "Utilization" if percent is not None else "Value" if average is None else "AverageValue"
        made[source] = inner
    return made


def _is_cpu_share(metric: Object) -> bool:
    resource = metric.get("resource") or {}
    share = objects.get(resource, "target.averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and share is not None


def from_stored(stored: Object) -> Object:
    spec, status = stored.get("spec") or {}, stored.get("status") or {}
    metrics, behavior = spec.get("metrics") or [], spec.get("behavior")
    notes: dict[str, Any] = {
        _METRICS: [_metric_to_v1(metric, _SPEC) for metric in metrics if not _is_cpu_share(metric)],
        _CURRENT: [_metric_to_v1(metric, _STATUS) for metric in status.get("currentMetrics") or ()],
        _BEHAVIOR: _renamed(behavior, lambda key: key[:1].upper() + key[1:]),
        _CONDITIONS: status.get("conditions"),
    }
    shown = {**stored, "apiVersion": AUTOSCALER_V1.api_version}
    _annotate(shown, {key: orjson.dumps(value).decode() for key, value in notes.items() if value})
    shown["spec"] = {key: value for key, value in spec.items() if key not in ("metrics", "behavior")}
    shares = [metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu_share(metric)]
    if shares:
        shown["spec"]["targetCPUUtilizationPercentage"] = shares[0]
    shown["status"] = {key: value for key, value in status.items() if key not in ("currentMetrics", "conditions")}
    shown["status"].setdefault("currentReplicas", 0)
    for metric in status.get("currentMetrics") or ():
        used = objects.get(metric, "resource.current.averageUtilization")
        if used is not None and objects.get(metric, "resource.name") == "cpu":
            shown["status"]["currentCPUUtilizationPercentage"] = used
    return shown


def to_stored(shown: Object) -> Object:
    """What an annotation says goes before what version 1 can say; one that cannot be read says nothing."""
    notes = objects.annotations_of(shown)
    stored = {**shown, "apiVersion": AUTOSCALER.api_version}
    spec, status = dict(shown.get("spec") or {}), dict(shown.get("status") or {})
    share = spec.pop("targetCPUUtilizationPercentage", None)
    status.pop("currentCPUUtilizationPercentage", None)
    others = _listed(notes.get(_METRICS))
    spec["metrics"] = [_metric_from_v1(one, _SPEC) for one in others]
    if share is not None or not others:
        spec["metrics"].append(cpu_metric(CPU_UTILIZATION if share is None else share))
    behavior = _read(notes.get(_BEHAVIOR))
    if isinstance(behavior, dict) and behavior:
        spec["behavior"] = _renamed(behavior, lambda key: key[:1].lower() + key[1:])
    status["currentMetrics"] = [_metric_from_v1(one, _STATUS) for one in _listed(notes.get(_CURRENT))] or None
    if conditions := _listed(notes.get(_CONDITIONS)):
        status["conditions"] = conditions
    stored["spec"], stored["status"] = spec, status
    _annotate(stored, {})
    return stored


def _annotate(obj: Object, notes: dict[str, str]) -> None:
    """Ours are written anew, those of others stay."""
    kept = {key: value for key, value in objects.annotations_of(obj).items() if key not in _OURS}
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("annotations", None)
    if kept or notes:
        metadata["annotations"] = kept | notes
    obj["metadata"] = metadata


def _renamed(value: Any, name: Callable[[str], str]) -> Any:
    """Kubernetes writes a behavior with the names of Go's fields."""
    if isinstance(value, dict):
        return {name(key): _renamed(inner, name) for key, inner in value.items() if inner is not None}
    return [_renamed(inner, name) for inner in value] if isinstance(value, list) else value


def _read(text: str | None) -> Any:
    try:
        return orjson.loads(text or "null")
    except orjson.JSONDecodeError:
        return None


def _listed(text: str | None) -> list[Object]:
    found = _read(text)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def default(obj: Object) -> None:
    spec = spec_of(obj)
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if spec.get("targetCPUUtilizationPercentage") is None and not _listed(objects.annotations_of(obj).get(_METRICS)):
        spec["targetCPUUtilizationPercentage"] = CPU_UTILIZATION


def prepare_create(obj: Object) -> None:
    obj["status"] = {"currentReplicas": 0, "desiredReplicas": 0}


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return spec_errors(to_stored(new)["spec"], to_stored(old)["spec"])


def _of_stored(value: Callable[[Object], Any], shown: Object) -> Any:
    return value(to_stored(shown))


SERVED = ServedKind(
    kind=AUTOSCALER_V1,
    schema=schema_of("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler"),
    name_errors=names.as_dns_subdomain,
    columns=tuple(replace(column, value=partial(_of_stored, column.value)) for column in COLUMNS),
    prepare_create=prepare_create,
    prepare_update=keep_status,
    prepare_status=keep_spec,
    default=default,
    validate=lambda obj: spec_errors(to_stored(obj)["spec"], None),
    validate_update=validate_update,
    validate_status=status_errors,
    has_status=True,
    storage_version=False,
    stored_as=AUTOSCALER.resource,
    to_stored=to_stored,
    from_stored=from_stored,
)
