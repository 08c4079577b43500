"""Rules that the kinds which run pods from a template share: selectors, templates, counters, rollout numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from danlu.embedded.builtin._shared.podspec import default_pod_template, validate_pod_template
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, invalid, not_negative, not_supported, required
from danlu.meta.integers import decimal
from danlu.meta.kind import Object
from danlu.meta.labels import SelectorError, from_label_selector, validate_label_selector

MISMATCH = "`selector` does not match template `labels`"
NAME_WARNING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: [{texts}]"
)


def spec_of(obj: Object) -> Object:
    """The spec, made where it is missing, so that defaults have a place."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    return spec


def default_template(spec: Object) -> None:
    template = spec.get("template")
    if not isinstance(template, dict):
        template = spec["template"] = {}
    if not isinstance(template.get("spec"), dict):
        template["spec"] = {}
    default_pod_template(template)


def template_of(spec: Object) -> Object:
    template: Object = spec.get("template") or {}
    return template


def template_labels(spec: Object) -> dict[str, str]:
    return objects.get(spec, "template.metadata.labels", None) or {}


def selector_errors(selector: Object | None, path: str, kind: str) -> list[FieldError]:
    """`kind` is the word Kubernetes puts in its text; a ReplicaSet's says `deployment` there, too."""
    if selector is None:
        return [required(path)]
    errors = validate_label_selector(selector, path)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    return errors


def mismatch_errors(spec: Object, path: str) -> list[FieldError]:
    """An invalid selector matches nobody; that is told elsewhere."""
    try:
        selector = from_label_selector(spec.get("selector"))
    except SelectorError:
        return []
    labels = template_labels(spec)
    return [] if selector.matches(labels) else [invalid(f"{path}.template.metadata.labels", labels or None, MISMATCH)]


def is_readable(selector: Object | None) -> bool:
    try:
        from_label_selector(selector)
    except SelectorError:
        return False
    return True


def selected_template_errors(spec: Object, kind: str) -> list[FieldError]:
    """Of a template that the selector must match; where the selector is no good, nothing is said of the template."""
    selector = spec.get("selector")
    if not is_readable(selector):
        return [invalid("spec.selector", selector, "invalid label selector")]
    return mismatch_errors(spec, "spec") + replicated_template_errors(spec, "spec", kind)


def replicated_template_errors(spec: Object, path: str, kind: str) -> list[FieldError]:
    """The template of a kind that keeps its pods running."""
    return validate_pod_template(template_of(spec), f"{path}.template") + always_errors(spec, path, kind)


def always_errors(spec: Object, path: str, kind: str) -> list[FieldError]:
    pod = template_of(spec).get("spec") or {}
    errors: list[FieldError] = []
    if pod.get("restartPolicy") != "Always":
        field = f"{path}.template.spec.restartPolicy"
        errors.append(not_supported(field, pod.get("restartPolicy") or "", ["Always"]))
    if pod.get("activeDeadlineSeconds") is not None:
        field = f"{path}.template.spec.activeDeadlineSeconds"
        errors.append(forbidden(field, f"activeDeadlineSeconds in {kind} is not Supported"))
    return errors


def name_warnings(obj: Object) -> list[str]:
    """Only on creation: an object that is already stored has a resourceVersion."""
    metadata = obj.get("metadata") or {}
    texts = names.dns_label(metadata.get("name") or "")
    return [NAME_WARNING.format(texts=" ".join(texts))] if texts and not metadata.get("resourceVersion") else []


def shown_strategy(strategy: Object) -> Object:
    """As Kubernetes prints its internal struct in an error."""
    return {"Type": strategy.get("type") or "", "RollingUpdate": strategy.get("rollingUpdate")}


# -- counters


def counter_errors(values: Mapping[str, Any], path: str, fields: Iterable[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in fields:
        errors += not_negative(f"{path}.{field}", values.get(field))
    return errors


def drop_zeros(status: Object, fields: Iterable[str]) -> None:
    """Counters that Kubernetes does not write out at zero."""
    for field in fields:
        if status.get(field) == 0:
            del status[field]


def at_most_errors(status: Object, field: str, limit: str, text: str) -> list[FieldError]:
    value = status.get(field) or 0
    return [invalid(f"status.{field}", value, text)] if value > (status.get(limit) or 0) else []


def replica_counts_errors(status: Object, counted: Iterable[str], ready: str = "readyReplicas") -> list[FieldError]:
    """None of the parts may be more than all; what is available is also ready."""
    errors: list[FieldError] = []
    for field in counted:
        errors += at_most_errors(status, field, "replicas", "cannot be greater than status.replicas")
    return errors + at_most_errors(status, "availableReplicas", "readyReplicas", f"cannot be greater than {ready}")


def collision_errors(new: Object, old: Object) -> list[FieldError]:
    count, before = objects.get(new, "status.collisionCount"), objects.get(old, "status.collisionCount")
    if before is None or (count is not None and count >= before):
        return []
    return [invalid("status.collisionCount", count or 0, "cannot be decremented")]


# -- numbers that may be a percentage


def int_or_percent_errors(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return [invalid(path, value, text) for text in names.percent(value)]
    return not_negative(path, value)


def amount(value: Any) -> int:
    """The number, or the percentage's number; 0 for what is neither."""
    if isinstance(value, str):
        return decimal(value[:-1]) if not names.percent(value) else 0
    return int(value or 0)


def over_100_percent_errors(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, str) and not names.percent(value) and amount(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []
