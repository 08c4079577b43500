"""FlowSchemas and PriorityLevelConfigurations: kept as written. One process on one machine has no queues to divide."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin.columns import number_at, text_at
from danlu.embedded.builtin.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_all_but_status,
    keep_status,
    next_generation,
    schema_of,
)
from danlu.embedded.builtin.workloads import spec_of
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import FLOW_SCHEMA, PRIORITY_LEVEL

DEFAULT_PRECEDENCE, HIGHEST_PRECEDENCE = 1000, 10000
DEFAULT_SHARES = 30
DEFAULT_QUEUES: dict[str, int] = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}


def prepare_create(obj: Object) -> None:
    obj["status"] = {}
    first_generation(obj)


def prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    next_generation(new, old)


def default_flow(obj: Object) -> None:
    spec = spec_of(obj)
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or DEFAULT_PRECEDENCE


def default_level(obj: Object) -> None:
    spec = spec_of(obj)
    for name, shares in (("limited", DEFAULT_SHARES), ("exempt", 0)):
        part = spec.get(name)
        if isinstance(part, dict):
            part.setdefault("nominalConcurrencyShares", shares)
            part.setdefault("lendablePercent", 0)
    queuing = objects.get(obj, "spec.limited.limitResponse.queuing", None)
    if isinstance(queuing, dict):
        queuing.update({name: queuing.get(name) or number for name, number in DEFAULT_QUEUES.items()})


def validate_flow(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    precedence = spec.get("matchingPrecedence") or 0
    if not 0 < precedence <= HIGHEST_PRECEDENCE:
        text = f"must be between 1 and {HIGHEST_PRECEDENCE}, inclusive"
        errors.append(invalid("spec.matchingPrecedence", precedence, text))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    if not level:
        errors.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByUser", "ByNamespace"):
        errors.append(not_supported("spec.distinguisherMethod", method, ["ByNamespace", "ByUser"]))
    for index, rule in enumerate(spec.get("rules") or ()):
        errors += _rule_errors(rule, f"spec.rules[{index}]")
    return errors


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("subjects"):
        errors.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(rule.get("subjects") or ()):
        kind = subject.get("kind") or ""
        if kind not in SUBJECTS:
            errors.append(not_supported(f"{path}.subjects[{index}].kind", kind, list(SUBJECTS)))
        elif not subject.get(SUBJECTS[kind]):
            text = f"{SUBJECTS[kind]} is required when subject kind is '{kind}'"
            errors.append(required(f"{path}.subjects[{index}].{SUBJECTS[kind]}", text))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        errors.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    return errors


def validate_level(obj: Object) -> list[FieldError]:
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


def _condition_missing(obj: Object) -> str:
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Dangling":
            return str(one.get("status") or "?")
    return "?"


SERVED = (
    ServedKind(
        kind=FLOW_SCHEMA,
        schema=schema_of("io.k8s.api.flowcontrol.v1.FlowSchema"),
        name_errors=names.as_dns_subdomain,
        columns=(
            NAME,
            Column("PriorityLevel", text_at("spec.priorityLevelConfiguration.name")),
            Column("MatchingPrecedence", number_at("spec.matchingPrecedence"), type="integer"),
            Column("DistinguisherMethod", text_at("spec.distinguisherMethod.type", "<none>")),
            AGE,
            Column("MissingPL", _condition_missing),
        ),
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        prepare_status=keep_all_but_status,
        default=default_flow,
        validate=validate_flow,
        validate_update=lambda new, _old: validate_flow(new),
        has_status=True,
    ),
    ServedKind(
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
        prepare_update=prepare_update,
        prepare_status=keep_all_but_status,
        default=default_level,
        validate=validate_level,
        validate_update=lambda new, _old: validate_level(new),
        has_status=True,
    ),
)
