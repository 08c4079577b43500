"""Resource names and amounts: which names are known, which must be whole, which may be overcommitted.

`cpu` and `memory` are native; `nvidia.com/gpu` is extended: whole numbers only, and limit = request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from danlu.embedded.builtin._shared.quantities import not_a_quantity, parsed
from danlu.meta import names
from danlu.meta.fields import (
    NOT_NEGATIVE,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from danlu.meta.kind import Object
from danlu.meta.textcache import cached

NOT_POSITIVE = "must be greater than zero"

_HUGE = "hugepages-"
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTS = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_QUOTA = _COMPUTE | _COUNTS | {f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE}
STANDARD_QUOTA = _QUOTA | {"requests.storage"}
_STANDARD = STANDARD_QUOTA | {"storage"}
POD_LEVEL = ("cpu", "hugepages-", "memory")


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_huge_page(name: str) -> bool:
    return name.startswith(_HUGE)


@cached(1024)
def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def is_whole(name: str) -> bool:
    return name in _COUNTS or is_extended(name)


def is_standard_quota(name: str) -> bool:
    return name in STANDARD_QUOTA or name.startswith((_HUGE, "requests.hugepages-"))


@cached(1024)
def _name_texts(name: str) -> tuple[str, ...]:
    """What is wrong with a resource name anywhere."""
    texts = tuple(names.qualified_name(name))
    if texts:
        return texts
    if "/" not in name and name not in _STANDARD and not name.startswith((_HUGE, "requests.hugepages-")):
        return ("must be a standard resource type or fully qualified",)
    return ()


@cached(1024)
def container_name_texts(name: str) -> tuple[str, ...]:
    texts = _name_texts(name)
    if "/" not in name:
        if name not in _COMPUTE and not is_huge_page(name):
            return (*texts, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*texts, "doesn't follow extended resource name standard")
    return texts


@cached(1024)
def quota_name_texts(name: str) -> tuple[str, ...]:
    texts = _name_texts(name)
    if "/" not in name and not is_standard_quota(name):
        return (*texts, "must be a standard resource for quota")
    return texts


def any_name_texts(name: str) -> tuple[str, ...]:
    return _name_texts(name)


def name_errors(path: str, name: str, texts: Callable[[str], Iterable[str]]) -> list[FieldError]:
    return [invalid(path, name, text) for text in texts(name)]


def amount_errors(path: str, name: str, value: Any) -> list[FieldError]:
    """An amount of a resource: a quantity, not below zero, whole where the resource is counted."""
    quantity = parsed(value)
    if quantity is None:
        return [not_a_quantity(path, value)]
    errors: list[FieldError] = []
    milli = quantity.milli()
    if milli < 0:
        errors.append(invalid(path, str(quantity), NOT_NEGATIVE))
    if milli % 1000 and is_whole(name):
        errors.append(invalid(path, str(quantity), "must be an integer"))
    return errors


def _huge_page_error(path: str, name: str, value: Any) -> list[FieldError]:
    size, amount = parsed(name.removeprefix(_HUGE)), parsed(value)
    if amount is None:
        return []
    if size is not None and size.milli() > 0 and size.milli() % 1000 == 0 and amount.value() % size.value() == 0:
        return []
    return [invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")]


def requirement_errors(
    resources: Object | None, path: str, claims: frozenset[str] = frozenset(), *, pod_level: bool = False
) -> list[FieldError]:
    """`resources` of a container, or of the pod itself."""
    if not resources:
        return []
    errors: list[FieldError] = []
    limits: dict[str, Any] = resources.get("limits") or {}
    requests: dict[str, Any] = resources.get("requests") or {}
    for name, value in limits.items():
        field = f"{path}.limits[{name}]"
        errors += _one_requirement(field, name, value, pod_level)
    for name, value in requests.items():
        field = f"{path}.requests[{name}]"
        errors += _one_requirement(field, name, value, pod_level)
        errors += _request_against_limit(path, name, value, limits)
    both = limits.keys() | requests.keys()
    if any(map(is_huge_page, both)) and not both & {"cpu", "memory"}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if resources.get("claims"):
        errors += _claim_errors(resources["claims"], f"{path}.claims", claims)
    return errors


def _one_requirement(field: str, name: str, value: Any, pod_level: bool) -> list[FieldError]:
    if pod_level:
        errors = name_errors(field, name, _name_texts)
        if not errors and name not in ("cpu", "memory") and not is_huge_page(name):
            errors = [not_supported(field, name, POD_LEVEL)]
    else:
        errors = name_errors(field, name, container_name_texts)
    errors += amount_errors(field, name, value)
    if is_huge_page(name):
        errors += _huge_page_error(field, name, value)
    return errors


def _request_against_limit(path: str, name: str, value: Any, limits: dict[str, Any]) -> list[FieldError]:
    if name not in limits:
        if overcommit_allowed(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    request, limit = parsed(value), parsed(limits[name])
    if request is None or limit is None or request == limit:
        return []
    if not overcommit_allowed(name):
        return [invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")]
    if request > limit:
        return [invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _claim_errors(claims: list[Object], path: str, known: frozenset[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    asked_in_part: set[str] = set()
    for index, claim in enumerate(claims):
        field, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(required(field))
            continue
        key = f"{name}/{request}" if request else name
        if request and name not in seen:
            errors += [invalid(f"{field}.request", request, text) for text in names.dns_label(request)]
        if name in seen or key in seen or (not request and name in asked_in_part):
            errors.append(duplicate(field, name if name in seen or not request else key))
        seen.add(key)
        if request:
            asked_in_part.add(name)
        if name not in known:
            errors.append(not_found(field, name))
    return errors
