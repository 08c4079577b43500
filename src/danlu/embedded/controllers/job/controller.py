"""The Job controller: counts, decides, makes or deletes pods, writes the status; one `JobSync` at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from danlu import errors
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.podcontrol import PodControl
from danlu.embedded.controllers.job import jobspec
from danlu.embedded.controllers.job.scaling import Scaling
from danlu.embedded.controllers.job.sync import JobSync
from danlu.embedded.controllers.job.tracking import Tracking
from danlu.meta import objects, owners
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB, POD
from danlu.runtime import Controller, Manager, Outcome, Request

# Changes of pods are gathered for this long: four pods that start together are one write of the status, not four.
BATCH_PERIOD_S = 0.05
FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
TRACKED = "tracked by job"
REMOVE_FINALIZER = {"metadata": {"$deleteFromPrimitiveList/finalizers": [jobspec.TRACKING_FINALIZER]}}


def make(manager: Manager) -> Controller:
    jobs = JobController(manager)
    controller = Controller("job", jobs.reconcile, first_delay_s=FIRST_RETRY_S, longest_delay_s=LONGEST_RETRY_S)
    controller.watches(jobs.jobs)
    jobs.control.wakes(controller, jobs.jobs, BATCH_PERIOD_S)
    return controller


def _tracked_by(pod: Object) -> list[Hashable]:
    """Index function: the job that has yet to count this pod, by namespace and name."""
    if not jobspec.is_tracked(pod):
        return []
    owner = owners.controller_of(pod)
    if owner is not None:
        name = owner["name"] if owner["kind"] == JOB.kind else ""
    else:
        name = objects.labels_of(pod).get("batch.kubernetes.io/job-name", "")
    return [(pod["metadata"]["namespace"], name)] if name else []


class JobController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.recorder = manager.recorder("job-controller")
        self.control = PodControl(manager, JOB, "job-controller")
        self.jobs = manager.informer(JOB)
        self.control.informer.add_index(TRACKED, _tracked_by)
        self.backoffs: dict[Request, jobspec.Backoff] = {}

    async def reconcile(self, request: Request) -> Outcome | None:
        job = self.jobs.get(request.namespace, request.name)
        if job is not None and job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            return None
        await self._let_go(request, job)
        if job is None or jobspec.is_finished(job):
            self.backoffs.pop(request, None)
            return None
        pods = await self.control.claim(job, states.selector_of(job), [jobspec.TRACKING_FINALIZER])
        return await self._sync(request, job, pods)

    async def _sync(self, request: Request, job: Object, pods: list[Object]) -> Outcome:
        sync = JobSync(job, pods, self.clock(), self.backoffs.get(request, jobspec.Backoff()))
        sync.count()
        if not sync.status.get("startTime") and not jobspec.is_suspended(job):
            sync.status["startTime"] = rfc3339(sync.now)
        sync.find_end()
        if jobspec.is_indexed(job):
            sync.count_indexes()
        scaling = Scaling(sync, self)
        failure = await scaling.end() if sync.finish is not None else await scaling.go_on()
        await Tracking(sync, self, request).track()
        if failure is not None and not (isinstance(failure, errors.ApiError) and states.is_namespace_ending(failure)):
            raise failure
        return Outcome(requeue_after=min(sync.look_again, default=None))

    async def _let_go(self, request: Request, job: Object | None) -> None:
        """Pods that a job will never count (it is gone, or has finished) must not wait for it."""
        stale = []
        for pod in self.control.informer.by_index(TRACKED, (request.namespace, request.name)):
            owner = owners.controller_of(pod)
            uid = owner["uid"] if owner is not None else None
            if job is None or jobspec.is_finished(job) or (uid is not None and uid != job["metadata"]["uid"]):
                stale.append(pod)
        await self.remove_finalizers(stale)

    async def remove_finalizers(self, pods: Iterable[Object]) -> None:
        await states.at_once(self._remove_finalizer(pod) for pod in pods)

    async def _remove_finalizer(self, pod: Object) -> None:
        if not jobspec.is_tracked(pod):
            return
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"], **REMOVE_FINALIZER["metadata"]}}
        try:
            await self.client.patch(POD, meta["name"], meta["namespace"], body, type="strategic")
        except errors.NotFound:
            return
        except (errors.Conflict, errors.Invalid):
            live = await self.client.get(POD, meta["name"], meta["namespace"])
            if live["metadata"]["uid"] == meta["uid"]:
                raise  # not merely another pod of that name
