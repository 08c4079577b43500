"""PersistentVolumes: a piece of storage with exactly one source, which never changes."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.diffs import diff_of
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.embedded.builtin._shared.podspec.placementrules import node_selector_errors
from danlu.embedded.builtin._shared.podspec.volumes import PERSISTENT_SOURCES, persistent_source_errors
from danlu.embedded.builtin._shared.quantities import canonicalise, not_a_quantity, parsed
from danlu.embedded.builtin._shared.resources import NOT_POSITIVE
from danlu.embedded.builtin.core.claimrules import (
    access_mode_errors,
    access_modes_text,
    class_name_errors,
    class_of,
    volume_mode_errors,
)
from danlu.meta import clock, names
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.fields import immutable as immutable_errors
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


def default(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    canonicalise(spec.get("capacity"))
    host_path = spec.get("hostPath")
    if host_path is not None and host_path.get("type") is None:
        host_path["type"] = ""
    status = obj.get("status")
    if not isinstance(status, dict):
        status = obj["status"] = {}
    if not status.get("phase"):
        status["phase"] = "Pending"


def prepare_create(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": clock.now_rfc3339()}


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    status, before = new.setdefault("status", {}), old.get("status") or {}
    moved, moved_before = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        if moved is None or moved == moved_before:
            status["lastPhaseTransitionTime"] = clock.now_rfc3339()
    elif moved is None and moved_before is not None:
        status["lastPhaseTransitionTime"] = moved_before


def _sources(spec: Object) -> Object:
    return {name: spec[name] for name in PERSISTENT_SOURCES if spec.get(name) is not None}


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required("spec.accessModes"))
    errors += access_mode_errors(modes, "spec.accessModes")
    errors += _capacity_errors(spec.get("capacity") or {})
    policy = spec.get("persistentVolumeReclaimPolicy") or ""
    if policy and policy not in RECLAIM_POLICIES:
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        wanted = affinity.get("required")
        path = "spec.nodeAffinity.required"
        errors += [required(path, "must specify required node constraints")] if wanted is None else []
        errors += node_selector_errors(wanted, path) if wanted is not None else []
    errors += persistent_source_errors(spec, "spec")
    if spec.get("local") is not None and not (affinity or {}).get("required"):
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    host_path = (spec.get("hostPath") or {}).get("path") or ""
    if host_path and not host_path.strip("/.") and policy == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", text))
    errors += class_name_errors(spec.get("storageClassName"), "spec.storageClassName")
    return errors + volume_mode_errors(spec.get("volumeMode"), "spec.volumeMode")


def _capacity_errors(capacity: Object) -> list[FieldError]:
    errors = [] if capacity else [required("spec.capacity")]
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(not_supported("spec.capacity", capacity or None, ("storage",)))
    for name, value in capacity.items():
        amount = parsed(value)
        if amount is None:
            errors.append(not_a_quantity(f"spec.capacity[{name}]", value))
        elif amount.nano <= 0:
            if amount.nano < 0:
                errors.append(invalid(f"spec.capacity[{name}]", amount.value(), "must be a valid resource quantity"))
            errors.append(invalid(f"spec.capacity[{name}]", str(amount), NOT_POSITIVE))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors = validate(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    sources, sources_before = _sources(spec), _sources(before)
    if sources != sources_before:
        text = f"spec.persistentvolumesource is immutable after creation\n{diff_of(sources_before, sources)}"
        errors.append(forbidden("spec.persistentvolumesource", text))
    return errors + immutable_errors("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))


# -- columns


def _phase(obj: Object) -> str:
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return str((obj.get("status") or {}).get("phase") or "")


def _claim(obj: Object) -> str:
    claim = (obj.get("spec") or {}).get("claimRef")
    return f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else ""


def _spec(obj: Object, field: str, missing: str = "") -> str:
    return str((obj.get("spec") or {}).get(field) or missing)


SERVED = ServedKind(
    kind=PERSISTENT_VOLUME,
    schema=schema_of("io.k8s.api.core.v1.PersistentVolume"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Capacity", lambda obj: str(((obj.get("spec") or {}).get("capacity") or {}).get("storage") or "0")),
        Column("Access Modes", lambda obj: access_modes_text((obj.get("spec") or {}).get("accessModes"))),
        Column("Reclaim Policy", lambda obj: _spec(obj, "persistentVolumeReclaimPolicy")),
        Column("Status", _phase),
        Column("Claim", _claim),
        Column("StorageClass", class_of, description="StorageClass of the pv"),
        Column("VolumeAttributesClass", lambda obj: _spec(obj, "volumeAttributesClassName", "<unset>")),
        Column("Reason", lambda obj: str((obj.get("status") or {}).get("reason") or "")),
        AGE,
        Column("VolumeMode", lambda obj: _spec(obj, "volumeMode", "<unset>"), priority=1),
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status,
    prepare_status=prepare_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    selectable=lambda obj: {"name": (obj.get("metadata") or {}).get("name") or ""},
    has_status=True,
    returns_deleted=True,
)
