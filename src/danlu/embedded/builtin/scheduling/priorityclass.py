"""PriorityClasses."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import number_at, text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, first_generation, schema_of
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, immutable, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import PRIORITY_CLASS

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {
    "system-node-critical": 2 * HIGHEST_USER_PRIORITY + 1000,
    "system-cluster-critical": 2 * HIGHEST_USER_PRIORITY,
}
_POLICIES = ("PreemptLowerPriority", "Never")


def default(obj: Object) -> None:
    if obj.get("value") is None:
        obj["value"] = 0
    if obj.get("preemptionPolicy") is None:
        obj["preemptionPolicy"] = "PreemptLowerPriority"


def validate(obj: Object) -> list[FieldError]:
    name, value = objects.name(obj), obj.get("value") or 0
    errors: list[FieldError] = []
    if name.startswith("system-"):
        problem = _system_problem(name, value, bool(obj.get("globalDefault")))
        if problem:
            text = f"priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            errors.append(forbidden("metadata.name", text))
    elif value > HIGHEST_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", text))
    policy = obj.get("preemptionPolicy")
    if policy == "":
        errors.append(required("preemptionPolicy"))
    elif policy is not None and policy not in _POLICIES:
        errors.append(not_supported("preemptionPolicy", policy, _POLICIES))
    return errors


def _system_problem(name: str, value: int, is_default: bool) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    return errors + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


SERVED = ServedKind(
    kind=PRIORITY_CLASS,
    schema=schema_of("io.k8s.api.scheduling.v1.PriorityClass"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Value", number_at("value"), type="integer", description="The priority; higher goes first."),
        Column(
            "Global-Default",
            lambda obj: bool(obj.get("globalDefault")),
            type="boolean",
            description="Whether pods that name no class get this one.",
        ),
        AGE,
        Column(
            "PreemptionPolicy",
            text_at("preemptionPolicy"),
            description="Whether pods of this class may push others away.",
        ),
    ),
    prepare_create=first_generation,
    default=default,
    validate=validate,
    validate_update=validate_update,
)
