"""Keeps queues' status, and ends what ran longer than its queue allows.

A queue of many pods would be counted at each of their changes: changes are gathered for a moment (`GATHER_S`).
"""

from __future__ import annotations

import contextlib
import logging

from danlu import errors
from danlu.client.client import Client
from danlu.kinds._gang import markers
from danlu.kinds._gang.markers import POD_GROUP, QUEUE, SYSTEM_NAMESPACE
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.queue.reconcile import Ending, Observed, QueueOutcome, ending_of, reconcile
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD
from danlu.runtime.applying import Applier
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request
from danlu.runtime.recorder import EventRecorder

log = logging.getLogger(__name__)

NAME = "queue-controller"
GATHER_S = 0.5
CLIMB = 6  # owners of owners, at most
OURS = "t9k-scheduler"  # index: pods that our scheduler places


def controller(manager: Manager, _settings: PlatformSettings) -> Controller:
    queues, groups, pods = manager.informer(QUEUE), manager.informer(POD_GROUP), manager.informer(POD)
    pods.add_index(OURS, lambda pod: [True] if markers.is_ours(pod) else [])
    recorder = manager.recorder(NAME)
    applier = Applier(manager.client, NAME, recorder)

    def queue_of(pod: Object) -> str:
        name = markers.group_of(pod)
        return markers.queue_of(pod, groups.get(pod["metadata"].get("namespace"), name) if name else None)

    async def run(request: Request) -> Outcome | None:
        queue = queues.get(request.namespace, request.name)
        if queue is None:
            return None
        observed = Observed(
            [pod for pod in pods.by_index(OURS, True) if queue_of(pod) == request.name],
            [group for group in groups.list() if markers.queue_of({}, group) == request.name],
        )
        outcome: QueueOutcome = reconcile(queue, observed, manager.clock())
        await applier.carry_out(QUEUE, queue, outcome)
        for pod in outcome.expired:
            await _end(manager.client, recorder, pod, queue)
        return outcome

    found = Controller(NAME, run, workers=2)
    found.watches(queues)

    def pod_changed(_event: str, pod: Object, _old: Object | None) -> None:
        if markers.is_ours(pod):
            found.queue.add_after(Request(SYSTEM_NAMESPACE, queue_of(pod)), GATHER_S)

    def group_changed(_event: str, group: Object, _old: Object | None) -> None:
        found.queue.add_after(Request(SYSTEM_NAMESPACE, markers.queue_of({}, group)), GATHER_S)

    pods.add_handler(pod_changed)
    groups.add_handler(group_changed)
    return found


async def _end(client: Client, recorder: EventRecorder, pod: Object, queue: Object) -> None:
    """The highest owner that can be told is told; where there is none, the pod is deleted."""
    name, longest = queue["metadata"]["name"], queue["spec"]["maxDuration"]
    why = f"pod {pod['metadata']['name']} ran longer than the maxDuration {longest} of queue {name}"
    told: tuple[Object, Kind, Ending] | None = None
    current = pod
    for _ in range(CLIMB):
        owner = await _owner(client, current)
        if owner is None:
            break
        current, kind = owner
        ending = ending_of(kind.api_version, kind.kind)
        if ending is not None:
            told = (current, kind, ending)
    meta = pod["metadata"]
    with contextlib.suppress(errors.NotFound, errors.Conflict):
        if told is None:
            recorder.warning(pod, "MaxDurationExceeded", f"Deleted: {why}")
            await client.delete(POD, meta["name"], meta["namespace"], uid=meta["uid"])
            return
        owner_found, kind, ending = told
        if not ending.is_done(owner_found):
            recorder.warning(owner_found, "MaxDurationExceeded", f"{ending.words}: {why}")
            own = owner_found["metadata"]
            await client.patch(kind, own["name"], own.get("namespace"), ending.patch, manager=NAME)


async def _owner(client: Client, obj: Object) -> tuple[Object, Kind] | None:
    reference = next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    if reference is None:
        return None
    group, _, version = reference["apiVersion"].rpartition("/")
    # Of kinds that can be told, all plurals are formed so; others are only passed through.
    kind = Kind(group, version, reference["kind"], reference["kind"].lower() + "s")
    try:
        found = await client.get(kind, reference["name"], obj["metadata"].get("namespace"))
    except errors.ApiError as error:
        log.info("owner %s/%s of %s: %s", kind.kind, reference["name"], obj["metadata"]["name"], error)
        return None
    return ({**found, "apiVersion": kind.api_version, "kind": kind.kind}, kind)
