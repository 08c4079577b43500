"""FlowSchemas: kept as written. One process on one machine has no queues to divide."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import number_at, text_at
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_all_but_status,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import spec_of
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import FLOW_SCHEMA

DEFAULT_PRECEDENCE, HIGHEST_PRECEDENCE = 1000, 10000
SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}


def prepare_create(obj: Object) -> None:
    obj["status"] = {}
    first_generation(obj)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or DEFAULT_PRECEDENCE


def validate(obj: Object) -> list[FieldError]:
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


def _condition_missing(obj: Object) -> str:
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Dangling":
            return str(one.get("status") or "?")
    return "?"


SERVED = ServedKind(
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
    prepare_update=keep_status_and_count,
    prepare_status=keep_all_but_status,
    default=default,
    validate=validate,
    validate_update=lambda new, _old: validate(new),
    has_status=True,
)
