"""Where a pod may run: affinity, tolerations, topology spread."""

from __future__ import annotations

from collections import Counter
from typing import Any

from danlu.embedded.builtin._shared.resources import NOT_POSITIVE
from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import validate_label_key, validate_label_selector

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")
_BAD_OPERATOR = "not a valid selector operator"


def affinity_errors(affinity: Object | None, path: str) -> list[FieldError]:
    if not affinity:
        return []
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity")
    if node is not None:
        if node.get(REQUIRED) is not None:
            errors += node_selector_errors(node[REQUIRED], f"{path}.nodeAffinity.{REQUIRED}")
        for index, term in enumerate(node.get(PREFERRED) or ()):
            where = f"{path}.nodeAffinity.{PREFERRED}[{index}]"
            errors += _weight_errors(term, where)
            # A preferred term with a value no label can have matches nothing, and is let pass as Kubernetes does.
            errors += _node_term_errors(term.get("preference") or {}, f"{where}.preference", check_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        given = affinity.get(kind)
        if given is None:
            continue
        for index, term in enumerate(given.get(REQUIRED) or ()):
            errors += _pod_term_errors(term, f"{path}.{kind}.{REQUIRED}[{index}]")
        for index, term in enumerate(given.get(PREFERRED) or ()):
            where = f"{path}.{kind}.{PREFERRED}[{index}]"
            errors += _weight_errors(term, where)
            errors += _pod_term_errors(term.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    return errors


def _weight_errors(term: Object, path: str) -> list[FieldError]:
    weight = term.get("weight") or 0
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def node_selector_errors(selector: Object, path: str) -> list[FieldError]:
    """A required node selector; PersistentVolumes have one too."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += _node_term_errors(term, f"{path}.nodeSelectorTerms[{index}]", check_values=True)
    return errors


def _node_term_errors(term: Object, path: str, *, check_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        errors += _node_expression_errors(expression, f"{path}.matchExpressions[{index}]", check_values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        errors += _node_field_errors(expression, f"{path}.matchFields[{index}]")
    return errors


def _node_expression_errors(expression: Object, path: str, check_values: bool) -> list[FieldError]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    errors: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", text))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", text))
    else:
        errors.append(invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    errors += validate_label_key(expression.get("key") or "", f"{path}.key")
    if check_values:
        for index, value in enumerate(values):
            errors += [invalid(f"{path}.values[{index}]", value, text) for text in names.label_value(value)]
    return errors


def _node_field_errors(expression: Object, path: str) -> list[FieldError]:
    operator, key = expression.get("operator") or "", expression.get("key") or ""
    values = expression.get("values") or []
    errors: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", text))
    if key != "metadata.name":
        return [*errors, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        errors += [invalid(f"{path}.values[{index}]", value, text) for text in names.dns_subdomain(value)]
    return errors


def _pod_term_errors(term: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        if term.get(field) is not None:
            errors += validate_label_selector(term[field], f"{path}.{field}")
    for namespace in term.get("namespaces") or ():
        errors += [invalid(f"{path}.namespace", namespace, text) for text in names.dns_label(namespace)]
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    errors += _label_key_errors(match, mismatch, term.get("labelSelector"), path)
    topology = term.get("topologyKey") or ""
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + validate_label_key(topology, f"{path}.topologyKey")


def _label_key_errors(match: list[str], mismatch: list[str], selector: Object | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
        elif keys:
            for index, key in enumerate(keys):
                errors += validate_label_key(key, f"{path}.{field}[{index}]")
    if match and selector is not None:
        errors += _repeated_key_errors(match, selector, path)
    for index, key in enumerate(match):
        if key in mismatch:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, text))
    return errors


def _repeated_key_errors(match: list[str], selector: Object, path: str) -> list[FieldError]:
    """By now each matched key is in the selector once, put there at creation; twice means that the user named it."""
    errors: list[FieldError] = []
    seen = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in match and key in seen:
            text = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{match.index(key)}]", key, text))
        seen.add(key)
    return errors


def toleration_errors(tolerations: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            errors += validate_label_key(key, f"{where}.key")
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{where}.operator", operator, text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{where}.effect", effect, text))
        if operator in ("Equal", ""):
            texts = names.label_value(value)
            if texts:
                errors.append(invalid(f"{where}.operator", value, ";".join(texts)))
        elif operator == "Exists":
            if value:
                errors.append(invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'"))
        else:
            known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            errors.append(not_supported(f"{where}.operator", operator, known))
        if effect and effect not in EFFECTS:
            errors.append(not_supported(f"{where}.effect", effect, EFFECTS))
    return errors


def spread_errors(constraints: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    coming = Counter((one.get("topologyKey") or "", one.get("whenUnsatisfiable") or "") for one in constraints)
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew") or 0, constraint.get("topologyKey") or ""
        action = constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            errors.append(invalid(f"{where}.maxSkew", skew, NOT_POSITIVE))
        if not key:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            errors.append(not_supported(f"{where}.whenUnsatisfiable", action, _ACTIONS))
        coming[key, action] -= 1
        if coming[key, action]:  # further down there is another such
            errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _domain_errors(constraint.get("minDomains"), action, f"{where}.minDomains")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in _INCLUSION:
                errors.append(not_supported(f"{where}.{field}", policy, _INCLUSION))
        selector = constraint.get("labelSelector")
        errors += _label_key_errors(constraint.get("matchLabelKeys") or [], [], selector, where)
        if selector is not None:
            errors += validate_label_selector(selector, f"{where}.labelSelector")
    return errors


def _domain_errors(least: int | None, action: str, path: str) -> list[FieldError]:
    if least is None:
        return []
    errors = [] if least > 0 else [invalid(path, least, NOT_POSITIVE)]
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(invalid(path, least, text))
    return errors


def merge_matched_keys(pod: Object) -> None:
    """Write `matchLabelKeys` and `mismatchLabelKeys` out as selectors, with the values of the pod's own labels."""
    spec: Object = pod.get("spec") or {}
    labels: dict[str, Any] = (pod.get("metadata") or {}).get("labels") or {}
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        given = affinity.get(kind) or {}
        for term in given.get(REQUIRED) or ():
            _merge_term(term, labels)
        for term in given.get(PREFERRED) or ():
            _merge_term(term.get("podAffinityTerm") or {}, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_term(constraint, labels)


def _merge_term(term: Object, labels: dict[str, Any]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                expressions = selector.setdefault("matchExpressions", [])
                expressions.append({"key": key, "operator": operator, "values": [labels[key]]})
