"""Finished jobs with `ttlSecondsAfterFinished` are deleted when their time is over, with their pods."""

from __future__ import annotations

import contextlib

from danlu import errors
from danlu.meta import conditions, objects
from danlu.meta.clock import later, parse_time
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request


def finished_at(job: Object) -> str | None:
    for type in ("Complete", "Failed"):
        found = conditions.get((job.get("status") or {}).get("conditions"), type)
        if found is not None and found.get("status") == "True":
            return found.get("lastTransitionTime")
    return None


def make(manager: Manager) -> Controller:
    jobs, client = manager.informer(JOB), manager.client

    async def reconcile(request: Request) -> Outcome | None:
        job = jobs.get(request.namespace, request.name)
        if job is None or objects.is_deleting(job):
            return None
        ttl, finished = job["spec"].get("ttlSecondsAfterFinished"), finished_at(job)
        if ttl is None or finished is None:
            return None
        left = (later(parse_time(finished), ttl) - manager.clock()).total_seconds()
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
