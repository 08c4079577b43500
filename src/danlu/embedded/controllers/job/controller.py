"""The Job controller: one `_Sync` for each look at one job."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from danlu import errors
from danlu.embedded.controllers import pods as states
from danlu.embedded.controllers.job import rules
from danlu.embedded.controllers.job.indexes import ANNOTATION, Indexes, completion_index
from danlu.embedded.controllers.pods import PodControl
from danlu.meta import conditions, objects, owners
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB, POD
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.applying import write_status

# Changes of pods are gathered for this long: four pods that start together are one write of the status, not four.
BATCH_PERIOD_S = 0.05
MOST_UNCOUNTED = 500  # uids in the status at a time
FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
TRACKED = "tracked by job"
NO_INDEXES = Indexes()
REMOVE_FINALIZER = {"metadata": {"$deleteFromPrimitiveList/finalizers": [rules.TRACKING_FINALIZER]}}


def make(manager: Manager) -> Controller:
    jobs = JobController(manager)
    controller = Controller("job", jobs.reconcile, first_delay_s=FIRST_RETRY_S, longest_delay_s=LONGEST_RETRY_S)
    controller.watches(jobs.jobs)
    jobs.control.wakes(controller, jobs.jobs, BATCH_PERIOD_S)
    return controller


def _tracked_by(pod: Object) -> list[Hashable]:
    """Index function: the job that has yet to count this pod, by namespace and name."""
    if not rules.is_tracked(pod):
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
        self.backoffs: dict[Request, rules.Backoff] = {}

    async def reconcile(self, request: Request) -> Outcome | None:
        job = self.jobs.get(request.namespace, request.name)
        if job is not None and job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            return None
        await self._let_go(request, job)
        if job is None or rules.is_finished(job):
            self.backoffs.pop(request, None)
            return None
        pods = await self.control.claim(job, states.selector_of(job), [rules.TRACKING_FINALIZER])
        return await _Sync(self, request, job, pods, self.clock()).run()

    async def _let_go(self, request: Request, job: Object | None) -> None:
        """Pods that a job will never count (it is gone, or has finished) must not wait for it."""
        stale = []
        for pod in self.control.informer.by_index(TRACKED, (request.namespace, request.name)):
            owner = owners.controller_of(pod)
            uid = owner["uid"] if owner is not None else None
            if job is None or rules.is_finished(job) or (uid is not None and uid != job["metadata"]["uid"]):
                stale.append(pod)
        await self.remove_finalizers(stale)

    async def remove_finalizers(self, pods: Iterable[Object]) -> None:
        await states.at_once(self._remove_finalizer(pod) for pod in pods)

    async def _remove_finalizer(self, pod: Object) -> None:
        if not rules.is_tracked(pod):
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


@dataclass(slots=True)
class _Sync:
    """One look at one job: what is known, what was decided, and the status on its way."""

    controller: JobController
    request: Request
    job: Object
    pods: list[Object]
    now: datetime
    status: Object = field(init=False)
    active: list[Object] = field(init=False)
    active_count: int = field(init=False)
    ready: int = field(init=False)
    terminating: int = field(init=False)
    succeeded: int = field(init=False)
    failed: int = field(init=False)
    backoff: rules.Backoff = field(init=False)
    finish: Object | None = None  # the condition that ends the job
    succeeded_before: Indexes = NO_INDEXES
    succeeded_indexes: Indexes = NO_INDEXES
    failed_indexes: Indexes | None = None  # only with backoffLimitPerIndex
    replaced: dict[int, Object] = field(default_factory=dict)  # failed pods that wait for their successor, by index
    look_again: list[float] = field(default_factory=list)  # seconds

    def __post_init__(self) -> None:
        self.status = objects.copy(self.job.get("status") or {})
        self.status.setdefault("uncountedTerminatedPods", {})
        self.active = [pod for pod in self.pods if states.is_active(pod)]
        self.active_count = len(self.active)
        self.ready = sum(map(states.is_ready, self.active))
        self.terminating = sum(map(states.is_terminating, self.pods))

    # -- the whole

    async def run(self) -> Outcome:
        self._count()
        if not self.status.get("startTime") and not rules.is_suspended(self.job):
            self.status["startTime"] = rfc3339(self.now)
        self._find_end()
        if rules.is_indexed(self.job):
            self._count_indexes()
        failure = await self._end() if self.finish is not None else await self._go_on()
        await self._track()
        if failure is not None and not (isinstance(failure, errors.ApiError) and states.is_namespace_ending(failure)):
            raise failure
        return Outcome(requeue_after=min(self.look_again, default=None))

    # -- counting

    def _uncounted(self, which: str) -> list[str]:
        uids: list[str] = self.status["uncountedTerminatedPods"].get(which) or []
        return uids

    def _uncounted_pods(self, which: str) -> list[Object]:
        """Tracked pods of a valid index that are not yet in this list of uids."""
        known = set(self._uncounted(which))
        return [
            pod
            for pod in self.pods
            if rules.is_tracked(pod) and pod["metadata"]["uid"] not in known and self._has_valid_index(pod)
        ]

    def _has_valid_index(self, pod: Object) -> bool:
        if not rules.is_indexed(self.job):
            return True
        index = completion_index(pod)
        return index is not None and index < self.job["spec"]["completions"]

    def _count(self) -> None:
        succeeded = [pod for pod in self._uncounted_pods("succeeded") if states.phase(pod) == "Succeeded"]
        failed = [pod for pod in self._uncounted_pods("failed") if rules.has_failed(pod, self.job)]
        counting = sum(rules.judge(self.job, pod).counts for pod in failed)
        self.succeeded = self.status.get("succeeded", 0) + len(succeeded) + len(self._uncounted("succeeded"))
        self.failed = self.status.get("failed", 0) + counting + len(self._uncounted("failed"))
        self.backoff = self.controller.backoffs.get(self.request, rules.Backoff()).after(succeeded, failed)

    def _count_indexes(self) -> None:
        completions = self.job["spec"]["completions"]
        tracked = [pod for pod in self.pods if rules.is_tracked(pod) and self._has_valid_index(pod)]
        self.succeeded_before = Indexes.parse(self.status.get("completedIndexes") or "", completions)
        self.succeeded_indexes = self.succeeded_before.adding(
            _index(pod) for pod in tracked if states.phase(pod) == "Succeeded"
        )
        self.succeeded = len(self.succeeded_indexes)
        if self.job["spec"].get("backoffLimitPerIndex") is not None:
            before = Indexes.parse(self.status.get("failedIndexes") or "", completions)
            self.failed_indexes = before.adding(_index(pod) for pod in tracked if rules.index_has_failed(self.job, pod))
            self._find_failed_indexes_end(self.failed_indexes)
            self._find_replaced(tracked, self.failed_indexes)
        if self.finish is None:
            message = rules.success_message(self.job, self.succeeded_indexes)
            if message:
                self.finish = rules.condition("SuccessCriteriaMet", "SuccessPolicy", message, self.now)

    def _find_failed_indexes_end(self, failed: Indexes) -> None:
        if self.finish is not None:
            return
        spec = self.job["spec"]
        if spec.get("maxFailedIndexes") is not None and len(failed) > spec["maxFailedIndexes"]:
            self._fail("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
        elif len(failed) and len(failed) + len(self.succeeded_indexes) >= spec["completions"]:
            self._fail("FailedIndexes", "Job has failed indexes")

    def _find_replaced(self, tracked: list[Object], failed: Indexes) -> None:
        """The last failed pod of each index that is to be tried again: its finalizer stays until its successor, which
        has to carry on its count of failures, is there."""
        active = {completion_index(pod) for pod in self.active}
        for pod in tracked:
            index = _index(pod)
            if not rules.has_failed(pod, self.job) or index in active:
                continue
            if index in self.succeeded_indexes or index in failed:
                continue
            last = self.replaced.get(index)
            if last is None or (
                rules.absolute_failures(last) <= rules.absolute_failures(pod)
                and rules.finished_at(pod) >= rules.finished_at(last)
            ):
                self.replaced[index] = pod

    # -- has it come to an end?

    def _fail(self, reason: str, message: str) -> None:
        self.finish = rules.condition("FailureTarget", reason, message, self.now)

    def _find_end(self) -> None:
        """The order matters: what an earlier look decided stands; failure is looked for before success."""
        held = self.status.get("conditions")
        if conditions.is_true(held, "SuccessCriteriaMet"):
            self.finish = conditions.get(held, "SuccessCriteriaMet")
            return
        target = conditions.get(held, "FailureTarget")
        if target is not None and target["status"] == "True":
            self.finish = rules.condition("Failed", target["reason"], target["message"], self.now)
            return
        message = rules.fail_job_message(self.job, self.pods)
        if message:
            self._fail("PodFailurePolicy", message)
            return
        left = rules.deadline_in(self.job, self.status, self.now)
        limit = self.job["spec"]["backoffLimit"]
        if self.failed > limit or rules.restarts_exceed_limit(self.job, self.pods):
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif left is not None and left <= 0:
            self._fail("DeadlineExceeded", "Job was active longer than specified deadline")
        elif left is not None:
            self.look_again.append(left)

    async def _end(self) -> BaseException | None:
        """Active pods go; their finalizers stay until they are counted."""
        deleted, failure = await self._delete(self.active)
        if deleted < len(self.active):
            self.finish = None  # not while pods are left that nobody has told to stop
        return failure

    # -- the number of pods

    async def _go_on(self) -> BaseException | None:
        failure: BaseException | None = None
        managed = not objects.is_deleting(self.job)
        if managed:
            failure = await self._manage()
        completions = self.job["spec"].get("completions")
        enough = self.succeeded > 0 if completions is None else self.succeeded >= completions
        if enough and self.active_count == 0:
            self.finish = rules.condition(
                "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", self.now
            )
        elif managed:
            self._note_suspension()
        return failure

    def _note_suspension(self) -> None:
        suspended = rules.is_suspended(self.job)
        word = "Suspended" if suspended else "Resumed"
        held = self.status.setdefault("conditions", [])
        was = conditions.get(held, "Suspended")
        if was is None and not suspended:
            return  # from nothing to False is no news
        wanted = "True" if suspended else "False"
        if was is not None and was["status"] == wanted:
            return
        made = rules.condition("Suspended", f"Job{word}", f"Job {word.lower()}", self.now, wanted)
        if was is None:
            held.append(made)
        else:
            was.update(made)
        self.controller.recorder.normal(self.job, word, f"Job {word.lower()}")
        # The deadline counts the time of being active without a break.
        if suspended:
            self.status.pop("startTime", None)
        else:
            self.status["startTime"] = rfc3339(self.now)

    async def _manage(self) -> BaseException | None:
        if rules.is_suspended(self.job):
            return await self._remove(rules.surplus(self.job, self.active, len(self.active)))
        wanted = self._wanted()
        removed = rules.surplus(self.job, self.active, max(0, len(self.active) - wanted))[: states.MOST_PODS_PER_SYNC]
        if removed:
            return await self._remove(removed)  # never both at one look: first the old ones go
        occupied = self.terminating if rules.replaces_only_failed(self.job) else 0
        missing = min(wanted - occupied - len(self.active), states.room_for(self.active))
        return await self._create(missing) if missing > 0 else None

    def _wanted(self) -> int:
        parallelism: int = self.job["spec"]["parallelism"]
        completions = self.job["spec"].get("completions")
        if completions is None:
            # A work queue: once a pod has succeeded the others finish, and none is added.
            return len(self.active) if self.succeeded > 0 else parallelism
        return max(0, min(int(completions) - self.succeeded, parallelism))

    async def _remove(self, pods: list[Object]) -> BaseException | None:
        """Deleted by our own choice: not a failure, hence not to be counted."""
        try:
            await self.controller.remove_finalizers(pods)
        except errors.ApiError as error:
            return error
        gone = {pod["metadata"]["uid"] for pod in pods}
        self.pods = [pod for pod in self.pods if pod["metadata"]["uid"] not in gone]
        _, failure = await self._delete(pods)
        return failure

    async def _delete(self, pods: list[Object]) -> tuple[int, BaseException | None]:
        results = await asyncio.gather(
            *(self.controller.control.delete(self.job, pod) for pod in pods), return_exceptions=True
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        deleted = len(pods) - len(failures)
        self.ready -= sum(states.is_ready(pod) for pod, result in zip(pods, results, strict=True) if result is None)
        self.active_count -= deleted
        self.terminating += deleted
        return deleted, failures[0] if failures else None

    async def _create(self, missing: int) -> BaseException | None:
        per_index = self.job["spec"].get("backoffLimitPerIndex") is not None
        if not per_index and (left := self.backoff.remaining(self.now)) > 0:
            self.look_again.append(left)
            return None
        indexes: list[int | None] = [None] * missing
        if rules.is_indexed(self.job):
            indexes = [*self._pending_indexes(missing)]
            if per_index:
                waits = {index: rules.index_backoff_left(self.replaced.get(index or 0), self.now) for index in indexes}
                indexes = [index for index in indexes if waits[index] == 0]
                self.look_again += [wait for wait in waits.values() if wait > 0]
        template = self._template()

        async def one(n: int) -> None:
            await self.controller.control.create(self.job, self._pod(template, indexes[n]))

        made, failure = await states.slow_start(len(indexes), one)
        self.active_count += made
        return failure

    def _pending_indexes(self, count: int) -> list[int]:
        occupying = list(self.active)
        if rules.replaces_only_failed(self.job):
            occupying += [pod for pod in self.pods if states.is_terminating(pod)]
        indexes = (completion_index(pod) for pod in occupying)
        taken = self.succeeded_indexes.adding(index for index in indexes if index is not None)
        if self.failed_indexes is not None:
            taken = taken | self.failed_indexes
        return taken.first_missing(count, self.job["spec"]["completions"])

    def _template(self) -> Object:
        template: Object = objects.copy(self.job["spec"]["template"])
        meta = template.setdefault("metadata", {})
        finalizers = meta.setdefault("finalizers", [])
        if rules.TRACKING_FINALIZER not in finalizers:
            finalizers.append(rules.TRACKING_FINALIZER)
        if rules.is_indexed(self.job):
            spec = template["spec"]
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
                env = container.setdefault("env", [])
                if not any(variable["name"] == "JOB_COMPLETION_INDEX" for variable in env):
                    source = {"fieldRef": {"fieldPath": f"metadata.labels['{ANNOTATION}']"}}
                    env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
        return template

    def _pod(self, template: Object, index: int | None) -> Object:
        pod = states.from_template(template, self.job, JOB)
        if index is None:
            return pod
        meta, name = pod["metadata"], self.job["metadata"]["name"]
        meta["labels"][ANNOTATION] = str(index)
        meta.setdefault("annotations", {})[ANNOTATION] = str(index)
        if self.job["spec"].get("backoffLimitPerIndex") is not None:
            meta["annotations"].update(rules.failure_counts(self.job, self.replaced.get(index)))
        suffix = f"-{index}-"
        meta["generateName"] = name[: states.LARGEST_GENERATED_PREFIX - len(suffix)] + suffix
        pod["spec"]["hostname"] = f"{name}-{index}"
        return pod

    # -- the status, and the counting of pods that have finished

    async def _track(self) -> None:
        self._set("active", self.active_count, keep_zero=False)
        self.status["ready"] = self.ready
        self.status["terminating"] = self.terminating
        tracked = {pod["metadata"]["uid"] for pod in self.pods if rules.is_tracked(pod)}
        self._settle(tracked)
        done, all_seen = self._note_finished()
        final = self._note_end()
        await self._write()
        self.controller.backoffs[self.request] = self.backoff
        if done:
            await self.controller.remove_finalizers(done)
            self._settle(tracked - {pod["metadata"]["uid"] for pod in done})
        over = all_seen and final is not None and self._may_finish()
        if final is not None and over:
            self.status.setdefault("conditions", []).append(final)
            if final["type"] == "Complete":
                self.status["completionTime"] = final["lastTransitionTime"]
        await self._write()
        if final is not None and over:
            self._announce(final)

    def _note_finished(self) -> tuple[list[Object], bool]:
        """Puts the uids of finished pods into the status. Returns the pods whose finalizer may go, and whether that
        was all of them."""
        succeeded, failed = self._uncounted("succeeded"), self._uncounted("failed")
        known_failed, known_succeeded = set(failed), set(succeeded)
        indexed = rules.is_indexed(self.job)
        done: list[Object] = []
        new_indexes = 0
        pods = sorted(self.pods, key=lambda pod: completion_index(pod) or 0) if indexed else self.pods
        for pod in pods:
            if not rules.is_tracked(pod) or not self._may_let_go(pod):
                continue
            done.append(pod)
            uid = pod["metadata"]["uid"]
            if states.phase(pod) == "Succeeded" and uid not in known_failed:
                if indexed:
                    # The index itself keeps it from being counted twice.
                    new_indexes += self._has_valid_index(pod) and _index(pod) not in self.succeeded_before
                elif uid not in known_succeeded:
                    succeeded.append(uid)
            elif self._is_to_count_as_failed(pod) and uid not in known_failed:
                failed.append(uid)
            if new_indexes + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
                self.look_again.append(0.0)
                self._keep_uncounted(succeeded, failed)
                self._note_indexes(done)
                return done, False
        self._keep_uncounted(succeeded, failed)
        self._note_indexes(done)
        return done, True

    def _may_let_go(self, pod: Object) -> bool:
        if objects.is_deleting(self.job) or self.finish is not None or states.phase(pod) == "Succeeded":
            return True
        if not rules.has_failed(pod, self.job):
            return False
        waiting = self.replaced.get(completion_index(pod) or 0)
        return waiting is None or waiting["metadata"]["uid"] != pod["metadata"]["uid"]

    def _is_to_count_as_failed(self, pod: Object) -> bool:
        """When a job has failed, every pod that has not finished counts as failed."""
        ended = self.finish is not None and self.finish["type"] != "SuccessCriteriaMet"
        if not (rules.has_failed(pod, self.job) or ended) or not self._has_valid_index(pod):
            return False
        return rules.judge(self.job, pod).counts

    def _keep_uncounted(self, succeeded: list[str], failed: list[str]) -> None:
        self.status["uncountedTerminatedPods"] = {
            **({"succeeded": succeeded} if succeeded else {}),
            **({"failed": failed} if failed else {}),
        }

    def _note_indexes(self, done: list[Object]) -> None:
        if not rules.is_indexed(self.job):
            return
        self.succeeded_indexes = self.succeeded_before.adding(
            _index(pod) for pod in done if states.phase(pod) == "Succeeded" and self._has_valid_index(pod)
        )
        self._set("succeeded", len(self.succeeded_indexes), keep_zero=False)
        text = str(self.succeeded_indexes)
        if text:
            self.status["completedIndexes"] = text
        else:
            self.status.pop("completedIndexes", None)
        if self.failed_indexes is not None:
            self.status["failedIndexes"] = str(self.failed_indexes)

    def _settle(self, tracked: set[str]) -> None:
        """Uids whose finalizer is gone leave the lists and are counted, in the same write."""
        left = {}
        for which in ("succeeded", "failed"):
            uids = self._uncounted(which)
            left[which] = [uid for uid in uids if uid in tracked]
            self._set(which, self.status.get(which, 0) + len(uids) - len(left[which]), keep_zero=False)
        self._keep_uncounted(left["succeeded"], left["failed"])

    def _note_end(self) -> Object | None:
        """Puts the interim condition into the status. Returns the one that ends the job."""
        if self.finish is None:
            return None
        held = self.status.setdefault("conditions", [])
        kind = self.finish["type"]
        if conditions.get(held, kind) is None and kind != "Failed":
            held.append(self.finish)
        last = "Complete" if kind == "SuccessCriteriaMet" else "Failed"
        return rules.condition(last, self.finish["reason"], self.finish["message"], self.now)

    def _may_finish(self) -> bool:
        return not self._uncounted("succeeded") and not self._uncounted("failed") and self.terminating == 0

    def _announce(self, final: Object) -> None:
        recorder = self.controller.recorder
        if final["type"] == "Failed":
            recorder.warning(self.job, final["reason"], final["message"])
            return
        completions = self.job["spec"].get("completions")
        if completions is not None and self.status.get("succeeded", 0) > completions:
            text = "Too many succeeded pods running after completion count reached"
            recorder.warning(self.job, "TooManySucceededPods", text)
        recorder.normal(self.job, "Completed", "Job completed")

    def _set(self, name: str, value: int, *, keep_zero: bool) -> None:
        if value or keep_zero:
            self.status[name] = value
        else:
            self.status.pop(name, None)

    async def _write(self) -> None:
        if not self.status.get("conditions"):
            self.status.pop("conditions", None)
        if self.job.get("status") is None and not self.status:
            return
        self.job = await write_status(self.controller.client, JOB, self.job, objects.copy(self.status))


def _index(pod: Object) -> int:
    index = completion_index(pod)
    assert index is not None, "only asked of pods with a valid index"
    return index
