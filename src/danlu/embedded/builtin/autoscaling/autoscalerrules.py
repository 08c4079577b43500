"""What Kubernetes demands of a HorizontalPodAutoscaler, in the fields of version 2."""

from __future__ import annotations

from danlu.embedded.builtin._shared.quantities import not_a_quantity, parsed
from danlu.embedded.builtin._shared.resources import container_name_texts
from danlu.meta import names
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object

SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_LOOKED_AT = ("object", "external", "pods", "resource", "containerResource")  # in Kubernetes' order
_TARGETS = ("Utilization", "Value", "AverageValue")
_SELECT = ("Disabled", "Max", "Min")
_POLICIES = ("Percent", "Pods")
_LONGEST_WINDOW_S, _LONGEST_PERIOD_S = 3600, 1800
_NEVER_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"
_POSITIVE = "must be greater than zero"


def spec_errors(spec: Object, before: Object | None) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    lowest = 0 if before is not None and before.get("minReplicas") == 0 else 1
    errors: list[FieldError] = []
    if least is not None and least < lowest:
        errors.append(invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}"))
    if most == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target, known = spec.get("scaleTargetRef") or {}, (before or {}).get("scaleTargetRef") or {}
    same = all((target.get(key) or "") == (known.get(key) or "") for key in ("apiVersion", "kind"))
    groupless = target.get("kind") == "ReplicationController"
    errors += _reference_errors(target, "spec.scaleTargetRef", groupless, unchecked=before is not None and same)
    errors += _metrics_errors(spec.get("metrics") or [], least)
    for side in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(side)
        errors += _rules_errors(rules, f"spec.behavior.{side}") if rules is not None else []
    return errors


def _reference_errors(reference: Object, path: str, groupless: bool, *, unchecked: bool = False) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        errors += [invalid(f"{path}.{field}", value, text) for text in names.path_segment(value)]
        if not value:
            errors.append(required(f"{path}.{field}"))
    version = reference.get("apiVersion") or ""
    if unchecked:
        return errors
    if version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    elif not groupless and "/" not in version.strip("/"):
        errors.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return errors


def _metrics_errors(metrics: list[Object], least: int | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, metric in enumerate(metrics):
        errors += _metric_errors(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        errors.append(forbidden("spec.metrics", _NEVER_ZERO))
    return errors


def _metric_errors(metric: Object, path: str) -> list[FieldError]:
    sort = metric.get("type") or ""
    errors: list[FieldError] = []
    if not sort:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if sort not in SOURCES:
        errors.append(not_supported(f"{path}.type", sort, SOURCES))
    given = [source for source in _LOOKED_AT if metric.get(source) is not None]
    if given:
        errors += _source_errors(given[0], metric[given[0]], f"{path}.{given[0]}")
    wanted = SOURCES.get(sort)
    if wanted is None:
        errors.append(not_supported(f"{path}.type", sort, SOURCES))
    elif wanted not in given:
        errors.append(required(f"{path}.{wanted}", "must populate information for the given metric source"))
    if len(given) != 1:
        text = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{source}", text) for source in given if source != wanted]
    return errors


def _source_errors(source: str, metric: Object, path: str) -> list[FieldError]:
    target = metric.get("target") or {}
    errors: list[FieldError] = []
    if source == "object":
        errors += _reference_errors(metric.get("describedObject") or {}, f"{path}.describedObject", True)
    if source in ("object", "external", "pods"):
        errors += _identifier_errors(metric.get("metric") or {}, f"{path}.metric")
    else:
        errors += _resource_errors(source, metric, path)
    return errors + _target_errors(target, f"{path}.target") + _choice_errors(source, target, f"{path}.target")


def _identifier_errors(metric: Object, path: str) -> list[FieldError]:
    name = metric.get("name") or ""
    if not name:
        return [required(f"{path}.name", "must specify a metric name")]
    return [invalid(f"{path}.name", name, text) for text in names.path_segment(name)]


def _resource_errors(source: str, metric: Object, path: str) -> list[FieldError]:
    name, container = metric.get("name") or "", metric.get("container") or ""
    errors: list[FieldError] = []
    if not name:
        errors.append(required(f"{path}.name", "must specify a resource name"))
    elif source == "containerResource":
        errors += [invalid(f"{path}.name", name, text) for text in container_name_texts(name)]
    if source == "containerResource":
        errors += [invalid(f"{path}.container", container, text) for text in names.dns_label(container) if container]
        if not container:
            errors.append(required(f"{path}.container", "must specify a container"))
    return errors


def _target_errors(target: Object, path: str) -> list[FieldError]:
    sort = target.get("type") or ""
    errors: list[FieldError] = []
    if not sort:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if sort not in _TARGETS:
        errors.append(invalid(f"{path}.type", sort, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if target.get(field) is None:
            continue
        amount = parsed(target[field])
        if amount is None:
            errors.append(not_a_quantity(f"{path}.{field}", target[field]))
        elif amount.nano <= 0:
            errors.append(invalid(f"{path}.{field}", target[field], "must be positive"))
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        errors.append(invalid(f"{path}.averageUtilization", percent, "must be greater than 0"))
    return errors


def _choice_errors(source: str, target: Object, path: str) -> list[FieldError]:
    value, average, percent = (target.get(field) for field in ("value", "averageValue", "averageUtilization"))
    if source == "pods" and average is None:
        return [required(f"{path}.averageValue", "must specify a positive target averageValue")]
    if source == "object" and value is None and average is None:
        return [required(f"{path}.averageValue", "must set either a target value or averageValue")]
    if source == "external":
        if value is None and average is None:
            text = "must set either a target value for metric or a per-pod target"
            return [required(f"{path}.averageValue", text)]
        if value is not None and average is not None:
            return [forbidden(f"{path}.value", "may not set both a target value for metric and a per-pod target")]
    if source in ("resource", "containerResource"):
        if percent is None and average is None:
            return [
                required(f"{path}.averageUtilization", "must set either a target raw value or a target utilization")
            ]
        if percent is not None and average is not None:
            text = "may not set both a target raw value and a target utilization"
            return [forbidden(f"{path}.averageValue", text)]
    return []


def _rules_errors(rules: Object, path: str) -> list[FieldError]:
    window, select, policies = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy"), rules.get("policies")
    errors: list[FieldError] = []
    if window is not None and window < 0:
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW_S:
        text = f"must be less than or equal to {_LONGEST_WINDOW_S}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, text))
    if select is not None and select not in _SELECT:
        errors.append(not_supported(f"{path}.selectPolicy", select, _SELECT))
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies or ()):
        errors += _policy_errors(policy, f"{path}.policies[{index}]")
    tolerance = parsed(rules.get("tolerance") or "0")
    if tolerance is None:
        errors.append(not_a_quantity(f"{path}.tolerance", rules["tolerance"]))
    elif tolerance.nano < 0:
        errors.append(invalid(f"{path}.tolerance", rules["tolerance"], "must be greater than or equal to 0"))
    return errors


def _policy_errors(policy: Object, path: str) -> list[FieldError]:
    value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
    errors: list[FieldError] = []
    if policy.get("type") not in _POLICIES:
        errors.append(not_supported(f"{path}.type", policy.get("type") or "", _POLICIES))
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, _POSITIVE))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, _POSITIVE))
    if period > _LONGEST_PERIOD_S:
        text = f"must be less than or equal to {_LONGEST_PERIOD_S}"
        errors.append(invalid(f"{path}.periodSeconds", period, text))
    return errors
