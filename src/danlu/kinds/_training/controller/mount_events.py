"""Mount events: of a pod whose volume cannot be mounted the status says nothing, only an event does.

Events are asked for, and only about pods that have been silent for a while. A watch would be dear: an API server keeps
no cache of events, so it has to look at every event of the cluster for it (at 200 jobs at once, a tenth of the time).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from danlu import errors
from danlu.client.informer import Informer
from danlu.diagnose.pods import is_silent
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT
from danlu.runtime.controller import Controller
from danlu.runtime.reconcile import Request

log = logging.getLogger(__name__)

TELLING = "reason=FailedMount"
FIRST_S, LONGEST_S = 2.0, 30.0  # most pods have begun to run by then; a node repeats its warning at about such a rate
PAGE = 500


@dataclass(slots=True)
class Silent:
    name: str
    job: Request
    due: float  # when to ask about it
    wait_s: float  # until the next time after that
    events: list[Object] = field(default_factory=list)


class MountEvents:
    """Of a controller's silent pods. One question is for all of a namespace."""

    def __init__(self, pods: Informer, controller: Controller) -> None:
        self._pods = pods
        self._controller = controller
        self._silent: dict[str, dict[str, Silent]] = {}  # by namespace and uid
        self._asking: dict[str, asyncio.Task[None]] = {}  # by namespace

    def about(self, pods: Iterable[Object], job: Request) -> list[Object]:
        """What is known by now. When that changes, the job is looked at again."""
        events: list[Object] = []
        known = self._silent.setdefault(job.namespace, {})
        for pod in filter(is_silent, pods):
            meta = pod["metadata"]
            if (silent := known.get(meta["uid"])) is None:
                due = asyncio.get_running_loop().time() + FIRST_S
                silent = known[meta["uid"]] = Silent(meta["name"], job, due, FIRST_S)
            events += silent.events
        asking = self._asking.get(job.namespace)
        if known and (asking is None or asking.done()):
            name = f"events about pods in {job.namespace}"
            self._asking[job.namespace] = self._controller.background(self._ask(job.namespace), name)
        return events

    async def _ask(self, namespace: str) -> None:
        """As long as there are silent pods."""
        loop = asyncio.get_running_loop()
        known = self._silent[namespace]
        while self._forget(namespace):
            wait_s = min(one.due for one in known.values()) - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)  # most have begun by then
                continue
            try:
                found = await self._pods.client.list(EVENT, namespace, fields=TELLING, limit=PAGE)
            except errors.ApiError as error:
                log.debug("events in %s: %s; again", namespace, error)
                continue
            finally:
                for one in known.values():
                    one.due, one.wait_s = loop.time() + one.wait_s, min(2 * one.wait_s, LONGEST_S)
            about: dict[str, list[Object]] = {}
            for event in found.items:
                about.setdefault((event.get("involvedObject") or {}).get("uid") or "", []).append(event)
            for uid, one in known.items():
                before, one.events = one.events, about.get(uid, [])
                if _messages(before) != _messages(one.events):
                    self._controller.queue.add(one.job)

    def _forget(self, namespace: str) -> bool:
        """Those that run, fail, say why they wait, or are no more. Whether others are left."""
        known = self._silent[namespace]
        for uid, one in [*known.items()]:
            pod = self._pods.get(namespace, one.name)
            if pod is None or pod["metadata"]["uid"] != uid or not is_silent(pod):
                del known[uid]
        return bool(known)


def _messages(events: Iterable[Object]) -> set[str]:
    return {str(event.get("message")) for event in events}
