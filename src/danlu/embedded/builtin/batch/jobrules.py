"""What a valid Job is, and what of it may change later."""

from __future__ import annotations

from typing import Any

from danlu.embedded.builtin._shared.podspec import validate_pod_template
from danlu.embedded.builtin._shared.workloads import counter_errors, mismatch_errors, template_labels, template_of
from danlu.embedded.builtin.batch.jobindexes import IndexesError, count_indexes
from danlu.meta import names, objects
from danlu.meta.conditions import is_true
from danlu.meta.fields import (
    OMITTED,
    FieldError,
    duplicate,
    immutable,
    invalid,
    not_negative,
    not_supported,
    required,
    too_long,
    too_many,
)
from danlu.meta.kind import Object
from danlu.meta.labels import SelectorError, from_label_selector, validate_label_selector

UID_LABEL = "batch.kubernetes.io/controller-uid"
UID_LABELS = ("controller-uid", UID_LABEL)
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")

_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_REPLACEMENT = ("Failed", "TerminatingOrFailed")
_STATUSES = ("False", "True", "Unknown")
_INDEXED_LIMIT = 100_000  # pods at once, and failed indexes
_MANY_COMPLETIONS, _MANY_LIMIT = 100_000, 10_000
_NEEDS_INDEXED = "requires indexed completion mode"


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _generated_selector_errors(obj, spec)
    errors += template_errors(spec) + _selector_errors(spec)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        hostname = f"{objects.name(obj)}-{completions - 1}"
        if names.dns_label(hostname):
            text = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(invalid("metadata.name", objects.name(obj), text))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = validate(new)
    errors += _completions_errors(spec, before)
    errors += immutable("spec.selector", spec.get("selector"), before.get("selector"))
    errors += _template_errors(spec, old)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        errors += immutable(f"spec.{field}", spec.get(field), before.get(field))
    return errors


# -- the selector


def _generated_selector_errors(obj: Object, spec: Object) -> list[FieldError]:
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = objects.uid(obj), objects.name(obj)
    errors: list[FieldError] = []
    expected: dict[str, str] = {}
    for labels, value in ((UID_LABELS, uid), (NAME_LABELS, name)):
        for label in labels:
            expected[label] = value
            errors += _label_errors(template_labels(spec), label, value)
    try:
        matches = from_label_selector(spec["selector"]).matches(expected)
    except SelectorError:
        return errors
    if not matches:
        errors.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return errors


def _label_errors(labels: dict[str, str], label: str, value: str) -> list[FieldError]:
    field = f"spec.template.metadata.labels[{label}]"
    if label not in labels:
        return [required(field, f"must be '{value}'")]
    return [] if labels[label] == value else [invalid(field, labels, f"must be '{value}'")]


# -- the spec


def template_errors(spec: Object) -> list[FieldError]:
    """Of all but the selector, which the Job of a template is given only when it is made."""
    errors = counter_errors(
        spec,
        "spec",
        (
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ),
    )
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        errors += _managed_by_errors(spec["managedBy"])
    errors += _mode_errors(spec)
    if spec.get("podFailurePolicy") is not None:
        errors += _failure_policy_errors(spec, "spec.podFailurePolicy.rules")
    if spec.get("successPolicy") is not None:
        errors += _success_policy_errors(spec)
    errors += _replacement_errors(spec)
    errors += validate_pod_template(template_of(spec), "spec.template")
    return errors + _restart_errors(spec)


def _selector_errors(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("selector") is None:
        errors.append(required("spec.selector"))
    else:
        errors += validate_label_selector(spec["selector"], "spec.selector")
    return errors + mismatch_errors(spec, "spec")


def _managed_by_errors(value: str) -> list[FieldError]:
    host, slash, path = value.partition("/")
    field = "spec.managedBy"
    if not value:
        return [required(field)]
    if not slash or not host or not path:
        return [invalid(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(field, host, text) for text in names.dns_subdomain(host)]
    return errors + ([too_long(field, value, 63)] if len(value.encode()) > 63 else [])


def _mode_errors(spec: Object) -> list[FieldError]:
    mode = spec.get("completionMode")
    errors: list[FieldError] = []
    if mode is not None and mode not in _MODES:
        errors.append(not_supported("spec.completionMode", mode, _MODES))
    if mode == "Indexed":
        return errors + _indexed_errors(spec)
    if mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                errors.append(invalid(f"spec.{field}", spec[field], _NEEDS_INDEXED))
    return errors


def _indexed_errors(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    completions, at_once, failed = (spec.get(key) for key in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        errors.append(required("spec.completions", "when completion mode is Indexed"))
    if at_once is not None and at_once > _INDEXED_LIMIT:
        text = f"must be less than or equal to {_INDEXED_LIMIT} when completion mode is Indexed"
        errors.append(invalid("spec.parallelism", at_once, text))
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid("spec.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > _INDEXED_LIMIT:
        errors.append(invalid("spec.maxFailedIndexes", failed, f"must be less than or equal to {_INDEXED_LIMIT}"))
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        limit = (
            f"must be less than or equal to {_MANY_LIMIT} when completions are above {_MANY_COMPLETIONS} "
            "and used with backoff limit per index"
        )
        if failed is None:
            text = f"must be specified when completions is above {_MANY_COMPLETIONS}"
            errors.append(required("spec.maxFailedIndexes", text))
        if at_once is not None and at_once > _MANY_LIMIT:
            errors.append(invalid("spec.parallelism", at_once, limit))
        if failed is not None and failed > _MANY_LIMIT:
            errors.append(invalid("spec.maxFailedIndexes", failed, limit))
    return errors


def _restart_errors(spec: Object) -> list[FieldError]:
    policy = (template_of(spec).get("spec") or {}).get("restartPolicy") or ""
    field = "spec.template.spec.restartPolicy"
    if policy in ("Always", ""):
        return [required(field, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(field, policy, ["OnFailure", "Never"])]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _replacement_errors(spec: Object) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENT
    return [] if policy is None or policy in allowed else [not_supported("spec.podReplacementPolicy", policy, allowed)]


# -- policies


def _quoted(values: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _failure_policy_errors(spec: Object, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors = [too_many(path, len(rules), 20)] if len(rules) > 20 else []
    pod = template_of(spec).get("spec") or {}
    containers = {one.get("name") for key in ("containers", "initContainers") for one in pod.get(key) or ()}
    for index, rule in enumerate(rules):
        errors += _failure_rule_errors(spec, rule, f"{path}[{index}]", containers)
    return errors


def _failure_rule_errors(spec: Object, rule: Object, path: str, containers: set[Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    action = rule.get("action") or ""
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if not action:
        errors.append(required(f"{path}.action", f"valid values: {_quoted(_ACTIONS)}"))
    elif action not in _ACTIONS:
        errors.append(not_supported(f"{path}.action", action, _ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    if codes is not None:
        errors += _exit_code_errors(codes, f"{path}.onExitCodes", containers)
    errors += _pattern_errors(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(path, OMITTED, text))
    if codes is None and not patterns:
        errors.append(invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _pattern_errors(patterns: Any, path: str) -> list[FieldError]:
    errors = [too_many(path, len(patterns), 20)] if len(patterns) > 20 else []
    for index, pattern in enumerate(patterns):
        type_, status = pattern.get("type") or "", pattern.get("status") or ""
        errors += [invalid(f"{path}[{index}].type", type_, text) for text in names.qualified_name(type_)]
        if not status:
            errors.append(required(f"{path}[{index}].status", f"valid values: {_quoted(_STATUSES)}"))
        elif status not in _STATUSES:
            errors.append(not_supported(f"{path}[{index}].status", status, _STATUSES))
    return errors


def _exit_code_errors(codes: Object, path: str, containers: set[Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = codes.get("operator") or "", codes.get("values") or []
    if not operator:
        errors.append(required(f"{path}.operator", f"valid values: {_quoted(('In', 'NotIn'))}"))
    elif operator not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.operator", operator, ("In", "NotIn")))
    name = codes.get("containerName")
    if name is not None and name not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, text))
    if not values:
        errors.append(invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if values != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def _success_policy_errors(spec: Object) -> list[FieldError]:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        return [invalid("spec.successPolicy", policy, _NEEDS_INDEXED)]
    path, rules = "spec.successPolicy.rules", policy.get("rules") or ()
    errors: list[FieldError] = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(path, text))
    if len(rules) > 20:
        errors.append(too_many(path, len(rules), 20))
    for index, rule in enumerate(rules):
        errors += _success_rule_errors(rule, spec.get("completions") or 0, f"{path}[{index}]")
    return errors


def _success_rule_errors(rule: Object, completions: int, path: str) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors: list[FieldError] = []
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, text))
    total = 0
    if indexes is not None:
        if len(indexes) > 64 * 1024:
            errors.append(too_long(f"{path}.succeededIndexes", indexes, 64 * 1024))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as why:
            errors.append(invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {why}"))
    if count is not None:
        field = f"{path}.succeededCount"
        errors += not_negative(field, count)
        if count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(field, count, text))
        if indexes is not None and count > total:
            words = "(the number of indexes in the specified succeededIndexes field)"
            errors.append(invalid(field, count, f"must be less than or equal to {total} {words}"))
    return errors


# -- changes


def _completions_errors(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        return immutable("spec.completions", new, old)
    if new is None or new == old or new == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")]


def _template_errors(spec: Object, old: Object) -> list[FieldError]:
    """Where pods are scheduled, and what they ask for, may change while the Job is suspended and runs nothing."""
    before = old.get("spec") or {}
    template, old_template = template_of(spec), template_of(before)
    if template == old_template:
        return []
    if not _may_change_template(old):
        return immutable("spec.template", template, old_template)
    pod = objects.copy(template.get("spec") or {})
    was = _with_directives_of(objects.copy(old_template.get("spec") or {}), pod)
    for key in ("containers", "initContainers"):
        pairs = zip(pod.get(key) or (), was.get(key) or (), strict=False)
        if len(pod.get(key) or ()) == len(was.get(key) or ()):
            for container, old_container in pairs:
                if container.get("name") == old_container.get("name"):
                    old_container["resources"] = container.get("resources")
    return [] if pod == was else [invalid("spec.template.spec", template.get("spec"), "field is immutable")]


def _may_change_template(old: Object) -> bool:
    status = old.get("status") or {}
    resting = not status.get("startTime") or is_true(status.get("conditions"), "Suspended")
    return bool(objects.get(old, "spec.suspend", False)) and resting and not status.get("active")


def _with_directives_of(was: Object, pod: Object) -> Object:
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        if key in pod:
            was[key] = pod[key]
        else:
            was.pop(key, None)
    affinity = {key: value for key, value in (was.get("affinity") or {}).items() if key != "nodeAffinity"}
    wanted = (pod.get("affinity") or {}).get("nodeAffinity")
    if wanted is not None:
        affinity["nodeAffinity"] = wanted
    if affinity or pod.get("affinity") == {}:
        was["affinity"] = affinity
    else:
        was.pop("affinity", None)
    return was
