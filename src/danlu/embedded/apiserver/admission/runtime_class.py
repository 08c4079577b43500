"""A pod of a RuntimeClass takes its overhead, node selector and tolerations; a class that is not there is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from danlu.embedded.apiserver.admission import CREATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import objects, wellknown
from danlu.meta.fields import quoted
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

_OTHER = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNDEFINED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def _whole(obj: Object) -> Object:
    return obj


class RuntimeClass(Handler):
    resources = frozenset({wellknown.POD.resource})

    def __init__(self, store: Store) -> None:
        self._classes = Mirror(store, wellknown.RUNTIME_CLASS.resource, _whole)

    def mutate(self, a: Attributes) -> None:
        found = self._class_of(a)
        if found is None or a.obj is None:
            return
        spec = a.obj.setdefault("spec", {})
        overhead = objects.get(found, "overhead.podFixed") or {}
        if found.get("overhead") is not None:
            if spec.get("overhead") and spec["overhead"] != overhead:
                raise a.forbidden(_OTHER)
            spec["overhead"] = dict(overhead)
        scheduling = found.get("scheduling")
        if scheduling is not None:
            self._select(a, spec, scheduling.get("nodeSelector") or {})
            merged = merged_tolerations([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
            if merged:
                spec["tolerations"] = merged

    def _select(self, a: Attributes, spec: Object, wanted: dict[str, str]) -> None:
        own = spec.get("nodeSelector") or {}
        for key, value in wanted.items():
            if own.get(key, value) != value:
                theirs = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
                raise a.forbidden(f"conflict: {theirs}; pod.spec.nodeSelector[{key}] = {own[key]}")
        if wanted:
            spec["nodeSelector"] = {**own, **wanted}

    def validate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.subresource or a.obj is None:
            return
        found, overhead = self._class_of(a), objects.get(a.obj, "spec.overhead")
        if found is not None and found.get("overhead") is not None:
            if (objects.get(found, "overhead.podFixed") or {}) != (overhead or {}):
                raise a.forbidden(_OTHER)
        elif overhead is not None:
            raise a.forbidden(_UNDEFINED)

    def _class_of(self, a: Attributes) -> Object | None:
        """None for a pod that names none."""
        name = objects.get(a.obj or {}, "spec.runtimeClassName")
        if a.operation != CREATE or a.subresource or name is None:
            return None
        found = self._classes.get("", name)
        if found is None:
            raise a.forbidden(f"pod rejected: RuntimeClass {quoted(name)} not found")
        return found


def merged_tolerations(tolerations: list[Object]) -> list[Object]:
    """Without those that another covers; of equal ones the first stays."""
    merged: list[Object] = []
    for index, one in enumerate(tolerations):
        later = tolerations[index + 1 :]
        if not any(_covers(other, one) for other in merged) and not any(o != one and _covers(o, one) for o in later):
            merged.append(one)
    return merged


def _covers(wide: Object, narrow: Object) -> bool:
    if wide == narrow:
        return True
    key, operator, effect = (wide.get(field) or "" for field in ("key", "operator", "effect"))
    if key != (narrow.get("key") or "") and (key or operator != "Exists"):
        return False
    if effect and effect != (narrow.get("effect") or ""):
        return False
    if effect == "NoExecute" and not _lasts(wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")):
        return False
    if operator in ("Equal", ""):
        return narrow.get("operator") == "Equal" and (narrow.get("value") or "") == (wide.get("value") or "")
    return bool(operator == "Exists")


def _lasts(wide: Any, narrow: Any) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)
