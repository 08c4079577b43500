"""How many pods a job has: which are missing, which are too many, and what one looks like."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from danlu import errors
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers.job import jobspec
from danlu.embedded.controllers.job.indexes import ANNOTATION, completion_index
from danlu.embedded.controllers.job.sync import JobSync
from danlu.meta import conditions, objects
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB

if TYPE_CHECKING:
    from danlu.embedded.controllers.job.controller import JobController


class Scaling:
    def __init__(self, sync: JobSync, controller: JobController) -> None:
        self._sync = sync
        self._controller = controller

    async def end(self) -> BaseException | None:
        """Active pods go; their finalizers stay until they are counted."""
        deleted, failure = await self._delete(self._sync.active)
        if deleted < len(self._sync.active):
            self._sync.finish = None  # not while pods are left that nobody has told to stop
        return failure

    async def go_on(self) -> BaseException | None:
        failure: BaseException | None = None
        managed = not objects.is_deleting(self._sync.job)
        if managed:
            failure = await self._manage()
        completions = self._sync.job["spec"].get("completions")
        enough = self._sync.succeeded > 0 if completions is None else self._sync.succeeded >= completions
        if enough and self._sync.active_count == 0:
            self._sync.finish = jobspec.condition(
                "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", self._sync.now
            )
        elif managed:
            self._note_suspension()
        return failure

    def _note_suspension(self) -> None:
        suspended = jobspec.is_suspended(self._sync.job)
        word = "Suspended" if suspended else "Resumed"
        held = self._sync.status.setdefault("conditions", [])
        was = conditions.get(held, "Suspended")
        if was is None and not suspended:
            return  # from nothing to False is no news
        wanted = "True" if suspended else "False"
        if was is not None and was["status"] == wanted:
            return
        made = jobspec.condition("Suspended", f"Job{word}", f"Job {word.lower()}", self._sync.now, wanted)
        if was is None:
            held.append(made)
        else:
            was.update(made)
        self._controller.recorder.normal(self._sync.job, word, f"Job {word.lower()}")
        # The deadline counts the time of being active without a break.
        if suspended:
            self._sync.status.pop("startTime", None)
        else:
            self._sync.status["startTime"] = rfc3339(self._sync.now)

    async def _manage(self) -> BaseException | None:
        if jobspec.is_suspended(self._sync.job):
            return await self._remove(jobspec.surplus(self._sync.job, self._sync.active, len(self._sync.active)))
        wanted = self._wanted()
        removed = jobspec.surplus(self._sync.job, self._sync.active, max(0, len(self._sync.active) - wanted))[
            : states.MOST_PODS_PER_SYNC
        ]
        if removed:
            return await self._remove(removed)  # never both in one sync: first the old ones go
        occupied = self._sync.terminating if jobspec.replaces_only_failed(self._sync.job) else 0
        missing = min(wanted - occupied - len(self._sync.active), states.room_for(self._sync.active))
        return await self._create(missing) if missing > 0 else None

    def _wanted(self) -> int:
        parallelism: int = self._sync.job["spec"]["parallelism"]
        completions = self._sync.job["spec"].get("completions")
        if completions is None:
            # A work queue: once a pod has succeeded the others finish, and none is added.
            return len(self._sync.active) if self._sync.succeeded > 0 else parallelism
        return max(0, min(int(completions) - self._sync.succeeded, parallelism))

    async def _remove(self, pods: list[Object]) -> BaseException | None:
        """Deleted by our own choice: not a failure, hence not to be counted."""
        try:
            await self._controller.remove_finalizers(pods)
        except errors.ApiError as error:
            return error
        gone = {pod["metadata"]["uid"] for pod in pods}
        self._sync.pods = [pod for pod in self._sync.pods if pod["metadata"]["uid"] not in gone]
        _, failure = await self._delete(pods)
        return failure

    async def _delete(self, pods: list[Object]) -> tuple[int, BaseException | None]:
        results = await asyncio.gather(
            *(self._controller.control.delete(self._sync.job, pod) for pod in pods), return_exceptions=True
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        deleted = len(pods) - len(failures)
        self._sync.ready -= sum(
            states.is_ready(pod) for pod, result in zip(pods, results, strict=True) if result is None
        )
        self._sync.active_count -= deleted
        self._sync.terminating += deleted
        return deleted, failures[0] if failures else None

    async def _create(self, missing: int) -> BaseException | None:
        per_index = self._sync.job["spec"].get("backoffLimitPerIndex") is not None
        if not per_index and (left := self._sync.backoff.remaining(self._sync.now)) > 0:
            self._sync.look_again.append(left)
            return None
        indexes: list[int | None] = [None] * missing
        if jobspec.is_indexed(self._sync.job):
            indexes = [*self._pending_indexes(missing)]
            if per_index:
                waits = {
                    index: jobspec.index_backoff_left(self._sync.replaced.get(index or 0), self._sync.now)
                    for index in indexes
                }
                indexes = [index for index in indexes if waits[index] == 0]
                self._sync.look_again += [wait for wait in waits.values() if wait > 0]
        template = self._template()

        async def one(n: int) -> None:
            await self._controller.control.create(self._sync.job, self._pod(template, indexes[n]))

        made, failure = await states.slow_start(len(indexes), one)
        self._sync.active_count += made
        return failure

    def _pending_indexes(self, count: int) -> list[int]:
        occupying = list(self._sync.active)
        if jobspec.replaces_only_failed(self._sync.job):
            occupying += [pod for pod in self._sync.pods if states.is_terminating(pod)]
        indexes = (completion_index(pod) for pod in occupying)
        taken = self._sync.succeeded_indexes.adding(index for index in indexes if index is not None)
        if self._sync.failed_indexes is not None:
            taken = taken | self._sync.failed_indexes
        return taken.first_missing(count, self._sync.job["spec"]["completions"])

    def _template(self) -> Object:
        template: Object = objects.copy(self._sync.job["spec"]["template"])
        meta = template.setdefault("metadata", {})
        finalizers = meta.setdefault("finalizers", [])
        if jobspec.TRACKING_FINALIZER not in finalizers:
            finalizers.append(jobspec.TRACKING_FINALIZER)
        if jobspec.is_indexed(self._sync.job):
            spec = template["spec"]
            for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
                env = container.setdefault("env", [])
                if not any(variable["name"] == "JOB_COMPLETION_INDEX" for variable in env):
                    source = {"fieldRef": {"fieldPath": f"metadata.labels['{ANNOTATION}']"}}
                    env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
        return template

    def _pod(self, template: Object, index: int | None) -> Object:
        pod = states.from_template(template, self._sync.job, JOB)
        if index is None:
            return pod
        meta, name = pod["metadata"], self._sync.job["metadata"]["name"]
        meta["labels"][ANNOTATION] = str(index)
        meta.setdefault("annotations", {})[ANNOTATION] = str(index)
        if self._sync.job["spec"].get("backoffLimitPerIndex") is not None:
            meta["annotations"].update(jobspec.failure_counts(self._sync.job, self._sync.replaced.get(index)))
        suffix = f"-{index}-"
        meta["generateName"] = name[: states.LARGEST_GENERATED_PREFIX - len(suffix)] + suffix
        pod["spec"]["hostname"] = f"{name}-{index}"
        return pod
