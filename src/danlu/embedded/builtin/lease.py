"""Leases: who leads, and the heartbeat of nodes."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin.columns import text_at
from danlu.embedded.builtin.hooks import AGE, NAME, schema_of
from danlu.meta import names
from danlu.meta.fields import NOT_NEGATIVE, FieldError, forbidden, invalid, not_supported
from danlu.meta.kind import Object
from danlu.meta.wellknown import LEASE

_STRATEGIES = ("OldestEmulationVersion",)


def default(obj: Object) -> None:
    if not isinstance(obj.get("spec"), dict):
        obj["spec"] = {}


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    duration, transitions, strategy = (spec.get(k) for k in ("leaseDurationSeconds", "leaseTransitions", "strategy"))
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE))
    if strategy is not None:
        # Kubernetes names the field twice here.
        if "/" in strategy:
            errors += [invalid("spec.strategy.strategy", strategy, text) for text in names.qualified_name(strategy)]
        elif strategy not in _STRATEGIES:
            errors.append(not_supported("spec.strategy.strategy", strategy, _STRATEGIES))
    if spec.get("preferredHolder") and not strategy:
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


SERVED = ServedKind(
    kind=LEASE,
    schema=schema_of("io.k8s.api.coordination.v1.Lease"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("Holder", text_at("spec.holderIdentity"), description="Who holds the lease."), AGE),
    default=default,
    validate=validate,
    validate_update=validate_update,
    unconditional_update=False,
    create_on_update=True,
)
