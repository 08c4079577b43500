"""ReplicationControllers: what ReplicaSets were before label selectors."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ScalePaths, ServedKind
from danlu.embedded.builtin._shared.columns import CONTAINERS, IMAGES, number_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_status_and_count, schema_of
from danlu.embedded.builtin._shared.workloads import (
    MISMATCH,
    counter_errors,
    name_warnings,
    replicated_template_errors,
    spec_of,
    template_labels,
)
from danlu.embedded.builtin.apps import replicaset
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, invalid, required
from danlu.meta.kind import Object
from danlu.meta.labels import from_map
from danlu.meta.wellknown import REPLICATION_CONTROLLER


def default(obj: Object) -> None:
    spec = spec_of(obj)
    labels = template_labels(spec)
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not objects.labels_of(obj):
            obj["metadata"]["labels"] = dict(labels)
    replicaset.default(obj)


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = counter_errors(spec, "spec", ("minReadySeconds", "replicas"))
    selector = spec.get("selector") or {}
    if not selector:
        errors.append(required("spec.selector"))
    labels = template_labels(spec)
    if selector and not from_map(selector).matches(labels):
        errors.append(invalid("spec.template.metadata.labels", labels or None, MISMATCH))
    return errors + replicated_template_errors(spec, "spec", "ReplicationController")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


def _selector(obj: Object) -> str:
    return str(from_map(objects.get(obj, "spec.selector", None) or {})) or "<none>"


SERVED = ServedKind(
    kind=REPLICATION_CONTROLLER,
    schema=schema_of("io.k8s.api.core.v1.ReplicationController"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Desired", number_at("spec.replicas"), type="integer", description="Pods that are wanted."),
        Column("Current", number_at("status.replicas"), type="integer", description="Pods that exist."),
        Column("Ready", number_at("status.readyReplicas"), type="integer", description="Pods that are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        Column("Selector", _selector, priority=1, description="Which pods belong to this object, by their labels."),
    ),
    prepare_create=replicaset.prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=replicaset.prepare_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=replicaset.validate_status,
    warnings=name_warnings,
    has_status=True,
    scale=ScalePaths(selector="spec.selector", plain_selector=True),
    default_propagation="Orphan",  # as it was before there was garbage collection
)
