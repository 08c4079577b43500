"""StatefulSets."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ScalePaths, ServedKind
from danlu.embedded.builtin._shared.columns import CONTAINERS, IMAGES, ready_of
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_spec,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin._shared.podspec import default_claim_spec, validate_pod_template
from danlu.embedded.builtin._shared.workloads import (
    always_errors,
    amount,
    collision_errors,
    counter_errors,
    default_template,
    drop_zeros,
    int_or_percent_errors,
    is_readable,
    mismatch_errors,
    over_100_percent_errors,
    replica_counts_errors,
    selector_errors,
    shown_strategy,
    spec_of,
    template_of,
)
from danlu.embedded.builtin.core.claimrules import claim_spec_errors
from danlu.meta import names
from danlu.meta.fields import FieldError, forbidden, invalid, not_negative, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import STATEFUL_SET

MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_FROZEN_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_RETENTION = ("Retain", "Delete")
_COUNTERS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    default_template(spec)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    _default_strategy(spec)
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if not isinstance(retention, dict):
        retention = spec["persistentVolumeClaimRetentionPolicy"] = {}
    for field in ("whenDeleted", "whenScaled"):
        if not retention.get(field):
            retention[field] = "Retain"
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    spec.setdefault("serviceName", "")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        if isinstance(claim.get("spec"), dict):
            default_claim_spec(claim["spec"])
        status = claim.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"


def _default_strategy(spec: Object) -> None:
    strategy = spec.get("updateStrategy")
    if not isinstance(strategy, dict):
        strategy = spec["updateStrategy"] = {}
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        if strategy.get("rollingUpdate") is None:
            strategy["rollingUpdate"] = {}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None and rolling.get("partition") is None:
        rolling["partition"] = 0


def prepare_create(obj: Object) -> None:
    obj["status"] = {"replicas": 0, "availableReplicas": 0}
    first_generation(obj)


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    status = new.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)
    drop_zeros(status, ("readyReplicas", "currentReplicas", "updatedReplicas", "observedGeneration"))


def validate(obj: Object) -> list[FieldError]:
    return _spec_errors(obj.get("spec") or {}, creating=True)


def _spec_errors(spec: Object, creating: bool) -> list[FieldError]:
    """Claims and the service's name cannot change later, so they are looked at only once."""
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy")
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled") if retention else ():
        if retention.get(field) not in _RETENTION:
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(not_supported(path, retention.get(field) or "", _RETENTION))
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()) if creating else ():
        errors += claim_spec_errors(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    errors += counter_errors(spec, "spec", ("replicas", "minReadySeconds"))
    errors += not_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    service = spec.get("serviceName")
    if service and creating:
        errors += [invalid("spec.serviceName", service, text) for text in names.dns_label(service)]
    errors += selector_errors(spec.get("selector"), "spec.selector", "statefulset")
    if is_readable(spec.get("selector")):
        errors += mismatch_errors(spec, "spec") + validate_pod_template(_with_claims(spec), "spec.template")
    else:
        errors.append(invalid("spec.selector", spec.get("selector"), ""))
    return errors + always_errors(spec, "spec", "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """The template as its pods will see it: each claim template is a volume of that name."""
    template = template_of(spec)
    pod = dict(template.get("spec") or {})
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        volumes: list[Object] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = volumes + [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
    pod.pop("subdomain", None)
    pod.pop("hostname", None)
    return {**template, "spec": pod}


def _strategy_errors(strategy: Object, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if not kind:
        return [required(path)]
    if kind == "OnDelete":
        text = "only allowed for updateStrategy 'RollingUpdate'"
        return [] if rolling is None else [invalid(f"{path}.rollingUpdate", _shown(rolling), text)]
    if kind != "RollingUpdate":
        return [invalid(path, shown_strategy(strategy), "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    errors = not_negative(f"{path}.rollingUpdate.partition", rolling.get("partition"))
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        field = f"{path}.rollingUpdate.maxUnavailable"
        errors += int_or_percent_errors(unavailable, field)
        if amount(unavailable) == 0:
            errors.append(invalid(field, unavailable, "cannot be 0"))
        errors += over_100_percent_errors(unavailable, field)
    return errors


def _shown(rolling: Object) -> Object:
    return {"Partition": rolling.get("partition") or 0, "MaxUnavailable": rolling.get("maxUnavailable")}


def validate_update(new: Object, old: Object) -> list[FieldError]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    errors = _spec_errors(after, creating=False)
    if any(before.get(field) != after.get(field) for field in {*before, *after} - set(MUTABLE)):
        errors.append(forbidden("spec", _FROZEN_TEXT))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    errors = counter_errors(status, "status", _COUNTERS)
    counted = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    return errors + replica_counts_errors(status, counted, "status.readyReplicas") + collision_errors(new, old)


def warnings(obj: Object) -> list[str]:
    if ((obj.get("spec") or {}).get("revisionHistoryLimit") or 0) >= 0:
        return []
    return ["spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"]


SERVED = ServedKind(
    kind=STATEFUL_SET,
    schema=schema_of("io.k8s.api.apps.v1.StatefulSet"),
    name_errors=names.as_dns_label,
    columns=(
        NAME,
        Column("Ready", ready_of, description="How many of the wanted pods are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=prepare_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    warnings=warnings,
    has_status=True,
    scale=ScalePaths(selector="spec.selector"),
)
