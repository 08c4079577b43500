"""Leases: who leads, and the heartbeat of nodes."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.meta import names
from danlu.meta.fields import NOT_NEGATIVE, FieldError, invalid
from danlu.meta.kind import Object
from danlu.meta.wellknown import LEASE

_GATED = ("strategy", "preferredHolder")  # of coordinated leader election, which is off by default


def default(obj: Object) -> None:
    if not isinstance(obj.get("spec"), dict):
        obj["spec"] = {}


def prepare_create(obj: Object) -> None:
    for field in _GATED:
        obj["spec"].pop(field, None)


def prepare_update(new: Object, old: Object) -> None:
    prepare_create(new)


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


SERVED = ServedKind(
    kind=LEASE,
    schema=schema_of("io.k8s.api.coordination.v1.Lease"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("Holder", text_at("spec.holderIdentity"), description="Who holds the lease."), AGE),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    default=default,
    validate=validate,
    validate_update=validate_update,
    unconditional_update=False,
    create_on_update=True,
)
