"""ownerReferences: who made an object, and who controls it."""

from __future__ import annotations

from typing import Any

from danlu.meta.kind import Kind, Object


def references(obj: Object) -> list[Object]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def reference(owner: Object, kind: Kind, *, controller: bool = True, block: bool = True) -> Object:
    """What a child writes to name its owner."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **({"controller": True} if controller else {}),
        **({"blockOwnerDeletion": True} if block else {}),
    }


def controller_of(obj: Object) -> Object | None:
    """The one reference with `controller: true`."""
    for candidate in references(obj):
        if candidate.get("controller"):
            return candidate
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller.get("uid") == owner["metadata"].get("uid")


def is_owned_by(obj: Object, uid: str) -> bool:
    return any(candidate.get("uid") == uid for candidate in references(obj))


def without(obj: Object, uid: str) -> list[dict[str, Any]]:
    return [candidate for candidate in references(obj) if candidate.get("uid") != uid]
