"""Admission policies and their bindings: rules in CEL for writes, and where they hold. `policies` runs them."""

from __future__ import annotations

from collections.abc import Iterable

from danlu.embedded.apiserver.admission.policies import REASONS, compile_expression, mutation_text
from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    drop_status,
    first_generation,
    keep_status,
    next_generation,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import spec_of
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, invalid, not_supported, required
from danlu.meta.kind import Kind, Object
from danlu.meta.labels import validate_label_selector

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
ACTIONS = ("Audit", "Deny", "Warn")


def prepare_create(obj: Object) -> None:
    drop_status(obj)
    first_generation(obj)


def prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    next_generation(new, old)


# -- policies


def default_policy(obj: Object) -> None:
    spec = spec_of(obj)
    spec.setdefault("failurePolicy", "Fail")
    _default_constraints(spec.get("matchConstraints"))


def _default_constraints(constraints: Object | None) -> None:
    if not isinstance(constraints, dict):
        return
    constraints.setdefault("matchPolicy", "Equivalent")
    constraints.setdefault("namespaceSelector", {})
    constraints.setdefault("objectSelector", {})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in constraints.get(field) or ():
            rule.setdefault("scope", "*")


def validate_validating(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _policy_errors(spec)
    validations = spec.get("validations") or []
    if not validations and not spec.get("auditAnnotations"):
        text = "validations or auditAnnotations must be specified"
        errors.append(
            required("spec.validations", f"{text}: validations or auditAnnotations must contain at least one item")
        )
    for index, validation in enumerate(validations):
        path = f"spec.validations[{index}]"
        errors += expression_errors(validation.get("expression"), f"{path}.expression")
        if validation.get("messageExpression"):
            errors += expression_errors(validation["messageExpression"], f"{path}.messageExpression")
        reason = validation.get("reason")
        if reason and reason not in REASONS:
            errors.append(not_supported(f"{path}.reason", reason, sorted(REASONS)))
    for index, one in enumerate(spec.get("auditAnnotations") or ()):
        errors += expression_errors(one.get("valueExpression"), f"spec.auditAnnotations[{index}].valueExpression")
    return errors


def validate_mutating(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _policy_errors(spec)
    if not spec.get("mutations"):
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    if not spec.get("reinvocationPolicy"):
        errors.append(required("spec.reinvocationPolicy"))
    elif spec["reinvocationPolicy"] not in ("Never", "IfNeeded"):
        errors.append(not_supported("spec.reinvocationPolicy", spec["reinvocationPolicy"], ["IfNeeded", "Never"]))
    for index, mutation in enumerate(spec.get("mutations") or ()):
        path = f"spec.mutations[{index}]"
        wanted = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
        kind = mutation.get("patchType") or ""
        if kind not in wanted:
            errors.append(not_supported(f"{path}.patchType", kind, sorted(wanted)))
            continue
        for name in wanted.values():
            if name != wanted[kind] and mutation.get(name) is not None:
                errors.append(forbidden(f"{path}.{name}", f"must not be set when patchType is {kind}"))
        place = f"{path}.{wanted[kind]}.expression"
        if mutation.get(wanted[kind]) is None:
            errors.append(required(f"{path}.{wanted[kind]}", f"must be specified when patchType is {kind}"))
        else:
            errors += expression_errors(mutation_text(mutation), place, messages=True)
    return errors


def _policy_errors(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        errors.append(not_supported("spec.failurePolicy", spec.get("failurePolicy") or "", ["Fail", "Ignore"]))
    param = spec.get("paramKind")
    if param is not None:
        errors += [required(f"spec.paramKind.{name}") for name in ("apiVersion", "kind") if not param.get(name)]
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += constraint_errors(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    for field in ("matchConditions", "variables"):
        seen: set[str] = set()
        for index, one in enumerate(spec.get(field) or ()):
            path, name = f"spec.{field}[{index}]", one.get("name") or ""
            if not name:
                errors.append(required(f"{path}.name"))
            elif name in seen:
                errors.append(invalid(f"{path}.name", name, "must be unique"))
            seen.add(name)
            errors += expression_errors(one.get("expression"), f"{path}.expression", messages=field == "variables")
    return errors


def expression_errors(text: str | None, path: str, *, messages: bool = False) -> list[FieldError]:
    from danlu.meta.cel.checker import CheckProblem

    if not (text or "").strip():
        return [required(path, "expression is not specified")]
    try:
        compile_expression(text or "", messages=messages)
    except CheckProblem as problem:
        return [invalid(path, text, f"compilation failed: {problem.text}")]
    return []


def constraint_errors(constraints: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("namespaceSelector", "objectSelector"):
        errors += validate_label_selector(constraints.get(field), f"{path}.{field}")
    policy = constraints.get("matchPolicy")
    if policy is not None and policy not in ("Exact", "Equivalent"):
        errors.append(not_supported(f"{path}.matchPolicy", policy, ["Equivalent", "Exact"]))
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(constraints.get(field) or ()):
            errors += rule_errors(rule, f"{path}.{field}[{index}]")
    return errors


def rule_errors(rule: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("operations", "apiGroups", "apiVersions", "resources")
              if not rule.get(name)]  # fmt: skip
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{index}]", operation, OPERATIONS))
    for name in ("operations", "apiGroups", "apiVersions"):
        if "*" in (rule.get(name) or ()) and len(rule[name]) > 1:
            errors.append(invalid(f"{path}.{name}", rule[name], "if '*' is present, must not specify other values"))
    if rule.get("scope") not in (None, "*", "Cluster", "Namespaced"):
        errors.append(not_supported(f"{path}.scope", rule["scope"], ["*", "Cluster", "Namespaced"]))
    return errors


# -- bindings


def default_binding(obj: Object) -> None:
    _default_constraints(spec_of(obj).get("matchResources"))


def validate_binding(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("policyName"):
        errors.append(required("spec.policyName"))
    reference = spec.get("paramRef")
    if reference is not None:
        if bool(reference.get("name")) == (reference.get("selector") is not None):
            text = "one of name or selector must be specified"
            errors.append(required("spec.paramRef.name", text) if not reference.get("name")
                          else forbidden("spec.paramRef.name", "name and selector are mutually exclusive"))  # fmt: skip
        if reference.get("parameterNotFoundAction") not in ("Allow", "Deny"):
            errors.append(required("spec.paramRef.parameterNotFoundAction"))
    if spec.get("matchResources") is not None:
        errors += constraint_errors(spec["matchResources"], "spec.matchResources")
    return errors


def validate_validating_binding(obj: Object) -> list[FieldError]:
    actions = (obj.get("spec") or {}).get("validationActions") or []
    errors = validate_binding(obj)
    if not actions:
        errors.append(required("spec.validationActions"))
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            errors.append(not_supported(f"spec.validationActions[{index}]", action, ACTIONS))
    if {"Deny", "Warn"} <= set(actions):
        text = "must not contain both Deny and Warn (repeating the same validation failure information in the API "
        text += "response and headers serves no purpose)"
        errors.append(invalid("spec.validationActions", actions, text))
    return errors


# -- columns


def counted_in(field: str, title: str) -> Column:
    return Column(title, lambda obj: len(objects.get(obj, f"spec.{field}", None) or ()), type="integer")


def _param(obj: Object) -> str:
    found = objects.get(obj, "spec.paramKind", None)
    return f"{found.get('apiVersion', '')}/{found.get('kind', '')}" if found else "<unset>"


def _param_reference(obj: Object) -> str:
    found = objects.get(obj, "spec.paramRef", None)
    if not found:
        return "<unset>"
    return f"{found['namespace']}/{found.get('name', '')}" if found.get("namespace") else str(found.get("name") or "*")


def served(kind: Kind, **more: object) -> ServedKind:
    validate = more.pop("validate")
    assert callable(validate)
    return ServedKind(
        kind=kind,
        schema=schema_of(f"io.k8s.api.admissionregistration.v1.{kind.kind}"),
        name_errors=names.as_dns_subdomain,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        validate=validate,
        validate_update=lambda new, _old: validate(new),
        **more,  # type: ignore[arg-type]
    )


def policy_columns(*more: Column) -> Iterable[Column]:
    return (NAME, *more, Column("ParamKind", _param, description="What the policy takes as parameters."), AGE)


BINDING_COLUMNS = (
    NAME,
    Column("PolicyName", text_at("spec.policyName"), description="The policy that is put in force."),
    Column("ParamRef", _param_reference, description="The parameters that it gets."),
    AGE,
)
