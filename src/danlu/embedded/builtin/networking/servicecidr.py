"""ServiceCIDRs: ranges that cluster IPs come from. Who says whether one is used: `controllers/servicecidrs.py`."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, drop_status, keep_all_but_status, keep_status, schema_of
from danlu.meta import names, objects
from danlu.meta.addresses import canonical_cidr_errors, family_of
from danlu.meta.fields import IMMUTABLE, FieldError, invalid, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import SERVICE_CIDR

_PATH = "spec.cidrs"
_ONE_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def ranges(obj: Object) -> list[str]:
    found: list[str] = objects.get(obj, _PATH) or []
    return found


def validate(obj: Object) -> list[FieldError]:
    found = ranges(obj)
    if not found:
        return [required(_PATH, "at least one CIDR required")]
    if len(found) > 2:
        return [invalid(_PATH, {"CIDRs": found}, "may only hold up to 2 values")]
    errors = [error for index, text in enumerate(found) for error in canonical_cidr_errors(text, f"{_PATH}[{index}]")]
    if not errors and len({family_of(text) for text in found}) < len(found):
        errors.append(invalid(_PATH, found, _ONE_EACH))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Fixed, but for a second family beside the first."""
    found, before = ranges(new), ranges(old)
    if len(found) == len(before) or (len(before), len(found)) == (1, 2):
        errors = [
            invalid(f"{_PATH}[{index}]", text, IMMUTABLE)
            for index, (text, was) in enumerate(zip(found, before, strict=False))
            if text != was
        ]
        return errors + (validate(new) if len(found) > len(before) else [])
    return [invalid(_PATH, found, IMMUTABLE)]


SERVED = ServedKind(
    kind=SERVICE_CIDR,
    schema=schema_of("io.k8s.api.networking.v1.ServiceCIDR"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("CIDRs", lambda obj: ",".join(ranges(obj)), description="The addresses."), AGE),
    prepare_create=drop_status,
    prepare_update=keep_status,
    prepare_status=keep_all_but_status,
    validate=validate,
    validate_update=validate_update,
    has_status=True,
)
