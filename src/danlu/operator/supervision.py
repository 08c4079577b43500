"""Takes in each kind as soon as the API serves all that its controller reads; one that is missing stops no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import DELETED
from danlu.kinds import registry
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.meta import owners
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD
from danlu.operator import rights
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Request
from danlu.runtime.reconciler import Reconciler
from danlu.runtime.shell import bring_in

log = logging.getLogger("danlu.operator")

AUTOSCALING = ("autoscaling", "v2")
LOOK_AGAIN_S = 5.0  # for a definition that is missing


class Supervision:
    """Of all kinds, in all namespaces or in those named."""

    def __init__(
        self,
        client: Client,
        kinds: Sequence[PlatformKind],
        settings: PlatformSettings,
        namespaces: Sequence[str] = (),
        pod_began: Callable[[int], None] = lambda still_starting: None,
        calm: Callable[[], bool] = lambda: True,
    ) -> None:
        """`pod_began`: told of each pod that runs or goes, and how many have yet to. `calm`: see `Manager`."""
        self.client = client
        self._pod_began = pod_began
        self.settings = settings
        self.kinds = {kind.kind.kind: kind for kind in kinds if kind.controller is not None}
        self.managers = [
            Manager(client, namespace=namespace, calm=calm, packed=True) for namespace in namespaces or (None,)
        ]
        self.controllers: dict[str, list[Controller]] = {word: [] for word in self.kinds}
        self.filling: set[str] = set()  # kinds whose caches are not filled yet
        self.looked = False  # what is served has been found out once
        self._starting: set[str] = set()  # uids of pods that have yet to run
        self._told: set[Kind] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await asyncio.gather(*(manager.start() for manager in self.managers))
            for manager in self.managers:
                manager.informer(POD).add_handler(self._saw_pod)
            await self._take_in_all()
            await asyncio.Event().wait()
        finally:
            await self._stop()

    def _saw_pod(self, event: str, pod: Object, _before: Object | None) -> None:
        uid = pod["metadata"]["uid"]
        if event != DELETED and _is_starting(pod):
            owner = owners.controller_of(pod)
            if owner is not None and owner["kind"] in self.kinds:
                self._starting.add(uid)
        elif uid in self._starting:
            self._starting.discard(uid)
            self._pod_began(len(self._starting))

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(manager.stop() for manager in self.managers))

    async def _take_in_all(self) -> None:
        await self._look_for_autoscaling()
        waiting = {word: self._watched(kind) for word, kind in self.kinds.items()}
        while waiting:
            groups = {(kind.group, kind.version) for needed in waiting.values() for kind in needed}
            try:
                served = await self._served(groups)
            except errors.ApiError as error:
                log.debug("what is served could not be found out: %s", error)
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            for word, needed in [*waiting.items()]:
                missing = [one for one in needed if (one.group, one.version, one.plural) not in served]
                if missing:
                    self._tell_missing(self.kinds[word], missing)
                    continue
                del waiting[word]
                self.filling.add(word)
                task = asyncio.create_task(self._take_in(self.kinds[word]), name=f"take in {word}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self.looked = True
            if waiting:
                await asyncio.sleep(LOOK_AGAIN_S)

    async def _look_for_autoscaling(self) -> None:
        """Only jobs that name metrics need it: where it is not there, all others go on without."""
        while True:
            try:
                found = await self._served([AUTOSCALING])
            except errors.ApiError as error:
                log.debug("what is served could not be found out: %s", error)
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            self.settings = replace(self.settings, autoscaling=self.settings.autoscaling and bool(found))
            return

    def _reconciler(self, kind: PlatformKind) -> Reconciler[Any]:
        return registry.reconciler(kind, self.settings)

    def _watched(self, kind: PlatformKind) -> set[Kind]:
        return self._reconciler(kind).watched

    async def _take_in(self, kind: PlatformKind) -> None:
        word = kind.kind.kind
        telling = asyncio.create_task(self._tell_while_forbidden(kind), name=f"rights for {word}")
        try:
            self.controllers[word] = list(
                await asyncio.gather(*(bring_in(manager, self._reconciler(kind)) for manager in self.managers))
            )
        finally:
            telling.cancel()
        self.filling.discard(word)
        log.info("%s: looked after", word)
        for manager in self.managers:
            await rights.tell_free(manager, manager.informer(kind.kind))
        await self._wake_when_rights_change(kind)

    async def _wake_when_rights_change(self, kind: PlatformKind) -> None:
        """What its controller may no longer read, or may again, concerns each object; no event tells it."""
        needed = self._watched(kind)
        known = [manager.forbidden(needed) for manager in self.managers]
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            for number, (manager, controller) in enumerate(
                zip(self.managers, self.controllers[kind.kind.kind], strict=True)
            ):
                if (said := manager.forbidden(needed)) != known[number]:
                    known[number] = said
                    for obj in manager.informer(kind.kind).list():
                        meta = obj["metadata"]
                        controller.queue.add(Request(meta.get("namespace") or "", meta["name"]))

    async def _tell_while_forbidden(self, kind: PlatformKind) -> None:
        needed = self._watched(kind)
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            for manager in self.managers:
                if said := manager.forbidden(needed):
                    await rights.tell_blocked(manager, manager.informer(kind.kind), said[0])

    async def _served(self, versions: Iterable[tuple[str, str]]) -> set[tuple[str, str, str]]:
        found = await asyncio.gather(*(self._resources(group, version) for group, version in versions))
        return {one for part in found for one in part}

    async def _resources(self, group: str, version: str) -> list[tuple[str, str, str]]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            answer = await self.client.request("GET", path)
        except errors.NotFound:
            return []
        listed = orjson.loads(answer.body) if isinstance(answer.body, bytes) else {}
        return [(group, version, resource["name"]) for resource in listed.get("resources") or ()]

    def _tell_missing(self, kind: PlatformKind, missing: Sequence[Kind]) -> None:
        for one in missing:
            if one in self._told:
                continue
            self._told.add(one)
            if one == kind.kind:
                mend = "`danlu install --crds-only` adds it"
            else:
                mend = f"install what brings it, or choose otherwise with --gang (now: {self.settings.gang})"
            log.warning(
                "%s is not served here, so %s objects are left alone until it is; %s",
                one.resource, kind.kind.kind, mend,
            )  # fmt: skip


def _is_starting(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in (None, "Pending")
