"""Keeps queues' status, and ends what ran longer than its queue allows.

A queue of many pods would be counted at each of their changes: changes are gathered for a moment (`GATHER_S`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime

from danlu import errors
from danlu.diagnose import stated
from danlu.kinds._gang import markers
from danlu.kinds._gang.markers import POD_GROUP, QUEUE, SYSTEM_NAMESPACE
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.queue.reconcile import Observed, QueueOutcome, reconcile
from danlu.kinds.queue.suspendableowners import SuspendableOwners
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD
from danlu.runtime.reconcile import Outcome, Refusal, Request
from danlu.runtime.reconciler import Children, Context, Reconciler, Watch

GATHER_S = 0.5
OURS = "t9k-scheduler"  # index: pods that our scheduler places


class QueueReconciler(Reconciler[Observed]):
    kind = QUEUE
    workers = 2

    def __init__(self, settings: PlatformSettings) -> None:
        self._owners = SuspendableOwners(settings.suspensions)
        self.reads = (Watch(POD, self._queue_of_pod, GATHER_S), Watch(POD_GROUP, _queue_of_group, GATHER_S))

    def start(self, context: Context) -> None:
        self._client, self._recorder = context.client, context.recorder
        self._groups, self._pods = context.caches[POD_GROUP], context.caches[POD]
        self._pods.add_index(OURS, lambda pod: [True] if markers.is_ours(pod) else [])

    def _queue(self, pod: Object) -> str:
        name = markers.group_of(pod)
        return markers.queue_of(pod, self._groups.get(pod["metadata"].get("namespace"), name) if name else None)

    def _queue_of_pod(self, pod: Object) -> list[Request]:
        return [Request(SYSTEM_NAMESPACE, self._queue(pod))] if markers.is_ours(pod) else []

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Observed:
        name = obj["metadata"]["name"]
        return Observed(
            [pod for pod in self._pods.by_index(OURS, True) if self._queue(pod) == name],
            [group for group in self._groups.list() if markers.queue_of({}, group) == name],
        )

    def decide(self, obj: Object, seen: Observed, now: datetime) -> QueueOutcome:
        return reconcile(obj, seen, now)

    async def finish(self, obj: Object, outcome: Outcome) -> None:
        for pod in outcome.expired if isinstance(outcome, QueueOutcome) else ():
            await self._end(pod, obj)

    async def _end(self, pod: Object, queue: Object) -> None:
        """The highest owner that can be suspended is; where there is none, the pod is deleted."""
        meta = pod["metadata"]
        why = {"pod": meta["name"], "longest": queue["spec"]["maxDuration"], "queue": queue["metadata"]["name"]}
        found = await self._owners.highest(self._client, pod)
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            if found is None:
                self._recorder.warning(pod, "MaxDurationExceeded", stated("DL-MAX-DURATION-DELETED", **why))
                await self._client.delete(POD, meta["name"], meta["namespace"], uid=meta["uid"])
            elif not found.suspension.is_set(found.obj):
                set_to = {"path": found.suspension.path, "value": found.suspension.said}
                told = stated("DL-MAX-DURATION-ENDED", **set_to, **why)
                self._recorder.warning(found.obj, "MaxDurationExceeded", told)
                own, manager = found.obj["metadata"], self._recorder.component
                await self._client.patch(
                    found.kind, own["name"], own.get("namespace"), found.suspension.patch, manager=manager
                )


def _queue_of_group(group: Object) -> list[Request]:
    return [Request(SYSTEM_NAMESPACE, markers.queue_of({}, group))]
