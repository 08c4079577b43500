"""Deployments."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ScalePaths, ServedKind
from danlu.embedded.builtin._shared.columns import CONTAINERS, IMAGES, number_at, ready_of
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    drop_status,
    first_generation,
    keep_spec,
    keep_status,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import (
    amount,
    collision_errors,
    counter_errors,
    default_template,
    drop_zeros,
    int_or_percent_errors,
    name_warnings,
    over_100_percent_errors,
    replica_counts_errors,
    selected_template_errors,
    selector_errors,
    shown_strategy,
    spec_of,
)
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, immutable, invalid, not_negative, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import SelectorError, from_label_selector
from danlu.meta.wellknown import DEPLOYMENT

_COUNTERS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    default_template(spec)
    strategy = spec.get("strategy")
    if not isinstance(strategy, dict):
        strategy = spec["strategy"] = {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        if not isinstance(rolling, dict):
            rolling = strategy["rollingUpdate"] = {}
        for field in ("maxUnavailable", "maxSurge"):
            if rolling.get(field) is None:
                rolling[field] = "25%"
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    if spec.get("progressDeadlineSeconds") is None:
        spec["progressDeadlineSeconds"] = 600


def prepare_create(obj: Object) -> None:
    drop_status(obj)
    obj["status"] = {}
    first_generation(obj)


def prepare_update(new: Object, old: Object) -> None:
    """Annotations count as a change, too: the rollout's revision is one."""
    keep_status(new, old)
    generation = objects.get(old, "metadata.generation", 0)
    if new.get("spec") != old.get("spec") or objects.annotations_of(new) != objects.annotations_of(old):
        generation += 1
    new["metadata"]["generation"] = generation


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    drop_zeros(new.get("status") or {}, _COUNTERS[:-2])
    labels = objects.labels_of(old)
    if labels:
        new["metadata"]["labels"] = labels
    else:
        new["metadata"].pop("labels", None)


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = not_negative("spec.replicas", spec.get("replicas"))
    errors += selector_errors(spec.get("selector"), "spec.selector", "deployment")
    errors += selected_template_errors(spec, "ReplicaSet")
    errors += _strategy_errors(spec.get("strategy") or {}, "spec.strategy")
    errors += counter_errors(spec, "spec", ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _strategy_errors(strategy: Object, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", text)]
    if strategy.get("type") != "RollingUpdate":
        return [not_supported(path, shown_strategy(strategy), ["Recreate", "RollingUpdate"])]
    if rolling is None:
        return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    field = f"{path}.rollingUpdate.maxUnavailable"
    errors = int_or_percent_errors(unavailable, field)
    errors += int_or_percent_errors(surge, f"{path}.rollingUpdate.maxSurge")
    if amount(unavailable) == 0 and amount(surge) == 0:
        errors.append(invalid(field, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + over_100_percent_errors(unavailable, field)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    selectors = objects.get(new, "spec.selector"), objects.get(old, "spec.selector")
    return validate(new) + immutable("spec.selector", *selectors)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    errors = counter_errors(status, "status", _COUNTERS)
    errors += replica_counts_errors(status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return errors + collision_errors(new, old)


def _selector(obj: Object) -> str:
    try:
        return str(from_label_selector(objects.get(obj, "spec.selector")))
    except SelectorError:
        return "<invalid>"


SERVED = ServedKind(
    kind=DEPLOYMENT,
    schema=schema_of("io.k8s.api.apps.v1.Deployment"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Ready", ready_of, description="How many of the wanted pods are ready."),
        Column("Up-to-date", number_at("status.updatedReplicas"), description="Pods made from the newest template."),
        Column("Available", number_at("status.availableReplicas"), description="Pods that are available to users."),
        AGE,
        CONTAINERS,
        IMAGES,
        Column("Selector", _selector, priority=1, description="Which pods belong to this object, by their labels."),
    ),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    warnings=name_warnings,
    has_status=True,
    scale=ScalePaths(selector="spec.selector"),
)
