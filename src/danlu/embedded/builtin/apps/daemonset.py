"""DaemonSets."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import CONTAINERS, IMAGES, SELECTOR, number_at
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_spec,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import (
    amount,
    collision_errors,
    counter_errors,
    default_template,
    drop_zeros,
    int_or_percent_errors,
    mismatch_errors,
    over_100_percent_errors,
    replicated_template_errors,
    shown_strategy,
    spec_of,
)
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, immutable, invalid, not_supported, required
from danlu.meta.integers import decimal
from danlu.meta.kind import Object
from danlu.meta.labels import format_labels, validate_label_selector
from danlu.meta.wellknown import DAEMON_SET

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""The annotation in which apps/v1 shows how often the template changed."""

_ALWAYS_COUNTED = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_COUNTERS = (
    *_ALWAYS_COUNTED,
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    default_template(spec)
    strategy = spec.get("updateStrategy")
    if not isinstance(strategy, dict):
        strategy = spec["updateStrategy"] = {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        if not isinstance(rolling, dict):
            rolling = strategy["rollingUpdate"] = {}
        if rolling.get("maxUnavailable") is None:
            rolling["maxUnavailable"] = 1
        if rolling.get("maxSurge") is None:
            rolling["maxSurge"] = 0
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10


def prepare_create(obj: Object) -> None:
    obj["status"] = dict.fromkeys(_ALWAYS_COUNTED, 0)
    first_generation(obj)
    _count_template(obj, 1)


def prepare_update(new: Object, old: Object) -> None:
    keep_status_and_count(new, old)
    changed = objects.get(new, "spec.template") != objects.get(old, "spec.template")
    _count_template(new, _template_generation(old) + changed)


def _template_generation(obj: Object) -> int:
    text = objects.annotations_of(obj).get(TEMPLATE_GENERATION, "1")
    return decimal(text) if text.isdecimal() else 1


def _count_template(obj: Object, generation: int) -> None:
    metadata = obj.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    status = new.setdefault("status", {})
    for field in _ALWAYS_COUNTED:
        status.setdefault(field, 0)
    drop_zeros(status, _COUNTERS[len(_ALWAYS_COUNTED) : -1])


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    errors = validate_label_selector(selector, "spec.selector")
    errors += mismatch_errors(spec, "spec")
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += replicated_template_errors(spec, "spec", "DaemonSet")
    errors += counter_errors(spec, "spec", ("minReadySeconds",))
    errors += _strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return errors + counter_errors(spec, "spec", ("revisionHistoryLimit",))


def _strategy_errors(strategy: Object, path: str) -> list[FieldError]:
    if strategy.get("type") == "OnDelete":
        return []
    if strategy.get("type") != "RollingUpdate":
        return [not_supported(path, shown_strategy(strategy), ["RollingUpdate", "OnDelete"])]
    rolling = strategy.get("rollingUpdate")
    path = f"{path}.rollingUpdate"
    if rolling is None:
        return [required(path)]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = int_or_percent_errors(unavailable, f"{path}.maxUnavailable")
    errors += int_or_percent_errors(surge, f"{path}.maxSurge")
    errors += over_100_percent_errors(unavailable, f"{path}.maxUnavailable")
    errors += over_100_percent_errors(surge, f"{path}.maxSurge")
    if amount(unavailable) and amount(surge):
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not amount(unavailable) and not amount(surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    selectors = objects.get(new, "spec.selector"), objects.get(old, "spec.selector")
    return immutable("spec.selector", *selectors) + validate(new)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    return counter_errors(new.get("status") or {}, "status", _COUNTERS) + collision_errors(new, old)


def _node_selector(obj: Object) -> str:
    return format_labels(objects.get(obj, "spec.template.spec.nodeSelector"))


def _count(name: str, field: str, description: str) -> Column:
    return Column(name, number_at(f"status.{field}"), type="integer", description=description)


SERVED = ServedKind(
    kind=DAEMON_SET,
    schema=schema_of("io.k8s.api.apps.v1.DaemonSet"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        _count("Desired", "desiredNumberScheduled", "Nodes that should run the pod."),
        _count("Current", "currentNumberScheduled", "Nodes that run the pod and should."),
        _count("Ready", "numberReady", "Nodes on which the pod is ready."),
        _count("Up-to-date", "updatedNumberScheduled", "Nodes with a pod made from the newest template."),
        _count("Available", "numberAvailable", "Nodes on which the pod is available."),
        Column("Node Selector", _node_selector, description="Labels a node must have to run the pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    has_status=True,
)
