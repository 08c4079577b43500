"""What claims and volumes share: access modes, storage classes, and the rules of a claim's spec."""

from __future__ import annotations

from danlu.embedded.builtin._shared.quantities import not_a_quantity, parsed
from danlu.embedded.builtin._shared.resources import NOT_POSITIVE
from danlu.meta import names
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import validate_label_selector

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes_text(modes: list[str] | None) -> str:
    """`RWO,ROX`, always in this order."""
    return ",".join(short for mode, short in _SHORT.items() if mode in (modes or ()))


def class_of(obj: Object) -> str:
    """The storage class of a claim or a volume, where the old annotation wins."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(BETA_CLASS) or (obj.get("spec") or {}).get("storageClassName") or "")


def access_mode_errors(modes: list[str], path: str) -> list[FieldError]:
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def class_name_errors(name: str | None, path: str) -> list[FieldError]:
    return [invalid(path, name, text) for text in names.dns_subdomain(name)] if name else []


def volume_mode_errors(mode: str | None, path: str) -> list[FieldError]:
    return [] if mode is None or mode in VOLUME_MODES else [not_supported(path, mode, VOLUME_MODES)]


def claim_spec_errors(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        errors += validate_label_selector(spec["selector"], f"{path}.selector")
    errors += access_mode_errors(modes, f"{path}.accessModes")
    errors += _storage_errors(spec, f"{path}.resources[storage]")
    errors += class_name_errors(spec.get("storageClassName"), f"{path}.storageClassName")
    errors += volume_mode_errors(spec.get("volumeMode"), f"{path}.volumeMode")
    errors += _data_source_errors(spec, path)
    return errors + class_name_errors(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def _storage_errors(spec: Object, path: str) -> list[FieldError]:
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        return [required(path)]
    amount = parsed(requests["storage"])
    if amount is None:
        return [not_a_quantity(path, requests["storage"])]
    return [] if amount.nano > 0 else [invalid(path, str(amount), NOT_POSITIVE)]


def _data_source_errors(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        errors += _reference_errors(source, f"{path}.dataSource")
    if reference is not None:
        errors += _reference_errors(reference, f"{path}.dataSourceRef")
        namespace = reference.get("namespace") or ""
        errors += (
            [invalid(f"{path}.dataSourceRef.namespace", namespace, text) for text in names.dns_label(namespace)]
            if namespace
            else []
        )
    if source is None or reference is None:
        return errors
    shown: Object = {}  # Kubernetes prints its path object here, which has nothing to show
    if reference.get("namespace"):
        errors.append(invalid(path, shown, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, shown, "must match dataSourceRef"))
    return errors


def _reference_errors(reference: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{key}") for key in ("name", "kind") if not reference.get(key)]
    group, kind = reference.get("apiGroup") or "", reference.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, kind, text))
    if group:
        errors += [invalid(f"{path}.apiGroup", group, text) for text in names.dns_subdomain(group)]
    return errors
