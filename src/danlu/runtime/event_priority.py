"""Which watch events call for a reconcile at once, and which can wait while many objects are at work.

Nothing is lost by a wrong answer: every event leads to a reconcile, one that is not urgent a little later.
"""

from __future__ import annotations

from danlu.client.informer import DELETED
from danlu.meta.kind import Object


def is_urgent(event: str, obj: Object, old: Object | None) -> bool:
    """A status is written by the controller itself and tells it nothing; all else may be what a user wants."""
    if event == DELETED or old is None or "generation" not in obj["metadata"]:
        return True
    return _desired(obj) != _desired(old)


def is_urgent_of_child(event: str, obj: Object, old: Object | None) -> bool:
    """What became of it is urgent; that it was made, or that all goes well with it, is not."""
    if event == DELETED:
        return True
    if old is None:
        return (obj.get("status") or {}).get("phase") not in (None, "Pending") or bool(_wrong(obj))
    return _state(obj) != _state(old)


DESIRED = ("uid", "generation", "labels", "annotations", "deletionTimestamp", "finalizers")


def _desired(obj: Object) -> list[object]:
    return [obj["metadata"].get(name) for name in DESIRED]


def _state(obj: Object) -> tuple[object, ...]:
    status = {name: value for name, value in (obj.get("status") or {}).items() if name != "conditions"}
    return obj["metadata"].get("deletionTimestamp"), obj["metadata"].get("ownerReferences"), status, _wrong(obj)


def _wrong(obj: Object) -> list[Object]:
    """Conditions that are not as everybody would like them."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return [one for one in found if one.get("status") != "True" or one.get("type") == "DisruptionTarget"]
