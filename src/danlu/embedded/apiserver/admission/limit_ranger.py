"""LimitRanges: defaults for containers that state nothing, and bounds for containers, pods and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import wellknown
from danlu.meta.kind import Object
from danlu.meta.qos import quality_of_service
from danlu.meta.quantity import NANO, ZERO, Quantity
from danlu.meta.resourcesums import Amounts, amounts, pod_limits, pod_requests

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

_ANNOTATION = "kubernetes.io/limit-ranger"


@dataclass(frozen=True, slots=True)
class _Limit:
    """One item of a LimitRange."""

    type: str
    minimum: Amounts
    maximum: Amounts
    ratio: Amounts
    default_limits: Mapping[str, str]  # as written: what is put into a container
    default_requests: Mapping[str, str]


def _limits(limit_range: Object) -> list[_Limit]:
    return [
        _Limit(
            item.get("type", ""),
            amounts(item.get("min")),
            amounts(item.get("max")),
            amounts(item.get("maxLimitRequestRatio")),
            item.get("default") or {},
            item.get("defaultRequest") or {},
        )
        for item in (limit_range.get("spec") or {}).get("limits") or ()
    ]


class LimitRanger(Handler):
    resources = frozenset({"pods", wellknown.PERSISTENT_VOLUME_CLAIM.resource})

    def __init__(self, store: Store) -> None:
        self._ranges = Mirror(store, wellknown.LIMIT_RANGE.resource, _limits)

    def mutate(self, a: Attributes) -> None:
        if a.served.key != "pods" or a.namespace not in self._ranges.namespaces or not _concerns(a):
            return
        assert a.obj is not None
        for _, limits in self._ranges.items(a.namespace):
            _set_defaults(a.obj, limits)
        if a.operation == CREATE and "status" in a.obj:  # its class was given before these defaults
            a.obj["status"]["qosClass"] = quality_of_service(a.obj["spec"])

    def validate(self, a: Attributes) -> None:
        if a.namespace not in self._ranges.namespaces or not _concerns(a):
            return
        assert a.obj is not None
        check = _pod_problems if a.served.key == "pods" else _claim_problems
        for _, limits in self._ranges.items(a.namespace):
            problems = list(dict.fromkeys(problem for limit in limits for problem in check(a.obj, limit)))
            if problems:
                raise a.forbidden(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _concerns(a: Attributes) -> bool:
    if a.obj is None or a.operation not in (CREATE, UPDATE):
        return False
    if a.old is not None and "deletionTimestamp" in a.old["metadata"]:
        return False
    if a.served.key == "pods" and a.operation == UPDATE:
        return a.subresource == "resize"  # nothing else may change a pod's resources
    return not a.subresource


# -- defaults


def _set_defaults(pod: Object, limits: list[_Limit]) -> None:
    default_limits: dict[str, str] = {}
    default_requests: dict[str, str] = {}
    for limit in limits:
        if limit.type == "Container":
            default_limits.update(limit.default_limits)
            default_requests.update(limit.default_requests)
    if not default_limits and not default_requests:
        return
    notes: list[str] = []
    spec = pod.get("spec") or {}
    for title, field in (("container", "containers"), ("init container", "initContainers")):
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            for word, part, defaults in (
                ("request", "requests", default_requests),
                ("limit", "limits", default_limits),
            ):
                stated = resources.get(part) or {}
                added = {name: amount for name, amount in defaults.items() if name not in stated}
                if added:
                    resources[part] = {**stated, **added}
                    notes.append(f"{', '.join(sorted(added))} {word} for {title} {container.get('name', '')}")
            if resources:
                container["resources"] = resources
    if notes:
        note = f"LimitRanger plugin set: {'; '.join(notes)}"
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), _ANNOTATION: note}


# -- bounds


def _pod_problems(pod: Object, limit: _Limit) -> Iterator[str]:
    if limit.type == "Container":
        spec = pod.get("spec") or {}
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            yield from _problems(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
    elif limit.type == "Pod":
        without_overhead = {**pod, "spec": {**(pod.get("spec") or {}), "overhead": None}}
        yield from _problems(limit, pod_requests(without_overhead), pod_limits(without_overhead))


def _claim_problems(claim: Object, limit: _Limit) -> Iterator[str]:
    if limit.type != "PersistentVolumeClaim":
        return
    requests = amounts(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    yield from _each(limit.minimum, lambda name, bound: _below(limit.type, name, bound, requests, {}))
    yield from _each(limit.maximum, lambda name, bound: _request_above(limit.type, name, bound, requests))


def _problems(limit: _Limit, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _each(limit.minimum, lambda name, bound: _below(limit.type, name, bound, requests, limits))
    yield from _each(limit.maximum, lambda name, bound: _above(limit.type, name, bound, requests, limits))
    yield from _each(limit.ratio, lambda name, bound: _ratio_above(limit.type, name, bound, requests, limits))


def _each(bounds: Amounts, check: Callable[[str, Quantity], str]) -> Iterator[str]:
    for name in sorted(bounds):
        problem = check(name, bounds[name])
        if problem:
            yield problem


def _below(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    request, limit = requests.get(name), limits.get(name)
    text = f"minimum {name} usage per {kind} is {bound}"
    if request is None:
        return f"{text}.  No request is specified"
    if request < bound:
        return f"{text}, but request is {request}"
    if limit is not None and limit < bound:
        return f"{text}, but limit is {limit}"
    return ""


def _above(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    request, limit = requests.get(name), limits.get(name)
    text = f"maximum {name} usage per {kind} is {bound}"
    if limit is None:
        return f"{text}.  No limit is specified"
    if limit > bound:
        return f"{text}, but limit is {limit}"
    if request is not None and request > bound:
        return f"{text}, but request is {request}"
    return ""


def _request_above(kind: str, name: str, bound: Quantity, requests: Amounts) -> str:
    request = requests.get(name)
    text = f"maximum {name} usage per {kind} is {bound}"
    if request is None:
        return f"{text}.  No request is specified"
    return f"{text}, but request is {request}" if request > bound else ""


def _ratio_above(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    request, limit = requests.get(name, ZERO), limits.get(name, ZERO)
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if not request:
        return f"{text}, but no request is specified or request is 0"
    if not limit:
        return f"{text}, but no limit is specified or limit is 0"
    if limit.nano * NANO <= bound.nano * request.nano:
        return ""
    try:
        return f"{text}, but provided ratio is {limit.nano / request.nano:f}"
    except OverflowError:
        return f"{text}, but provided ratio is +Inf"
