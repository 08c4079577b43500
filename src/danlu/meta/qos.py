"""A pod's quality-of-service class: who is stopped first when a node runs short."""

from __future__ import annotations

from danlu.meta.kind import Object
from danlu.meta.quantity import QuantityError, parse

_COUNTED = ("cpu", "memory")


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort. Only cpu and memory count, and only amounts above nothing.

    Requests left out count as the limits, so the answer is the same before and after defaulting.
    """
    asked = False
    guaranteed = True
    pod_level = spec.get("resources")
    if pod_level and (pod_level.get("requests") or pod_level.get("limits")):
        holders = [pod_level]
    else:
        names = ("containers", "initContainers")
        holders = [container.get("resources") or {} for name in names for container in spec.get(name) or ()]
    for resources in holders:
        limits = resources.get("limits") or {}
        requests = resources.get("requests") or {}
        for name in _COUNTED:
            limit = _amount(limits.get(name))
            request = _amount(requests[name]) if name in requests else limit
            if limit is not None or request is not None:
                asked = True
            if limit is None or request != limit:
                guaranteed = False
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amount(text: str | int | float | None) -> int | None:
    if text is None:
        return None
    try:
        milli = parse(text).milli()
    except QuantityError:
        return None
    return milli if milli > 0 else None
