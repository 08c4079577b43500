"""Objects that nobody can look after because the operator may not read what it must: they say so themselves.

While a kind's caches cannot be filled its controller does not run, so nobody else writes the condition meanwhile. From
then on it is the controller that does (`runtime.shell`).
"""

from __future__ import annotations

import asyncio

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.diagnose.refusals import explained
from danlu.meta.clock import rfc3339, utc_now
from danlu.meta.kind import Object
from danlu.meta.objects import copy
from danlu.runtime import blocked
from danlu.runtime.manager import Manager

COMPONENT = "danlu-operator"
AGAIN_S = 1.0


async def tell_blocked(manager: Manager, objects: Informer, said: str) -> None:
    """`said` is what the server answered; each object that is not over gets it as a condition and an event."""
    message = explained(said)
    recorder = manager.recorder(COMPONENT)
    for obj in objects.list():
        present = _conditions(obj)
        if blocked.is_over(present) or blocked.is_told(present, message):
            continue
        if await _write(manager.client, objects, obj, blocked.told(present, message, (), rfc3339(utc_now()))):
            recorder.warning(obj, blocked.REASON, message)


async def tell_free(manager: Manager, objects: Informer) -> None:
    """The right is there: the condition goes."""
    while found := [obj for obj in objects.list() if blocked.is_told(_conditions(obj))]:
        for obj in found:
            await _write(manager.client, objects, obj, blocked.freed(_conditions(obj)))
        await asyncio.sleep(AGAIN_S)  # for those that somebody else has just written


def _conditions(obj: Object) -> list[Object]:
    found: list[Object] = copy((obj.get("status") or {}).get("conditions") or [])
    return found


async def _write(client: Client, objects: Informer, obj: Object, wanted: list[Object]) -> bool:
    """False when it has changed meanwhile or is gone: then it is looked at again."""
    meta = obj["metadata"]
    body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": {"conditions": wanted}}
    try:
        await client.patch(objects.kind, meta["name"], meta.get("namespace"), body, subresource="status")
    except errors.ApiError:
        return False
    return True
