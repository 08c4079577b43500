"""IPAddresses: which object has which address. Those of Services are kept by `controllers/servicecidrs.py`."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import NAME, schema_of
from danlu.meta import names, objects
from danlu.meta.addresses import canonical_address_errors
from danlu.meta.fields import FieldError, immutable, invalid, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import IP_ADDRESS

_PATH = "spec.parentRef"


def name_errors(name: str, _prefix: bool) -> list[str]:
    return [error.detail for error in canonical_address_errors(name, "")]


def validate(obj: Object) -> list[FieldError]:
    parent = objects.get(obj, _PATH)
    if parent is None:
        return [required(_PATH)]
    group = parent.get("group") or ""
    errors = [invalid(f"{_PATH}.group", group, text) for text in names.dns_subdomain(group)] if group else []
    for field in ("resource", "name", "namespace"):
        value = parent.get(field) or ""
        errors += [invalid(f"{_PATH}.{field}", value, text) for text in names.path_segment(value)]
        if not value and field != "namespace":
            errors.append(required(f"{_PATH}.{field}"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new) + immutable(_PATH, objects.get(new, _PATH), objects.get(old, _PATH))


def _parent(obj: Object) -> str:
    parent = objects.get(obj, _PATH)
    if not parent:
        return "<none>"
    resource = ".".join(filter(None, (parent.get("resource"), parent.get("group")))).lower()
    return "/".join(filter(None, (resource, parent.get("namespace"), parent.get("name"))))


SERVED = ServedKind(
    kind=IP_ADDRESS,
    schema=schema_of("io.k8s.api.networking.v1.IPAddress"),
    name_errors=name_errors,
    columns=(NAME, Column("ParentRef", _parent, description="Whose address it is.")),
    validate=validate,
    validate_update=validate_update,
)
