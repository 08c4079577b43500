"""`Controller`: workers that take requests from a queue and reconcile them.

One broken object never stops the others: its error is logged once per attempt and the object waits longer each time,
while the workers go on. One that fails again and again is set aside (`setaside`): named in an event, in the log, and to
whoever asks. A conflict is not an error, it says that the cache was old: it is tried again quietly.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from danlu import errors
from danlu.client.informer import Informer
from danlu.diagnose import stated
from danlu.meta.kind import Kind, Object
from danlu.meta.said import carried
from danlu.runtime import atwork, event_priority
from danlu.runtime.reconcile import Reconcile, Request, Unreconcilable
from danlu.runtime.setaside import SetAside, SetAsideEntry, version_of
from danlu.runtime.stats import AGAIN, DONE, FAILED, Stats
from danlu.runtime.workqueue import FIRST_DELAY_S, LONGEST_DELAY_S, Closed, Queue

if TYPE_CHECKING:
    from danlu.runtime.recorder import EventRecorder

log = logging.getLogger(__name__)

STOP_S = 2.0
# A wait that was computed from the time of day is looked at again after this: the clock may have been put back since.
LONGEST_WAIT_S = 600.0
DEFAULT_WORKERS = 8  # a reconcile mostly waits for writes; those of different objects share one fsync
CROWD = 16  # objects at work at the same time, from which on …
GATHER_S = 0.4  # … changes of one object's children are gathered for so long: many looks at once help nobody
LATER_S = 2.0  # … and so long, if they are not urgent: what we wrote ourselves, a pod that was given a node

LONGEST_WHY = 500  # characters
SET_ASIDE_AFTER = 5  # failures in a row that the API has nothing to do with

BLOCKED = "its reconcile blocked the server; it is left alone until it is changed or deleted"


class Controller:
    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = DEFAULT_WORKERS,
        first_delay_s: float = FIRST_DELAY_S,
        longest_delay_s: float = LONGEST_DELAY_S,
    ) -> None:
        self.name = name
        self.queue: Queue[Request] = Queue(first_delay_s=first_delay_s, longest_delay_s=longest_delay_s)
        self.stats = Stats()
        self._reconcile = reconcile
        self._workers = workers
        self._tasks: list[asyncio.Task[None]] = []
        self._background: set[asyncio.Task[None]] = set()
        self._root: Informer | None = None  # of the objects that requests name
        self._set_aside = SetAside()
        self._recorder: EventRecorder | None = None

    def attach(self, set_aside: SetAside, recorder: EventRecorder) -> None:
        """The program's own list of what is set aside, and who tells owners of it."""
        self._set_aside = set_aside
        self._recorder = recorder

    @property
    def kind(self) -> str:
        return self._root.kind.kind if self._root is not None else ""

    def object_of(self, request: Request) -> Object | None:
        return self._root.get(request.namespace, request.name) if self._root is not None else None

    # -- what wakes it

    def watches(
        self,
        informer: Informer,
        requests: Callable[[Object], Iterable[Request]] | None = None,
        *,
        gather_s: float = 0.0,
        ignores: Callable[[str, Object, Object | None], bool] | None = None,
    ) -> None:
        """Each change asks for a reconcile of the object itself, or of what `requests` makes of it.

        `gather_s`: changes are gathered for so long. `ignores`: whether a change asks for nothing.
        """
        if requests is None and self._root is None:
            self._root = informer

        def changed(event: str, obj: Object, old: Object | None) -> None:
            if ignores is not None and ignores(event, obj, old):
                return
            if requests is None:
                later_s = 0.0 if event_priority.is_urgent(event, obj, old) else self._later_s
                self.queue.add_after(_itself(obj), later_s or gather_s)
                return
            delay_s = max(gather_s, GATHER_S) if self._in_a_crowd else gather_s
            for request in requests(obj):
                self.queue.add_after(request, delay_s)
            if old is not None:
                for request in requests(old):  # who it belonged to before must hear of it too
                    self.queue.add_after(request, delay_s)

        informer.add_handler(changed)

    def owns(self, informer: Informer, owner: Kind) -> None:
        """Each change of a child asks for a reconcile of the `owner` that controls it."""

        def changed(event: str, obj: Object, old: Object | None, name: str) -> None:
            if event_priority.is_urgent_of_child(event, obj, old):
                delay_s = GATHER_S if self._in_a_crowd else 0.0
            else:
                delay_s = self._later_s
            namespace = (obj["metadata"].get("namespace") or "") if owner.namespaced else ""
            self.queue.add_after(Request(namespace, name), delay_s)

        informer.add_owner_handler(owner.group, owner.kind, changed)

    def wake_later(self, request: Request) -> None:
        """At once, or in a crowd together with what else comes meanwhile."""
        self.queue.add_after(request, self._later_s)

    @property
    def _in_a_crowd(self) -> bool:
        return self.stats.busy >= CROWD

    @property
    def _later_s(self) -> float:
        """How long what is not urgent waits. Objects whose children are made in the background are a crowd, too."""
        return LATER_S if self.stats.busy + len(self._background) >= CROWD else 0.0

    # -- running

    def start(self) -> None:
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._work(), name=f"{self.name} worker {n}") for n in range(self._workers)
            ]

    def background(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Work that no worker waits for; it ends with the controller."""
        at_work = atwork.current()
        task = asyncio.create_task(work if at_work is None else atwork.whole(work, at_work.again()), name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before it began
        return task

    async def stop(self) -> None:
        """What is being written is finished, within `STOP_S`; nothing new is begun."""
        self.queue.close()
        if self._tasks:
            _, unfinished = await asyncio.wait(self._tasks, timeout=STOP_S)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        self._tasks = []
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            try:
                request = await self.queue.get()
            except Closed:
                return
            try:
                await self.process(request)
            except Exception:  # a worker that ended would be missed by every other object
                log.exception("%s: %s", self.name, request, extra=self._about(request))
            finally:
                self.queue.done(request)

    async def process(self, request: Request) -> None:
        """One attempt at one request; what comes of a failure is decided here and nowhere else."""
        begun = time.perf_counter()
        if self._is_left_alone(request):
            self.stats.count(DONE, time.perf_counter() - begun)
            return
        page, attempt = self._set_aside.page, self._attempt(request)
        self.stats.busy += 1
        try:
            result = await (attempt if page is None else atwork.whole(attempt, self._at_work(page, request)))
        finally:
            self.stats.busy -= 1
        if result == DONE:  # also where it blocked the server and came to an end
            self._set_aside.take_back(self.name, request)
        self.stats.count(result, time.perf_counter() - begun)

    def _at_work(self, page: atwork.Page, request: Request) -> atwork.Work:
        obj = self.object_of(request)
        version = version_of(obj) if obj is not None else ""
        where = self.kind, request.namespace, request.name
        return atwork.Work(page, SetAsideEntry(self.name, *where, BLOCKED, version=version))

    def _about(self, request: Request) -> dict[str, str]:
        """For logs whose lines have fields."""
        return {"controller": self.name, "object": str(request)}

    async def _attempt(self, request: Request) -> str:
        try:
            outcome = await self._reconcile(request)
        except (errors.Conflict, errors.ServiceUnavailable, errors.Timeout, errors.InsufficientStorage) as error:
            # Whether the API can be reached is told in one place for all objects, not once for each.
            self.queue.add_failed(request)
            log.debug("%s: %s: %s; again", self.name, request, error, extra=self._about(request))
            return AGAIN
        except Unreconcilable as error:
            self.queue.forget(request)
            self._put_aside(request, error.args[0])
            return FAILED
        except Exception as error:  # MemoryError and RecursionError are of these, too
            delay = self.queue.add_failed(request)
            known = isinstance(error, errors.ApiError)
            log.warning(
                "%s: %s: %s; again in %.3g s",
                *(self.name, request, error, delay),
                exc_info=not known,
                extra=self._about(request),
            )
            if not known and self.queue.failures(request) >= SET_ASIDE_AFTER:
                self._put_aside(request, f"{type(error).__name__}: {error}")
            return FAILED
        self.queue.forget(request)
        if outcome is not None and outcome.requeue_after is not None:
            self.queue.add_after(request, min(outcome.requeue_after, LONGEST_WAIT_S))
        return DONE

    # -- what cannot be done

    def _put_aside(self, request: Request, why: str) -> None:
        why = why if carried(why) else why[:LONGEST_WHY]
        if not self._set_aside.put(self.name, self.kind, request, why):
            return
        log.error("%s: %s is set aside: %s", self.name, request, why, extra=self._about(request))
        obj = self.object_of(request)
        if obj is not None and self._root is not None and self._recorder is not None:
            kind = self._root.kind  # not taken from the object, of which nothing is certain
            about = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
            self._recorder.warning(about, "SetAside", stated("DL-SET-ASIDE", controller=self.name, why=why))

    def _is_left_alone(self, request: Request) -> bool:
        """Whether it blocked a process that did not come out of it, and has not been changed since."""
        entry = self._set_aside.get(self.name, request)
        if entry is None or not entry.version:
            return False
        obj = self.object_of(request)
        return obj is not None and version_of(obj) == entry.version and not obj["metadata"].get("deletionTimestamp")


def _itself(obj: Object) -> Request:
    return Request(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
