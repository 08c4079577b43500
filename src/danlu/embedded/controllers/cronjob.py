"""batch/v1 CronJob: makes a Job at each time of a schedule, and clears old ones away.

A Job is named after the minute it was due in, so that one time has one Job however often it is looked at: after a
restart, or when the status could not be written. Of times that were missed only the last one is made up for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from danlu import errors
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.jobs import ended
from danlu.meta import cron, objects, owners
from danlu.meta.clock import later, parse_time, rfc3339
from danlu.meta.fields import quoted
from danlu.meta.kind import Object
from danlu.meta.wellknown import CRON_JOB, JOB
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status
from danlu.runtime.recorder import reference

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY_MISSED = 100
AFTER_S = 0.1  # that late it looks, so that it is not a moment too early
_NOT_STARTED = "Not starting job because prior execution is running and concurrency policy is Forbid"
_TOO_CLOSE = "time difference between two schedules is less than 1 second"
_TOO_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"


class NeverDue(Exception):
    """The schedule's times do not follow one another: 31 February."""


@dataclass(frozen=True, slots=True)
class Due:
    since: datetime  # from where times were counted
    at: datetime | None  # the last time that is over; None: there is none
    missed: int  # how many were, roughly


def due(cron_job: Object, schedule: cron.Schedule, now: datetime, *, deadline: bool) -> Due:
    """The last time of the schedule since it last ran; with `deadline` none that is too long ago to begin."""
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    since = parse_time(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    if deadline and spec.get("startingDeadlineSeconds") is not None:
        since = max(since, later(now, -spec["startingDeadlineSeconds"]))
    first = schedule.after(since)
    second = schedule.after(first) if first is not None else None
    if first is None or second is None:
        raise NeverDue
    if now < first:
        return Due(since, None, 0)
    if now < second:
        return Due(since, first, 0)
    between = second - first
    missed = (now - first) // between + 1
    # Times need not be equally far apart (30 6-16/4 * * 1-5): the last one is looked for from ever further back.
    back = 2
    while True:
        last, following = first, schedule.after(max(first, first + (missed - back) * between))
        while following is not None and following <= now:
            last, following = following, schedule.after(following)
        if last is not first or back > missed:
            return Due(since, last, missed)
        back *= 2


def wait_for_next(cron_job: Object, schedule: cron.Schedule, now: datetime) -> float | None:
    """Seconds; None: it never comes."""
    found = due(cron_job, schedule, now, deadline=False)
    since = found.at or (now if found.missed else found.since)
    following = schedule.after(since)
    return None if following is None else max(0.0, (following - now).total_seconds()) + AFTER_S


def make(manager: Manager) -> Controller:
    cron_jobs = CronJobController(manager)
    controller = Controller("cronjob", cron_jobs.reconcile)

    def rescheduled(_event: str, obj: Object, old: Object | None) -> bool:
        """A new schedule counts from its next time on: times that it would have had before were never promised."""
        if old is None or all(old["spec"].get(key) == obj["spec"].get(key) for key in ("schedule", "timeZone")):
            return False
        try:
            wait = wait_for_next(obj, _schedule(obj), manager.clock())
        except (cron.ScheduleError, NeverDue):
            return False
        if wait is not None:
            controller.queue.add_after(Request(objects.namespace(obj), objects.name(obj)), wait)
        return True

    controller.watches(cron_jobs.cron_jobs, ignores=rescheduled)
    controller.owns(cron_jobs.jobs, CRON_JOB)
    return controller


def _schedule(cron_job: Object) -> cron.Schedule:
    return cron.parse(cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone"))


class CronJobController:
    def __init__(self, manager: Manager) -> None:
        self.client, self.clock = manager.client, manager.clock
        self.recorder = manager.recorder("cronjob-controller")
        self.cron_jobs = manager.informer(CRON_JOB)
        self.jobs = states.index_by_owner(manager.informer(JOB))

    async def reconcile(self, request: Request) -> Outcome | None:
        cron_job = self.cron_jobs.get(request.namespace, request.name)
        if cron_job is None:
            return None
        jobs = self.jobs.by_index(states.BY_CONTROLLER, cron_job["metadata"]["uid"])
        sync = Sync(self, objects.copy(cron_job), jobs)
        try:
            wait = await sync.run()
            await sync.clear()
        finally:
            await write_status(self.client, CRON_JOB, cron_job, sync.status)
        return Outcome(requeue_after=wait)


class Sync:
    """One look at a CronJob and its jobs; what it finds and does is in `status`."""

    def __init__(self, controller: CronJobController, cron_job: Object, jobs: list[Object]) -> None:
        self._client, self._recorder = controller.client, controller.recorder
        self._now = controller.clock()
        self._cron_job, self._jobs = cron_job, jobs
        self._spec: Object = cron_job["spec"]
        self.status: Object = cron_job.setdefault("status", {})

    async def run(self) -> float | None:
        """Seconds until the next look."""
        self._look_at_jobs()
        await self._forget_missing()
        if objects.is_deleting(self._cron_job) or self._spec.get("suspend"):
            return None
        try:
            schedule = _schedule(self._cron_job)
        except cron.ScheduleError as why:
            text = f"unparseable schedule: {quoted(self._spec['schedule'])} : {why}"
            self._recorder.warning(self._cron_job, "UnparseableSchedule", text)
            return None
        try:
            found = due(self._cron_job, schedule, self._now, deadline=True)
            if found.missed > MANY_MISSED:
                self._recorder.warning(self._cron_job, "TooManyMissedTimes", _TOO_MANY)
            if found.at is not None and self._may_start(found.at):
                await self._start(found.at)
            return wait_for_next(self._cron_job, schedule, self._now)
        except NeverDue:
            text = f"invalid schedule: {self._spec['schedule']} : {_TOO_CLOSE}"
            self._recorder.warning(self._cron_job, "InvalidSchedule", text)
            return None

    # -- the jobs there are

    @property
    def _active(self) -> list[Object]:
        active: list[Object] = self.status.get("active") or []
        return active

    def _drop(self, uid: str) -> None:
        left = [one for one in self._active if one.get("uid") != uid]
        if left:
            self.status["active"] = left
        else:
            self.status.pop("active", None)

    def _look_at_jobs(self) -> None:
        known = {one.get("uid") for one in self._active}
        for job in self._jobs:
            name, uid, end = objects.name(job), objects.uid(job), ended(job)
            if uid not in known and end is None:
                text = f"Saw a job that the controller did not create or forgot: {name}"
                self._recorder.warning(self._cron_job, "UnexpectedJob", text)
            elif uid in known and end is not None:
                self._drop(uid)
                text = f"Saw completed job: {name}, condition: {end['type']}"
                self._recorder.normal(self._cron_job, "SawCompletedJob", text)
            completed = (job.get("status") or {}).get("completionTime")
            last = self.status.get("lastSuccessfulTime")
            if _is(end, "Complete") and completed and (not last or parse_time(completed) > parse_time(last)):
                self.status["lastSuccessfulTime"] = completed

    async def _forget_missing(self) -> None:
        there = {objects.uid(job) for job in self._jobs}
        for one in list(self._active):
            if one.get("uid") in there:
                continue
            try:  # it may have been made so lately that the cache has not seen it
                await self._client.get(JOB, one["name"], one["namespace"])
            except errors.NotFound:
                self._recorder.normal(self._cron_job, "MissingJob", f"Active job went missing: {one['name']}")
                self._drop(one["uid"])

    async def clear(self) -> None:
        """Deletes the oldest of those that have ended, beyond what is to be kept."""
        for type, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            kept = self._spec.get(limit)
            over = [job for job in self._jobs if _is(ended(job), type) and not objects.is_deleting(job)]
            if kept is None or len(over) <= kept:
                continue
            over.sort(key=lambda job: ((job.get("status") or {}).get("startTime") or "~", objects.name(job)))
            for job in over[: len(over) - kept]:
                await self._delete(job)

    async def _delete(self, job: Object) -> None:
        try:
            await self._client.delete(JOB, objects.name(job), objects.namespace(job), propagation="Background")
        except errors.NotFound:
            return
        except errors.ApiError as error:
            self._recorder.warning(self._cron_job, "FailedDelete", f"Deleted job: {error}")
            raise
        self._drop(objects.uid(job))
        self._recorder.normal(self._cron_job, "SuccessfulDelete", f"Deleted job {objects.name(job)}")

    # -- the next one

    def _job_name(self, at: datetime) -> str:
        return f"{objects.name(self._cron_job)}-{int(at.timestamp()) // 60}"

    def _may_start(self, at: datetime) -> bool:
        within = self._spec.get("startingDeadlineSeconds")
        if within is not None and later(at, within) < self._now:
            moment = at.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._recorder.warning(self._cron_job, "MissSchedule", f"Missed scheduled time to start a job: {moment}")
            return False
        name, last = self._job_name(at), self.status.get("lastScheduleTime")
        if any(one.get("name") == name for one in self._active) or (last and parse_time(last) == at):
            return False
        if self._spec.get("concurrencyPolicy") == "Forbid" and self._active:
            self._recorder.normal(self._cron_job, "JobAlreadyActive", _NOT_STARTED)
            return False
        return True

    async def _start(self, at: datetime) -> None:
        if self._spec.get("concurrencyPolicy") == "Replace":
            for one in list(self._active):
                await self._delete(await self._client.get(JOB, one["name"], one["namespace"]))
        try:
            job = await self._client.create(JOB, self._new(at))
            self._recorder.normal(self._cron_job, "SuccessfulCreate", f"Created job {objects.name(job)}")
        except errors.AlreadyExists:
            # By us, before the status could be written; by anybody else, it is theirs.
            job = await self._client.get(JOB, self._job_name(at), objects.namespace(self._cron_job))
            if not owners.is_controlled_by(job, self._cron_job):
                return
        except errors.ApiError as error:
            if not states.is_namespace_ending(error):
                self._recorder.warning(self._cron_job, "FailedCreate", f"Error creating job: {error}")
            raise
        if all(one.get("uid") != objects.uid(job) for one in self._active):
            self.status["active"] = [*self._active, reference(job)]
        self.status["lastScheduleTime"] = rfc3339(at)

    def _new(self, at: datetime) -> Object:
        template: Object = objects.copy(self._spec.get("jobTemplate") or {})
        metadata = template.get("metadata") or {}
        zone = self._spec.get("timeZone")
        local = at if zone is None else at.astimezone(cron.zone_of(zone))
        stamp = local.isoformat().replace("+00:00", "Z")
        return {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {
                "name": self._job_name(at),
                "namespace": objects.namespace(self._cron_job),
                "labels": metadata.get("labels") or {},
                "annotations": {**(metadata.get("annotations") or {}), SCHEDULED: stamp},
                "ownerReferences": [owners.reference(self._cron_job, CRON_JOB)],
            },
            "spec": template.get("spec") or {},
        }


def _is(end: Object | None, type: str) -> bool:
    return end is not None and end["type"] == type
