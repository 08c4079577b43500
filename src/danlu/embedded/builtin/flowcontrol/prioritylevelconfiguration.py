"""PriorityLevelConfigurations: kept as written, as FlowSchemas are."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_all_but_status, keep_status_and_count, schema_of
from danlu.embedded.builtin._shared.workloads import spec_of
from danlu.embedded.builtin.flowcontrol.flowschema import prepare_create
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import PRIORITY_LEVEL

DEFAULT_SHARES = 30
DEFAULT_QUEUES: dict[str, int] = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


def default(obj: Object) -> None:
    spec = spec_of(obj)
    for name, shares in (("limited", DEFAULT_SHARES), ("exempt", 0)):
        part = spec.get(name)
        if isinstance(part, dict):
            part.setdefault("nominalConcurrencyShares", shares)
            part.setdefault("lendablePercent", 0)
    queuing = objects.get(obj, "spec.limited.limitResponse.queuing", None)
    if isinstance(queuing, dict):
        queuing.update({name: queuing.get(name) or number for name, number in DEFAULT_QUEUES.items()})


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    kind = spec.get("type") or ""
    if kind not in ("Exempt", "Limited"):
        return [not_supported("spec.type", kind, ["Exempt", "Limited"])]
    errors: list[FieldError] = []
    if kind == "Exempt" and spec.get("limited"):
        errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
    if kind == "Limited" and spec.get("exempt"):
        errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
    if kind == "Limited" and not spec.get("limited"):
        errors.append(required("spec.limited", "must not be empty when type is Limited"))
    response = (spec.get("limited") or {}).get("limitResponse") or {}
    if kind == "Limited" and spec.get("limited") and response.get("type") not in ("Queue", "Reject"):
        path = "spec.limited.limitResponse.type"
        errors.append(not_supported(path, response.get("type") or "", ["Queue", "Reject"]))
    shares = (spec.get(kind.lower()) or {}).get("nominalConcurrencyShares") or 0
    if shares < 0:
        path = f"spec.{kind.lower()}.nominalConcurrencyShares"
        errors.append(invalid(path, shares, "must be a non-negative integer"))
    return errors


SERVED = ServedKind(
    kind=PRIORITY_LEVEL,
    schema=schema_of("io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Type", text_at("spec.type")),
        Column("NominalConcurrencyShares", text_at("spec.limited.nominalConcurrencyShares", "<none>")),
        Column("Queues", text_at("spec.limited.limitResponse.queuing.queues", "<none>")),
        Column("HandSize", text_at("spec.limited.limitResponse.queuing.handSize", "<none>")),
        Column("QueueLengthLimit", text_at("spec.limited.limitResponse.queuing.queueLengthLimit", "<none>")),
        AGE,
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=keep_all_but_status,
    default=default,
    validate=validate,
    validate_update=lambda new, _old: validate(new),
    has_status=True,
)
