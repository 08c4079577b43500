"""Writes a pod's status to the API: only when it changed, one write at a time, always the newest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from danlu import errors
from danlu.client.client import Client
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION
from danlu.meta.wellknown import POD

log = logging.getLogger(__name__)

FIRST_RETRY_S, LONGEST_RETRY_S = 0.2, 5.0


class Publisher:
    def __init__(
        self,
        client: Client,
        pod: Callable[[], Object],
        compute: Callable[[], Object],
        causes: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`pod` is the newest object known; `compute` the status that it should have, `causes` the annotation."""
        self._client = client
        self._pod = pod
        self._compute = compute
        self._causes = causes
        self._told: list[str | None] = []  # the annotation as it was last written
        self._dirty = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._last: Object | None = None
        self._stopped = False
        self.gone = False  # the object is not there any more, or is another one of the same name

    def publish(self) -> None:
        """Returns at once."""
        if self._stopped:
            return
        self._dirty.set()
        self._idle.clear()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def flush(self) -> None:
        """Returns when what is known now has been written (or there is nothing to write to)."""
        self.publish()
        await self._idle.wait()

    async def stop(self) -> None:
        """Nothing is written from here on."""
        self._stopped = True
        self._idle.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        wait = FIRST_RETRY_S
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._write()
                wait = FIRST_RETRY_S
            except Exception as error:
                log.warning("status of pod %s: %s; trying again", self._pod()["metadata"]["name"], error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_RETRY_S)
                self._dirty.set()
            if not self._dirty.is_set():
                self._idle.set()

    async def _write(self) -> None:
        pod = self._pod()
        meta = pod["metadata"]
        wanted, causes = self._compute(), self._causes()
        told = self._told[-1] if self._told else (meta.get("annotations") or {}).get(ANNOTATION)
        if self.gone or (wanted == self._last and causes == told):
            return
        known = self._last if self._last is not None else (pod.get("status") or {})
        patch: Object = {key: value for key, value in wanted.items() if known.get(key) != value}
        patch |= {key: None for key in known if key not in wanted}
        if "conditions" in patch:
            patch["conditions"] = _replacing(known.get("conditions") or (), patch["conditions"])
        if not patch and causes == told:
            self._last = wanted
            return
        body: Object = {"metadata": {"uid": meta["uid"]}}  # the uid: a successor of the same name is not ours
        body |= {"status": patch} if patch else {}
        if causes != told:
            body["metadata"]["annotations"] = {ANNOTATION: causes}
        try:
            await self._client.patch(POD, meta["name"], meta["namespace"], body, type="strategic", subresource="status")
        except errors.NotFound:
            self.gone = True
        except errors.Conflict as error:
            if "uid" not in error.message.lower():
                raise
            self.gone = True
        self._last, self._told = wanted, [causes]


def _replacing(known: Iterable[Object], wanted: list[Object]) -> list[Object]:
    """A strategic patch merges conditions by type: fields that an old one had and the new one lacks are taken out."""
    by_type = {condition["type"]: condition for condition in known}
    return [{**dict.fromkeys(by_type.get(new["type"], ())), **new} for new in wanted]
