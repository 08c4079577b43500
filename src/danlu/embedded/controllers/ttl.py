"""Finished jobs with `ttlSecondsAfterFinished` are deleted when their time is over, with their pods."""

from __future__ import annotations

import contextlib

from danlu import errors
from danlu.embedded.controllers._shared.jobs import ended
from danlu.meta import objects
from danlu.meta.clock import later, parse_time
from danlu.meta.wellknown import JOB
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request


def make(manager: Manager) -> Controller:
    jobs, client = manager.informer(JOB), manager.client

    async def reconcile(request: Request) -> Outcome | None:
        job = jobs.get(request.namespace, request.name)
        if job is None or objects.is_deleting(job):
            return None
        ttl, end = job["spec"].get("ttlSecondsAfterFinished"), ended(job)
        if ttl is None or end is None or not end.get("lastTransitionTime"):
            return None
        left = (later(parse_time(end["lastTransitionTime"]), ttl) - manager.clock()).total_seconds()
        if left > 0:
            return Outcome(requeue_after=left)
        meta = job["metadata"]
        with contextlib.suppress(errors.NotFound):
            await client.delete(
                JOB,
                request.name,
                request.namespace,
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],  # somebody may just have given it more time
                propagation="Foreground",
            )
        return None

    controller = Controller("ttl", reconcile, workers=4)
    controller.watches(jobs)
    return controller
