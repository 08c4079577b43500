"""The status of a job, and the counting of pods that have finished: each exactly once, by its finalizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers.job import jobspec
from danlu.embedded.controllers.job.indexes import completion_index
from danlu.embedded.controllers.job.sync import JobSync, index_of
from danlu.meta import conditions, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB
from danlu.runtime import Request
from danlu.runtime.outcomewriter import write_status

if TYPE_CHECKING:
    from danlu.embedded.controllers.job.controller import JobController

MOST_UNCOUNTED = 500  # uids in the status at a time


class Tracking:
    def __init__(self, sync: JobSync, controller: JobController, request: Request) -> None:
        self._sync = sync
        self._controller = controller
        self._request = request

    async def track(self) -> None:
        self._set("active", self._sync.active_count, keep_zero=False)
        self._sync.status["ready"] = self._sync.ready
        self._sync.status["terminating"] = self._sync.terminating
        tracked = {pod["metadata"]["uid"] for pod in self._sync.pods if jobspec.is_tracked(pod)}
        self._settle(tracked)
        done, all_seen = self._note_finished()
        final = self._note_end()
        await self._write()
        self._controller.backoffs[self._request] = self._sync.backoff
        if done:
            await self._controller.remove_finalizers(done)
            self._settle(tracked - {pod["metadata"]["uid"] for pod in done})
        over = all_seen and final is not None and self._may_finish()
        if final is not None and over:
            self._sync.status.setdefault("conditions", []).append(final)
            if final["type"] == "Complete":
                self._sync.status["completionTime"] = final["lastTransitionTime"]
        await self._write()
        if final is not None and over:
            self._announce(final)

    def _note_finished(self) -> tuple[list[Object], bool]:
        """Puts the uids of finished pods into the status. Returns the pods whose finalizer may go, and whether that
        was all of them."""
        succeeded, failed = self._sync.uncounted("succeeded"), self._sync.uncounted("failed")
        known_failed, known_succeeded = set(failed), set(succeeded)
        indexed = jobspec.is_indexed(self._sync.job)
        done: list[Object] = []
        new_indexes = 0
        pods = sorted(self._sync.pods, key=lambda pod: completion_index(pod) or 0) if indexed else self._sync.pods
        for pod in pods:
            if not jobspec.is_tracked(pod) or not self._may_let_go(pod):
                continue
            done.append(pod)
            uid = pod["metadata"]["uid"]
            if states.phase(pod) == "Succeeded" and uid not in known_failed:
                if indexed:
                    # The index itself keeps it from being counted twice.
                    new_indexes += self._sync.has_valid_index(pod) and index_of(pod) not in self._sync.succeeded_before
                elif uid not in known_succeeded:
                    succeeded.append(uid)
            elif self._is_to_count_as_failed(pod) and uid not in known_failed:
                failed.append(uid)
            if new_indexes + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
                self._sync.look_again.append(0.0)
                self._keep_uncounted(succeeded, failed)
                self._note_indexes(done)
                return done, False
        self._keep_uncounted(succeeded, failed)
        self._note_indexes(done)
        return done, True

    def _may_let_go(self, pod: Object) -> bool:
        if objects.is_deleting(self._sync.job) or self._sync.finish is not None or states.phase(pod) == "Succeeded":
            return True
        if not jobspec.has_failed(pod, self._sync.job):
            return False
        waiting = self._sync.replaced.get(completion_index(pod) or 0)
        return waiting is None or waiting["metadata"]["uid"] != pod["metadata"]["uid"]

    def _is_to_count_as_failed(self, pod: Object) -> bool:
        """When a job has failed, every pod that has not finished counts as failed."""
        ended = self._sync.finish is not None and self._sync.finish["type"] != "SuccessCriteriaMet"
        if not (jobspec.has_failed(pod, self._sync.job) or ended) or not self._sync.has_valid_index(pod):
            return False
        return jobspec.judge(self._sync.job, pod).counts

    def _keep_uncounted(self, succeeded: list[str], failed: list[str]) -> None:
        self._sync.status["uncountedTerminatedPods"] = {
            **({"succeeded": succeeded} if succeeded else {}),
            **({"failed": failed} if failed else {}),
        }

    def _note_indexes(self, done: list[Object]) -> None:
        if not jobspec.is_indexed(self._sync.job):
            return
        self._sync.succeeded_indexes = self._sync.succeeded_before.adding(
            index_of(pod) for pod in done if states.phase(pod) == "Succeeded" and self._sync.has_valid_index(pod)
        )
        self._set("succeeded", len(self._sync.succeeded_indexes), keep_zero=False)
        text = str(self._sync.succeeded_indexes)
        if text:
            self._sync.status["completedIndexes"] = text
        else:
            self._sync.status.pop("completedIndexes", None)
        if self._sync.failed_indexes is not None:
            self._sync.status["failedIndexes"] = str(self._sync.failed_indexes)

    def _settle(self, tracked: set[str]) -> None:
        """Uids whose finalizer is gone leave the lists and are counted, in the same write."""
        left = {}
        for which in ("succeeded", "failed"):
            uids = self._sync.uncounted(which)
            left[which] = [uid for uid in uids if uid in tracked]
            self._set(which, self._sync.status.get(which, 0) + len(uids) - len(left[which]), keep_zero=False)
        self._keep_uncounted(left["succeeded"], left["failed"])

    def _note_end(self) -> Object | None:
        """Puts the interim condition into the status. Returns the one that ends the job."""
        if self._sync.finish is None:
            return None
        held = self._sync.status.setdefault("conditions", [])
        kind = self._sync.finish["type"]
        if conditions.get(held, kind) is None and kind != "Failed":
            held.append(self._sync.finish)
        last = "Complete" if kind == "SuccessCriteriaMet" else "Failed"
        return jobspec.condition(last, self._sync.finish["reason"], self._sync.finish["message"], self._sync.now)

    def _may_finish(self) -> bool:
        return (
            not self._sync.uncounted("succeeded") and not self._sync.uncounted("failed") and self._sync.terminating == 0
        )

    def _announce(self, final: Object) -> None:
        recorder = self._controller.recorder
        if final["type"] == "Failed":
            recorder.warning(self._sync.job, final["reason"], final["message"])
            return
        completions = self._sync.job["spec"].get("completions")
        if completions is not None and self._sync.status.get("succeeded", 0) > completions:
            text = "Too many succeeded pods running after completion count reached"
            recorder.warning(self._sync.job, "TooManySucceededPods", text)
        recorder.normal(self._sync.job, "Completed", "Job completed")

    def _set(self, name: str, value: int, *, keep_zero: bool) -> None:
        if value or keep_zero:
            self._sync.status[name] = value
        else:
            self._sync.status.pop(name, None)

    async def _write(self) -> None:
        if not self._sync.status.get("conditions"):
            self._sync.status.pop("conditions", None)
        if self._sync.job.get("status") is None and not self._sync.status:
            return
        self._sync.job = await write_status(
            self._controller.client, JOB, self._sync.job, objects.copy(self._sync.status)
        )
