"""Objects that nobody can look after because the operator may not read what it must: they say so themselves.

While a kind's caches cannot be filled its controller does not run, so nobody else writes the condition meanwhile.
"""

from __future__ import annotations

import asyncio

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.kinds.mending import with_remedy
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.objects import copy
from danlu.runtime.manager import Manager
from danlu.runtime.moments import utc_now

BLOCKED, REASON = "Blocked", "MissingRight"
OVER = ("Succeeded", "Failed", "Completed")  # conditions of a job that has ended
COMPONENT = "danlu-operator"
AGAIN_S = 1.0


async def tell_blocked(manager: Manager, objects: Informer, said: str) -> None:
    """`said` is what the server answered; each object that is not over gets it as a condition and an event."""
    message = with_remedy("", said)
    recorder = manager.recorder(COMPONENT)
    for obj in objects.list():
        present = (obj.get("status") or {}).get("conditions") or []
        found = conditions.get(present, BLOCKED)
        if any(conditions.is_true(present, type) for type in OVER) or (found and found.get("message") == message):
            continue
        now = rfc3339(utc_now())
        told = {"type": BLOCKED, "status": "True", "reason": REASON, "message": message}
        # First: of a job's conditions the last one is shown as its state.
        others = [one for one in copy(present) if one["type"] != BLOCKED]
        told |= {"lastUpdateTime": now, "lastTransitionTime": now}
        if await _write(manager.client, objects, obj, [told, *others]):
            recorder.warning(obj, REASON, message)


async def tell_free(manager: Manager, objects: Informer) -> None:
    """The right is there: the condition goes."""
    while blocked := [obj for obj in objects.list() if _is_blocked(obj)]:
        for obj in blocked:
            present = copy(obj["status"]["conditions"])
            await _write(manager.client, objects, obj, [one for one in present if one["type"] != BLOCKED])
        await asyncio.sleep(AGAIN_S)  # for those that somebody else has just written


def _is_blocked(obj: Object) -> bool:
    found = conditions.get((obj.get("status") or {}).get("conditions"), BLOCKED)
    return found is not None and found.get("reason") == REASON


async def _write(client: Client, objects: Informer, obj: Object, wanted: list[Object]) -> bool:
    """False when it has changed meanwhile or is gone: then it is looked at again."""
    meta = obj["metadata"]
    body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": {"conditions": wanted}}
    try:
        await client.patch(objects.kind, meta["name"], meta.get("namespace"), body, subresource="status")
    except errors.ApiError:
        return False
    return True
