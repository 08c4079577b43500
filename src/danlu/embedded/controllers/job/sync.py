"""`JobSync`: one sync of one job; what is counted, and whether the job has come to an end. Without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers.job import jobspec
from danlu.embedded.controllers.job.indexes import Indexes, completion_index
from danlu.meta import conditions, objects
from danlu.meta.kind import Object

NO_INDEXES = Indexes()


@dataclass(slots=True)
class JobSync:
    """What is known, what was decided, and the status on its way."""

    job: Object
    pods: list[Object]
    now: datetime
    backoff: jobspec.Backoff  # of the last sync; `count` makes it this one's
    status: Object = field(init=False)
    active: list[Object] = field(init=False)
    active_count: int = field(init=False)
    ready: int = field(init=False)
    terminating: int = field(init=False)
    succeeded: int = field(init=False)
    failed: int = field(init=False)
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

    # -- counting

    def uncounted(self, which: str) -> list[str]:
        uids: list[str] = self.status["uncountedTerminatedPods"].get(which) or []
        return uids

    def _uncounted_pods(self, which: str) -> list[Object]:
        """Tracked pods of a valid index that are not yet in this list of uids."""
        known = set(self.uncounted(which))
        return [
            pod
            for pod in self.pods
            if jobspec.is_tracked(pod) and pod["metadata"]["uid"] not in known and self.has_valid_index(pod)
        ]

    def has_valid_index(self, pod: Object) -> bool:
        if not jobspec.is_indexed(self.job):
            return True
        index = completion_index(pod)
        return index is not None and index < self.job["spec"]["completions"]

    def count(self) -> None:
        succeeded = [pod for pod in self._uncounted_pods("succeeded") if states.phase(pod) == "Succeeded"]
        failed = [pod for pod in self._uncounted_pods("failed") if jobspec.has_failed(pod, self.job)]
        counting = sum(jobspec.judge(self.job, pod).counts for pod in failed)
        self.succeeded = self.status.get("succeeded", 0) + len(succeeded) + len(self.uncounted("succeeded"))
        self.failed = self.status.get("failed", 0) + counting + len(self.uncounted("failed"))
        self.backoff = self.backoff.after(succeeded, failed)

    def count_indexes(self) -> None:
        completions = self.job["spec"]["completions"]
        tracked = [pod for pod in self.pods if jobspec.is_tracked(pod) and self.has_valid_index(pod)]
        self.succeeded_before = Indexes.parse(self.status.get("completedIndexes") or "", completions)
        self.succeeded_indexes = self.succeeded_before.adding(
            index_of(pod) for pod in tracked if states.phase(pod) == "Succeeded"
        )
        self.succeeded = len(self.succeeded_indexes)
        if self.job["spec"].get("backoffLimitPerIndex") is not None:
            before = Indexes.parse(self.status.get("failedIndexes") or "", completions)
            self.failed_indexes = before.adding(
                index_of(pod) for pod in tracked if jobspec.index_has_failed(self.job, pod)
            )
            self._find_failed_indexes_end(self.failed_indexes)
            self._find_replaced(tracked, self.failed_indexes)
        if self.finish is None:
            message = jobspec.success_message(self.job, self.succeeded_indexes)
            if message:
                self.finish = jobspec.condition("SuccessCriteriaMet", "SuccessPolicy", message, self.now)

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
            index = index_of(pod)
            if not jobspec.has_failed(pod, self.job) or index in active:
                continue
            if index in self.succeeded_indexes or index in failed:
                continue
            last = self.replaced.get(index)
            if last is None or (
                jobspec.absolute_failures(last) <= jobspec.absolute_failures(pod)
                and jobspec.finished_at(pod) >= jobspec.finished_at(last)
            ):
                self.replaced[index] = pod

    # -- has it come to an end?

    def _fail(self, reason: str, message: str) -> None:
        self.finish = jobspec.condition("FailureTarget", reason, message, self.now)

    def find_end(self) -> None:
        """The order matters: what an earlier sync decided stands; failure is looked for before success."""
        held = self.status.get("conditions")
        if conditions.is_true(held, "SuccessCriteriaMet"):
            self.finish = conditions.get(held, "SuccessCriteriaMet")
            return
        target = conditions.get(held, "FailureTarget")
        if target is not None and target["status"] == "True":
            self.finish = jobspec.condition("Failed", target["reason"], target["message"], self.now)
            return
        message = jobspec.fail_job_message(self.job, self.pods)
        if message:
            self._fail("PodFailurePolicy", message)
            return
        left = jobspec.deadline_in(self.job, self.status, self.now)
        limit = self.job["spec"]["backoffLimit"]
        if self.failed > limit or jobspec.restarts_exceed_limit(self.job, self.pods):
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif left is not None and left <= 0:
            self._fail("DeadlineExceeded", "Job was active longer than specified deadline")
        elif left is not None:
            self.look_again.append(left)


def index_of(pod: Object) -> int:
    index = completion_index(pod)
    assert index is not None, "only asked of pods with a valid index"
    return index
