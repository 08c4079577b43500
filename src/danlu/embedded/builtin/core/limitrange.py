"""LimitRanges: the smallest, largest and default amounts a container, pod or claim may ask for in a namespace."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.embedded.builtin._shared.quantities import canonicalise, not_a_quantity, parsed
from danlu.embedded.builtin._shared.resources import any_name_texts, container_name_texts, overcommit_allowed
from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, required
from danlu.meta.kind import Object
from danlu.meta.quantity import Quantity
from danlu.meta.wellknown import LIMIT_RANGE

TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _fill(target: dict[str, Any], source: dict[str, Any] | None) -> None:
    for name, value in (source or {}).items():
        target.setdefault(name, value)


def default(obj: Object) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        for field in _LISTS:
            canonicalise(item.get(field))
        if item.get("type") != "Container":
            continue
        limits: dict[str, Any] = item.get("default") or {}
        requests: dict[str, Any] = item.get("defaultRequest") or {}
        _fill(limits, item.get("max"))
        _fill(requests, limits)
        _fill(requests, item.get("min"))
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def validate(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, sort = f"spec.limits[{index}]", item.get("type") or ""
        errors += _type_errors(f"{path}.type", sort)
        if sort in seen:
            errors.append(duplicate(f"{path}.type", sort))
        seen.add(sort)
        errors += _item_errors(item, sort, path)
    return errors


def _type_errors(path: str, sort: str) -> list[FieldError]:
    texts = list(names.qualified_name(sort))
    if not texts and "/" not in sort and sort not in TYPES:
        texts = ["must be a standard limit type or fully qualified"]
    return [invalid(path, sort, text) for text in texts]


def _item_errors(item: Object, sort: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    texts_of = container_name_texts if sort in ("Pod", "Container") else any_name_texts
    amounts: dict[str, dict[str, Quantity]] = {}
    for field in _LISTS:
        given: dict[str, Any] = item.get(field) or {}
        if sort == "Pod" and field in ("default", "defaultRequest"):
            if given:
                errors.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name, value in given.items():
            where = f"{path}.{field}[{name}]"
            errors += [invalid(where, name, text) for text in texts_of(name)]
            quantity = parsed(value)
            if quantity is None:
                errors.append(not_a_quantity(where, value))
            else:
                amounts.setdefault(name, {})[field] = quantity
    if sort == "PersistentVolumeClaim" and not any("storage" in (item.get(field) or {}) for field in ("min", "max")):
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", text))
    for name, by_field in amounts.items():
        errors += _order_errors(by_field, name, path)
    return errors


# (the field, its word, may not be above this field, its word, the field blamed, whose value is shown)
_ORDER = (
    ("min", "min value", "max", "max value", "min", "min"),
    ("min", "min value", "defaultRequest", "default request value", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default request value", "max", "max value", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default request value", "default", "default limit value", "defaultRequest", "defaultRequest"),
    ("min", "min value", "default", "default value", "default", "min"),
    ("default", "default value", "max", "max value", "default", "max"),
)


def _order_errors(by_field: dict[str, Quantity], name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for low, low_word, high, high_word, blamed, shown in _ORDER:
        if low in by_field and high in by_field and by_field[low] > by_field[high]:
            text = f"{low_word} {by_field[low]} is greater than {high_word} {by_field[high]}"
            errors.append(invalid(f"{path}.{blamed}[{name}]", str(by_field[shown]), text))
    errors += _ratio_errors(by_field, name, path)
    limit, request = by_field.get("default"), by_field.get("defaultRequest")
    if limit is not None and request is not None and limit != request and not overcommit_allowed(name):
        text = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", str(request), text))
    return errors


def _ratio_errors(by_field: dict[str, Quantity], name: str, path: str) -> list[FieldError]:
    ratio = by_field.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    where = f"{path}.maxLimitRequestRatio[{name}]"
    errors: list[FieldError] = []
    if ratio.milli() < 1000:
        errors.append(invalid(where, str(ratio), f"ratio {ratio} is less than 1"))
    low, high = by_field.get("min"), by_field.get("max")
    if low is not None and high is not None and low.milli() > 0:
        widest = high.milli() / low.milli()
        if ratio.milli() / 1000 > widest:
            errors.append(invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {widest:f}"))
    return errors


SERVED = ServedKind(
    kind=LIMIT_RANGE,
    schema=schema_of("io.k8s.api.core.v1.LimitRange"),
    name_errors=names.as_dns_subdomain,
    default=default,
    validate=validate,
    validate_update=lambda new, _old: validate(new),
    create_on_update=True,
)
