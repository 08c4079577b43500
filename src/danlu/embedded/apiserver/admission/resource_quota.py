"""ResourceQuotas: what a namespace uses is counted with every submitted write, so a create asks one dictionary.

Counting happens in the store's `observe`, which is called when a write is submitted, before it is durable. Admission
and submission run without awaiting in between: of two creates in flight, the second sees the first.
A quota counts from the moment it is submitted; nobody waits for a controller to fill its status.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.meta import wellknown
from danlu.meta.clock import later, parse_time
from danlu.meta.kind import Object
from danlu.meta.quantity import ZERO, Quantity
from danlu.meta.resourcesums import (
    Amounts,
    amounts,
    charged_resource,
    compute_charge,
    has_deadline,
    is_charged,
    matches_scopes,
    scope_requirements,
    usage_of,
)

if TYPE_CHECKING:
    from danlu.embedded.storage import Store, Stored
    from danlu.embedded.storage.watchcache import Change

log = logging.getLogger(__name__)

_QUOTAS = wellknown.RESOURCE_QUOTA.resource
_UNCOUNTED = frozenset({"events", "events.events.k8s.io"})
_NEVER = float("inf")
# A quota on one of these asks every container to state it.
_MUST_STATE = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_POD_NAMES = _MUST_STATE | {"pods", "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"}


def is_counted(name: str) -> bool:
    """Kubernetes accepts any qualified name in `hard` (`limits.nvidia.com/gpu`), and counts only those it knows."""
    if charged_resource(name) != "pods" or name in _POD_NAMES or name == "count/pods":
        return True
    if name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name


class _Quota:
    """One ResourceQuota and what it has counted."""

    def __init__(self, quota: Object) -> None:
        self.name: str = quota["metadata"]["name"]
        self.spec: Object = quota.get("spec") or {}
        self.hard: Amounts = amounts(self.spec.get("hard"))
        self.counted = frozenset(name for name in self.hard if is_counted(name))
        self.resources = frozenset(charged_resource(name) for name in self.counted)
        self.must_state = self.counted & _MUST_STATE
        self.used: Amounts = dict.fromkeys(self.counted, ZERO)
        self._scoped = bool(scope_requirements(quota))
        self._charges: dict[tuple[str, str], Amounts] = {}
        self._overdue_at: dict[tuple[str, str], float] = {}  # pods that are free once they outlive their grace

    def matches(self, resource: str, obj: Object) -> bool:
        if resource not in self.resources:
            return False
        return not self._scoped or (resource == "pods" and matches_scopes(obj, {"spec": self.spec}))

    def charge(self, resource: str, obj: Object) -> Amounts:
        return {name: amount for name, amount in usage_of(resource, obj).items() if name in self.counted and amount}

    def count(self, resource: str, name: str, obj: Object | None) -> None:
        """`obj` is the object's newest state; None: it is gone."""
        key = (resource, name)
        charge = self.charge(resource, obj) if obj is not None and self.matches(resource, obj) else {}
        self._set(key, charge)
        overdue_at = _overdue_at(obj) if charge and resource == "pods" and obj is not None else _NEVER
        if overdue_at != _NEVER:
            self._overdue_at[key] = overdue_at
        else:
            self._overdue_at.pop(key, None)

    def _set(self, key: tuple[str, str], charge: Amounts) -> None:
        for name, amount in self._charges.pop(key, {}).items():
            self.used[name] = self.used[name] - amount
        for name, amount in charge.items():
            self.used[name] = self.used[name] + amount
        if charge:
            self._charges[key] = charge

    def release_overdue(self) -> None:
        if not self._overdue_at:
            return
        now = time.time()
        for key in [key for key, moment in self._overdue_at.items() if moment < now]:
            del self._overdue_at[key]
            kept = {name: amount for name, amount in self._charges[key].items() if name == "count/pods"}
            self._set(key, kept)


def _overdue_at(pod: Object) -> float:
    meta = pod["metadata"]
    deleted, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if not deleted or grace is None or not is_charged(pod):
        return _NEVER
    return later(parse_time(deleted), grace).timestamp()


class ResourceQuota(Handler):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._namespaces: dict[str, dict[str, _Quota]] = {}
        store.load_each(_QUOTAS, self._track)
        store.observe(self._observe)

    def usage(self, namespace: str, quota: str) -> dict[str, str]:
        """What `status.used` of that quota should say; empty where there is no such quota."""
        tracked = self._namespaces.get(namespace, {}).get(quota)
        if tracked is None:
            return {}
        tracked.release_overdue()
        return {name: str(amount) for name, amount in sorted(tracked.used.items())}

    # -- deciding

    def validate(self, a: Attributes) -> None:
        quotas = self._namespaces.get(a.namespace)
        if not quotas or a.obj is None or not _concerns(a):
            return
        resource = a.served.key
        matching = [quota for _, quota in sorted(quotas.items()) if quota.matches(resource, a.obj)]
        if resource == "pods":
            for quota in matching:
                unstated = _unstated(a.obj, quota.must_state)
                if unstated:
                    raise a.forbidden(f"failed quota: {quota.name}: must specify {unstated}")
        for quota in matching:
            wanted = quota.charge(resource, a.obj)
            if a.old is not None and a.operation == UPDATE and quota.matches(resource, a.old):
                wanted = _growth(wanted, quota.charge(resource, a.old))
            if a.subresource != "status":
                _check(a, quota, wanted)

    # -- counting

    def _observe(self, change: Change) -> None:
        stored = change.stored
        if stored.resource == _QUOTAS:
            if change.type == "DELETED":
                self._forget(stored)
            else:
                self._track(stored)
        quotas = self._namespaces.get(stored.namespace)
        if not quotas:
            return
        interested = [quota for quota in quotas.values() if stored.resource in quota.resources]
        if interested:
            obj = None if change.type == "DELETED" else stored.obj
            for quota in interested:
                quota.count(stored.resource, stored.name, obj)

    def _tracked(self, stored: Stored) -> _Quota | None:
        try:
            quota = _Quota(stored.obj)
            for resource in quota.resources:
                for item in self._store.scan_latest(resource, stored.namespace):
                    quota.count(resource, item.name, item.obj)
        except Exception:  # stored by other hands than ours: it must not stop the server
            log.exception("the quota %s/%s cannot be understood: it has no effect", stored.namespace, stored.name)
            return None
        return quota

    def _track(self, stored: Stored) -> None:
        known = self._namespaces.get(stored.namespace, {}).get(stored.name)
        if known is not None and known.spec == (stored.obj.get("spec") or {}):
            return  # only its status was written
        quota = self._tracked(stored)
        if quota is None:
            self._forget(stored)
        else:
            self._namespaces.setdefault(stored.namespace, {})[quota.name] = quota

    def _forget(self, stored: Stored) -> None:
        quotas = self._namespaces.get(stored.namespace, {})
        quotas.pop(stored.name, None)
        if not quotas:
            self._namespaces.pop(stored.namespace, None)


def _concerns(a: Attributes) -> bool:
    """Whether this write can change what is counted."""
    resource = a.served.key
    if resource in _UNCOUNTED or a.served.answer is not None or a.operation not in (CREATE, UPDATE):
        return False
    if resource == "pods":
        if a.operation == UPDATE and not a.subresource:
            return a.old is not None and a.obj is not None and has_deadline(a.old) != has_deadline(a.obj)
        return (a.operation == CREATE and not a.subresource) or (a.operation == UPDATE and a.subresource == "resize")
    if a.subresource:
        return False
    return a.operation == CREATE or resource in ("services", "persistentvolumeclaims")


def _check(a: Attributes, quota: _Quota, wanted: Amounts) -> None:
    exceeded = [name for name, amount in wanted.items() if quota.used[name] + amount > quota.hard[name]]
    if not exceeded:
        return
    quota.release_overdue()
    exceeded = [name for name in exceeded if quota.used[name] + wanted[name] > quota.hard[name]]
    if exceeded:
        raise a.forbidden(
            f"exceeded quota: {quota.name}, requested: {_shown(wanted, exceeded)}, "
            f"used: {_shown(quota.used, exceeded)}, limited: {_shown(quota.hard, exceeded)}"
        )


def _shown(values: dict[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={values[name]}" for name in sorted(names))


def _growth(new: Amounts, old: Amounts) -> Amounts:
    grown = {name: amount - old[name] if name in old else amount for name, amount in new.items()}
    return {name: amount for name, amount in grown.items() if amount > ZERO}


def _unstated(pod: Object, must_state: frozenset[str]) -> str:
    """`limits.cpu for: a,b; requests.memory for: a`"""
    if not must_state:
        return ""
    spec = pod.get("spec") or {}
    whole_pod = spec.get("resources") or {}
    if whole_pod.get("requests") or whole_pod.get("limits"):
        return ""
    lacking: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        stated = compute_charge(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in must_state:
            if name not in stated:
                lacking.setdefault(name, set()).add(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))
