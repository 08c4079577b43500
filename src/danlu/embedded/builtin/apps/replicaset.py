"""ReplicaSets."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ScalePaths, ServedKind
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
    counter_errors,
    default_template,
    drop_zeros,
    name_warnings,
    replica_counts_errors,
    selected_template_errors,
    selector_errors,
    spec_of,
)
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, immutable
from danlu.meta.kind import Object
from danlu.meta.wellknown import REPLICA_SET

_COUNTERS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    default_template(spec)


def prepare_create(obj: Object) -> None:
    obj["status"] = {"replicas": 0}
    first_generation(obj)


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    status = new.setdefault("status", {})
    status.setdefault("replicas", 0)
    drop_zeros(status, _COUNTERS[1:-1])


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = counter_errors(spec, "spec", ("replicas", "minReadySeconds"))
    errors += selector_errors(spec.get("selector"), "spec.selector", "deployment")
    return errors + selected_template_errors(spec, "ReplicaSet")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    selectors = objects.get(new, "spec.selector"), objects.get(old, "spec.selector")
    return validate(new) + immutable("spec.selector", *selectors)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    errors = counter_errors(status, "status", _COUNTERS)
    return errors + replica_counts_errors(status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"))


SERVED = ServedKind(
    kind=REPLICA_SET,
    schema=schema_of("io.k8s.api.apps.v1.ReplicaSet"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Desired", number_at("spec.replicas"), type="integer", description="Pods that are wanted."),
        Column("Current", number_at("status.replicas"), type="integer", description="Pods that exist."),
        Column("Ready", number_at("status.readyReplicas"), type="integer", description="Pods that are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=prepare_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    warnings=name_warnings,
    has_status=True,
    scale=ScalePaths(selector="spec.selector"),
)
