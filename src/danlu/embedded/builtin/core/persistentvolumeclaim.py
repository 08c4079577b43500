"""PersistentVolumeClaims: immutable but for growing the storage request of a bound claim."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.diffs import diff_of
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.embedded.builtin._shared.podspec import default_claim_spec
from danlu.embedded.builtin._shared.quantities import canonicalise, parsed
from danlu.embedded.builtin._shared.resources import amount_errors
from danlu.embedded.builtin.core.claimrules import access_modes_text, claim_spec_errors, class_of
from danlu.meta import names
from danlu.meta.fields import FieldError, forbidden, invalid
from danlu.meta.fields import immutable as immutable_errors
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_FIELDS: Object = {
    "accessModes": None,
    "selector": None,
    "resources": {"limits": None, "requests": None},
    "volumeName": "",
    "storageClassName": None,
    "volumeMode": None,
    "dataSource": None,
    "dataSourceRef": None,
    "volumeAttributesClassName": None,
}
FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{diff}"
)


def default(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    default_claim_spec(spec)
    status = obj.get("status")
    if not isinstance(status, dict):
        status = obj["status"] = {}
    if not status.get("phase"):
        status["phase"] = "Pending"
    canonicalise(status.get("capacity"))
    canonicalise(status.get("allocatedResources"))


def prepare_create(obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}
    _settle_data_source(obj["spec"], {})


def prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    _settle_data_source(new["spec"], old.get("spec") or {})


def _settle_data_source(spec: Object, before: Object) -> None:
    """The two names of one field follow each other; the old name drops what it never supported."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    in_use = before.get("dataSource") is not None or before.get("dataSourceRef") is not None
    if source is not None and reference is None:
        if in_use or (source.get("apiGroup") or "", source.get("kind")) in DATA_SOURCES:
            spec["dataSourceRef"] = dict(source)
        else:
            del spec["dataSource"]
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def validate(obj: Object) -> list[FieldError]:
    return claim_spec_errors(obj.get("spec") or {}, "spec")


def _storage(resources: Object | None) -> Any:
    return ((resources or {}).get("requests") or {}).get("storage")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors = validate(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors += _annotation_errors(new, old)
    expected, compared = dict(before), dict(spec)
    if not before.get("volumeName"):
        expected.pop("volumeName", None)
        compared.pop("volumeName", None)
    if before.get("storageClassName") is None and spec.get("storageClassName") is not None:
        compared.pop("storageClassName")
        expected.pop("storageClassName", None)
    if (new.get("status") or {}).get("phase") == "Bound":
        compared["resources"] = _with_storage(spec.get("resources"), _storage(before.get("resources")))
        compared.pop("volumeAttributesClassName", None)
        expected.pop("volumeAttributesClassName", None)
    if compared != expected:
        errors.append(forbidden("spec", FIXED.format(diff=diff_of(expected, compared, _FIELDS))))
    errors += _shrink_errors(spec, before, (old.get("status") or {}).get("capacity") or {})
    return errors + immutable_errors("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))


def _with_storage(resources: Object | None, storage: Any) -> Object:
    resources = dict(resources or {})
    if resources.get("requests") is not None:
        resources["requests"] = {**resources["requests"], "storage": storage}
    return resources


def _shrink_errors(spec: Object, before: Object, capacity: Object) -> list[FieldError]:
    """A request may shrink after a failed growth, but not to or below what the claim already has."""
    asked, had = parsed(_storage(spec.get("resources")) or "0"), parsed(_storage(before.get("resources")) or "0")
    if asked is None or had is None or asked >= had:
        return []
    has = parsed(capacity.get("storage") or "0")
    if has is not None and asked > has:
        return []
    return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _annotation_errors(new: Object, old: Object) -> list[FieldError]:
    value = ((new.get("metadata") or {}).get("annotations") or {}).get(BETA_CLASS) or ""
    before = ((old.get("metadata") or {}).get("annotations") or {}).get(BETA_CLASS) or ""
    return [] if value == before else [invalid(f"metadata.annotations.{BETA_CLASS}", value, "field is immutable")]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    return [
        error
        for field in ("capacity", "allocatedResources")
        for name, value in (status.get(field) or {}).items()
        for error in amount_errors(f"status.{field}[{name}]", name, value)
    ]


# -- columns


def _phase(obj: Object) -> str:
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return str((obj.get("status") or {}).get("phase") or "")


def _volume(obj: Object) -> str:
    return str((obj.get("spec") or {}).get("volumeName") or "")


def _capacity(obj: Object) -> str:
    return str(((obj.get("status") or {}).get("capacity") or {}).get("storage") or "0") if _volume(obj) else ""


def _modes(obj: Object) -> str:
    return access_modes_text((obj.get("status") or {}).get("accessModes")) if _volume(obj) else ""


def _spec_or_unset(field: str) -> Any:
    return lambda obj: (obj.get("spec") or {}).get(field) or "<unset>"


SERVED = ServedKind(
    kind=PERSISTENT_VOLUME_CLAIM,
    schema=schema_of("io.k8s.api.core.v1.PersistentVolumeClaim"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Status", _phase),
        Column("Volume", _volume),
        Column("Capacity", _capacity),
        Column("Access Modes", _modes),
        Column("StorageClass", class_of, description="StorageClass of the pvc"),
        Column("VolumeAttributesClass", _spec_or_unset("volumeAttributesClassName")),
        AGE,
        Column("VolumeMode", _spec_or_unset("volumeMode"), priority=1),
    ),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_spec,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    selectable=lambda obj: {"name": (obj.get("metadata") or {}).get("name") or ""},
    has_status=True,
    returns_deleted=True,
)
