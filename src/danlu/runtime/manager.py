"""`Manager`: one set of informers for all controllers of a program, started and stopped together.

Controllers write through `manager.client`: each answer goes into the informers at once, so a controller that has just
created a pod finds it in its cache and does not create it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.meta.clock import Clock, utc_now
from danlu.meta.kind import Kind, Object
from danlu.runtime.controller import Controller
from danlu.runtime.recorder import EventRecorder
from danlu.runtime.setaside import SetAside

Factory = Callable[["Manager"], Controller]
Shared = TypeVar("Shared")


class Manager:
    def __init__(
        self,
        client: Client,
        *,
        clock: Clock = utc_now,
        namespace: str | None = None,
        calm: Callable[[], bool] = lambda: True,
        packed: bool = False,
        set_aside: SetAside | None = None,
    ) -> None:
        """`namespace` limits all informers to one namespace, for an operator that may see no more.

        `set_aside`: what controllers of the whole program have set aside.
        `calm` says whether there is time for what can wait; `packed`: whether caches are to be small rather than quick.
        """
        self.calm = calm
        self.packed = packed
        self.set_aside = set_aside or SetAside()
        self._plain_client = client
        self.client = client.observed_by(self._wrote)
        self.clock = clock
        self.namespace = namespace
        self._informers: dict[tuple[Kind, str | None, str, str], Informer] = {}
        self._by_kind: dict[Kind, list[Informer]] = {}
        self._controllers: list[Controller] = []
        self._recorders: dict[tuple[str, str], EventRecorder] = {}
        self._running = False
        self._shared: dict[Callable[[], Any], Any] = {}

    def informer(self, kind: Kind, namespace: str | None = None, labels: str = "", fields: str = "") -> Informer:
        """The shared informer; asked for while running it starts at once (`await synced()` before reading)."""
        key = (kind, namespace or (self.namespace if kind.namespaced else None), labels, fields)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = Informer(self._plain_client, *key, packed=self.packed)
            self._by_kind.setdefault(kind, []).append(informer)
            if self._running:
                informer.start()
        return informer

    @property
    def informers(self) -> Sequence[Informer]:
        return list(self._informers.values())

    async def forget(self, informer: Informer) -> None:
        """Stops an informer that nobody needs any more (a kind whose definition was deleted)."""
        key = (informer.kind, informer.namespace, informer.labels, informer.fields)
        if self._informers.pop(key, None) is not None:
            self._by_kind[informer.kind].remove(informer)
        await informer.stop()

    def recorder(self, component: str, host: str = "") -> EventRecorder:
        recorder = self._recorders.get((component, host))
        if recorder is None:
            recorder = EventRecorder(self._plain_client, component, host, clock=self.clock)
            self._recorders[component, host] = recorder
        return recorder

    def add(self, controller: Controller) -> Controller:
        self._controllers.append(controller)
        controller.attach(self.set_aside, self.recorder(controller.name))
        if self._running:
            controller.start()
        return controller

    def shared(self, make: Callable[[], Shared]) -> Shared:
        """What controllers have in common; the first to ask makes it."""
        if make not in self._shared:
            self._shared[make] = make()
        found: Shared = self._shared[make]
        return found

    def forbidden(self, kinds: Iterable[Kind]) -> list[str]:
        """What the server says of those among these kinds that it does not let us read."""
        return [one.forbidden for kind in kinds for one in self._by_kind.get(kind, ()) if one.forbidden]

    @property
    def controllers(self) -> Sequence[Controller]:
        return self._controllers

    def add_all(self, factories: Iterable[Factory]) -> None:
        for factory in factories:
            self.add(factory(self))

    async def start(self) -> None:
        """Returns when every cache is filled and the workers have begun."""
        self._running = True
        for informer in [*self._informers.values()]:
            informer.start()
        await asyncio.gather(*(informer.synced() for informer in self._informers.values()))
        for controller in self._controllers:
            controller.start()

    async def stop(self) -> None:
        """Workers first, so that none acts on a cache that is no longer kept."""
        self._running = False
        await asyncio.gather(*(controller.stop() for controller in self._controllers))
        await asyncio.gather(*(recorder.stop() for recorder in self._recorders.values()))
        await asyncio.gather(*(informer.stop() for informer in self._informers.values()))

    async def run(self) -> None:
        """Until cancelled."""
        await self.start()
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop()

    def _wrote(self, kind: Kind, obj: Object, deleted: bool) -> None:
        for informer in self._by_kind.get(kind, ()):
            if deleted:
                informer.record_deletion(obj)
            else:
                informer.record(obj)
