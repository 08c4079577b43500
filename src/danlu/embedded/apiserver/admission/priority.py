"""A pod's priority comes from its PriorityClass, never from the pod itself; at most one class is the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import wellknown
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

_CLASSES = wellknown.PRIORITY_CLASS.resource
# Present in every cluster, also before the bootstrap has written them.
_SYSTEM: dict[str, Object] = {
    name: {"metadata": {"name": name}, "value": value, "preemptionPolicy": "PreemptLowerPriority"}
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
_NO_CLASS: Object = {"metadata": {"name": ""}, "value": 0, "preemptionPolicy": "PreemptLowerPriority"}


def _whole(obj: Object) -> Object:
    return obj


class Priority(Handler):
    resources = frozenset({"pods", _CLASSES})

    def __init__(self, store: Store) -> None:
        self._classes = Mirror(store, _CLASSES, _whole)

    def mutate(self, a: Attributes) -> None:
        if a.served.key != "pods" or a.subresource or a.obj is None:
            return
        spec = a.obj.setdefault("spec", {})
        if a.operation == UPDATE:
            old = (a.old or {}).get("spec") or {}
            for field in ("priority", "preemptionPolicy"):
                if spec.get(field) is None and old.get(field) is not None:
                    spec[field] = old[field]
        elif a.operation == CREATE:
            self._resolve(a, spec)

    def _resolve(self, a: Attributes, spec: Object) -> None:
        name = spec.get("priorityClassName") or ""
        found = self._default() or _NO_CLASS if not name else self._classes.get("", name) or _SYSTEM.get(name)
        if found is None:
            raise a.forbidden(f"no PriorityClass with name {name} was found")
        value, policy = found.get("value", 0), found.get("preemptionPolicy") or "PreemptLowerPriority"
        stated = spec.get("priority")
        if stated is not None and stated != value:
            raise a.forbidden(
                f"the integer value of priority ({stated}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
        stated = spec.get("preemptionPolicy")
        if stated is not None and stated != policy:
            raise a.forbidden(
                f"the string value of PreemptionPolicy ({stated}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
        if found["metadata"]["name"]:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = value
        spec["preemptionPolicy"] = policy

    def validate(self, a: Attributes) -> None:
        if a.served.key != _CLASSES or a.obj is None or a.operation not in (CREATE, UPDATE):
            return
        if not a.obj.get("globalDefault"):
            return
        default = self._default()
        if default is None:
            return
        name = default["metadata"]["name"]
        if a.operation == CREATE or name != a.obj["metadata"].get("name"):
            raise a.forbidden(f"PriorityClass {name} is already marked as default. Only one default can exist")

    def _default(self) -> Object | None:
        defaults = [found for found in self._classes.values() if found.get("globalDefault")]
        return min(defaults, key=lambda found: int(found.get("value", 0)), default=None)
