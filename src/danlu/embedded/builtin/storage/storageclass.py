"""StorageClasses: the sorts of storage that claims can ask for."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import AGE, schema_of
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, duplicate, immutable, invalid, not_supported, required, too_long
from danlu.meta.kind import Object
from danlu.meta.labels import validate_label_key
from danlu.meta.wellknown import STORAGE_CLASS

DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_POLICIES = ("Delete", "Retain")
_MODES = ("Immediate", "WaitForFirstConsumer")
_MOST_PARAMETERS, _PARAMETERS_SIZE = 512, 256 * 1024


def default(obj: Object) -> None:
    if obj.get("reclaimPolicy") is None:
        obj["reclaimPolicy"] = "Delete"
    if obj.get("volumeBindingMode") is None:
        obj["volumeBindingMode"] = "Immediate"


def validate(obj: Object) -> list[FieldError]:
    provisioner = obj.get("provisioner") or ""
    errors: list[FieldError] = []
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        errors += [
            invalid("provisioner", provisioner.lower(), text) for text in names.qualified_name(provisioner.lower())
        ]
    errors += _parameter_errors(obj.get("parameters") or {})
    policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
    if policy and policy not in _POLICIES:
        errors.append(not_supported("reclaimPolicy", policy, _POLICIES))
    if mode is None:
        errors.append(required("volumeBindingMode"))
    elif mode not in _MODES:
        errors.append(not_supported("volumeBindingMode", mode, _MODES))
    for index, term in enumerate(obj.get("allowedTopologies") or ()):
        errors += _topology_errors(term, f"allowedTopologies[{index}].matchLabelExpressions")
    return errors


def _parameter_errors(parameters: dict[str, str]) -> list[FieldError]:
    if len(parameters) > _MOST_PARAMETERS:
        return [too_long("parameters", "", _MOST_PARAMETERS)]
    errors = [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _PARAMETERS_SIZE:
        errors.append(too_long("parameters", "", _PARAMETERS_SIZE))
    return errors


def _topology_errors(term: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, requirement in enumerate(term.get("matchLabelExpressions") or ()):
        at, values, key = f"{path}[{index}]", requirement.get("values") or [], requirement.get("key") or ""
        if not values:
            errors.append(required(f"{at}.values"))
        first = {value: place for place, value in reversed([*enumerate(values)])}
        errors += [duplicate(f"{at}.values[{i}]", value) for i, value in enumerate(values) if first[value] < i]
        errors += validate_label_key(key, f"{at}.key")
        if key in seen:
            errors.append(duplicate(f"{at}.key", key))
        seen.add(key)
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if (new.get(field) or None) != (old.get(field) or None):
            errors += immutable(field, new.get(field), old.get(field))
    return errors


def is_default(obj: Object) -> bool:
    annotations = objects.annotations_of(obj)
    return any(annotations.get(name) == "true" for name in DEFAULT_ANNOTATIONS)


def _name(obj: Object) -> str:
    return f"{objects.name(obj)} (default)" if is_default(obj) else objects.name(obj)


SERVED = ServedKind(
    kind=STORAGE_CLASS,
    schema=schema_of("io.k8s.api.storage.v1.StorageClass"),
    name_errors=names.as_dns_subdomain,
    columns=(
        Column("Name", _name, format="name", description="The name of the class, marked where it is the default."),
        Column("Provisioner", text_at("provisioner"), description="Who makes the volumes."),
        Column("ReclaimPolicy", text_at("reclaimPolicy", "Delete"), description="What becomes of a released volume."),
        Column("VolumeBindingMode", text_at("volumeBindingMode", "Immediate"), description="When a claim is bound."),
        Column(
            "AllowVolumeExpansion",
            lambda obj: bool(obj.get("allowVolumeExpansion")),
            description="Whether a claim may grow.",
        ),
        AGE,
    ),
    default=default,
    validate=validate,
    validate_update=validate_update,
    returns_deleted=True,
)
