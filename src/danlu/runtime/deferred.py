"""`DeferredCreations`: children that nobody waits for (`Outcome.create_last`), made while the workers go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from danlu import errors
from danlu.meta.kind import Object
from danlu.runtime.controller import Controller
from danlu.runtime.outcomewriter import Applier
from danlu.runtime.reconcile import Creation, Request
from danlu.runtime.refusedcreations import Refusals

log = logging.getLogger(__name__)

RETRY_S = 1.0

Child: TypeAlias = tuple[str, str, str]  # its parent's uid, its kind and name


class DeferredCreations:
    """After a batch the object is reconciled, to tell of what was refused or to try again what failed."""

    def __init__(self, controller: Controller, applier: Applier, refusals: Refusals) -> None:
        self._controller = controller
        self._applier = applier
        self._refusals = refusals
        self._under_way: set[Child] = set()

    def start(self, request: Request, obj: Object, wanted: Sequence[Creation]) -> None:
        uid = obj["metadata"]["uid"]
        missing = {
            child: one
            for one in wanted
            if not self._applier.is_seen(one.obj)  # some may have come meanwhile
            and (child := _child(uid, one.obj)) not in self._under_way
        }
        if missing:
            self._under_way.update(missing)
            name = f"{self._controller.name}: deferred children of {request}"
            self._controller.background(self._make(request, obj, missing), name)

    async def _make(self, request: Request, obj: Object, missing: Mapping[Child, Creation]) -> None:
        wake: Callable[[Request], None] = self._controller.queue.add
        try:
            refused = await self._applier.create_all(obj, missing.values())
            self._refusals.put(obj["metadata"]["uid"], refused)
            if not refused:
                wake = self._controller.wake_later  # there is nothing to tell
        except errors.ApiError as error:
            log.debug("%s: %s: %s; again", self._controller.name, request, error)
            await asyncio.sleep(RETRY_S)
        finally:
            self._under_way.difference_update(missing)
        wake(request)


def _child(uid: str, obj: Object) -> Child:
    return uid, obj["kind"], obj["metadata"]["name"]
