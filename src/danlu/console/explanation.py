"""POST /console/explain: why an object waits, of what a page has already read. Nothing is asked of the API here, so
nobody learns more than they may see: `danlu.diagnose` is pure, and the page brings what it knows."""

from __future__ import annotations

from typing import Any

from danlu.diagnose import Evidence, explain
from danlu.errors import BadRequest

LARGEST = 16 << 20  # bytes: a job of a thousand pods
LISTS = ("pods", "events", "claims", "nodes", "quotas")


def answered(asked: Any) -> dict[str, Any]:
    """Of one `object`: its `causes`. Of several `objects`, for lists: those of each, in order."""
    if isinstance(asked, dict) and isinstance(asked.get("objects"), list):
        return {"each": [explained({**asked, "object": one}) for one in asked["objects"]]}
    return {"causes": explained(asked)}


def explained(asked: Any) -> list[dict[str, Any]]:
    if not isinstance(asked, dict) or not _is_object(asked.get("object")):
        raise BadRequest(f'send {{"object": …, {", ".join(f"{name!r}: […]" for name in (*LISTS, "classes"))}}}')
    known: dict[str, Any] = {name: [one for one in asked.get(name) or () if _is_object(one)] for name in LISTS}
    classes = asked.get("classes")
    try:
        listed = [*filter(_is_object, classes)] if isinstance(classes, list) else None
        evidence = Evidence(**known, classes=listed)
        return [cause.as_json() for cause in explain(asked["object"], evidence)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadRequest(f"these are no objects of Kubernetes: {error!r}") from None


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("metadata"), dict) and "name" in value["metadata"]
