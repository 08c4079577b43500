"""ConfigMaps: text and bytes by key, 1 MiB in all, and a switch that freezes them."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.embedded.builtin.core.encoded import FROZEN, MAX_BYTES, check_base64, decoded_size, key_errors
from danlu.meta import names
from danlu.meta.fields import FieldError, forbidden, invalid, too_long
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP


def default(obj: Object) -> None:
    check_base64("ConfigMap", obj.get("binaryData"))
    data = obj.get("data")
    if data:
        for key, value in data.items():
            if value is None:
                data[key] = ""


def validate(obj: Object) -> list[FieldError]:
    data: dict[str, str] = obj.get("data") or {}
    binary: dict[str, str] = obj.get("binaryData") or {}
    errors: list[FieldError] = []
    total = 0
    for key, value in data.items():
        errors += key_errors("data", key)
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        total += len(value.encode())
    for key, value in binary.items():
        errors += key_errors("binaryData", key)
        total += decoded_size(value)
    if total > MAX_BYTES:
        errors.append(too_long("[]", "", MAX_BYTES))  # the whole object: Kubernetes' path without a name
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if old.get("immutable"):
        if not new.get("immutable"):
            errors.append(forbidden("immutable", FROZEN))
        for field in ("data", "binaryData"):
            if (new.get(field) or {}) != (old.get(field) or {}):
                errors.append(forbidden(field, FROZEN))
    return errors + validate(new)


def _count(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


SERVED = ServedKind(
    kind=CONFIG_MAP,
    schema=schema_of("io.k8s.api.core.v1.ConfigMap"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("Data", _count, description="How many keys it holds."), AGE),
    default=default,
    validate=validate,
    validate_update=validate_update,
)
