"""What is told of a Kubeflow job, as its users know it: conditions, counts, events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from danlu.diagnose.cause import Cause, stated
from danlu.diagnose.contract import SUBSTITUTED
from danlu.kinds._training import replicas, trouble
from danlu.kinds._training.job import EXIT_CODE, Job, Replica, Role
from danlu.kinds._training.kubeflow import labels
from danlu.kinds._training.kubeflow.conditions import (
    CREATED,
    FAILED,
    RESTARTING,
    RUNNING,
    SUCCEEDED,
    SUSPENDED,
    JobConditions,
)
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.kinds._training.replicas import ReplicaState
from danlu.kinds._training.report import BACKOFF_LIMIT, DEADLINE, Failure, Progress, Report
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.runtime.reconcile import COUNTS_DELAY_S, START_DELAY_S, CreatedNote

DELETED = {"Pod": "DL-POD-DELETED", "Service": "DL-SERVICE-DELETED"}


class KubeflowReport(Report):
    def __init__(
        self, reconciliation: JobReconciliation, failed: Callable[[Job, Role, int], str], *, scales: bool
    ) -> None:
        """`failed` is the text of a kind's Failed condition; `scales`: counts have a selector."""
        super().__init__(reconciliation)
        self._failed_text = failed
        self._scales = scales
        self.job, self.kind = reconciliation.job, reconciliation.job.kind.kind
        self.conditions = JobConditions(reconciliation.status.get("conditions"), self.kind, reconciliation.stamp)
        self._changed = not self.conditions.finished

    @property
    def is_over(self) -> bool:
        return self.conditions.finished

    @property
    def is_suspended(self) -> bool:
        return self.conditions.is_true(SUSPENDED)

    def begin(self) -> None:
        if not self.is_over and not self.conditions.has(CREATED):
            self.conditions.add(CREATED, self._state("DL-JOB-CREATED"))

    def images_replaced(self, message: str) -> None:
        if self.conditions.note_images(message):
            self.reconciliation.tell("Warning", SUBSTITUTED, message)

    def resumed(self) -> None:
        text = self._state("DL-JOB-RESUMED")
        self.conditions.add(SUSPENDED, text, status="False", reason="Resumed")
        self._event("Normal", "Resumed", text)

    def suspended(self) -> None:
        text = self._state("DL-JOB-SUSPENDED")
        self.conditions.block(None)
        if self.conditions.is_true(RUNNING):
            self.conditions.add(RUNNING, text, status="False", reason=SUSPENDED)
        if self.conditions.add(SUSPENDED, text):
            self._event("Normal", SUSPENDED, text)
        self._count([])

    def goes_on(self, progress: Progress) -> None:
        self._count(self.reconciliation.states)
        if progress.running and not progress.again:
            self.conditions.add(RUNNING, progress.running)
        found = progress.trouble
        if self.conditions.block(found) and found and not self.reconciliation.observed.refused:
            self.reconciliation.tell("Warning", found.reason, found.message)

    def restarting(self, again: Sequence[ReplicaState]) -> None:
        for role in self.job.roles if again else ():
            count = sum(1 for state in again if state.replica.role.name == role.name)
            if count:
                text = self._state("DL-RESTARTING", count=count, role=role.name)
                if self.conditions.add(RESTARTING, text):
                    self._event("Warning", RESTARTING, text)

    # -- the end

    def succeeded(self, text: str) -> None:
        self.conditions.block(None)
        self.conditions.add(SUCCEEDED, text)
        self._event("Normal", SUCCEEDED, text)
        self._count(self.reconciliation.states, succeeded=True)

    def failed(self, failure: Failure) -> None:
        head, event = self._why(failure)
        causes = [Cause("DL-DEADLINE", {"limit": self.job.policy.deadline_s})] if failure.cause == DEADLINE else []
        message = trouble.explained(head, causes, failure.dead, self.reconciliation.container(self.job.roles[0]))
        self.conditions.block(None)
        self.conditions.add(FAILED, message)
        self._event(event, FAILED, message)
        self._count(self.reconciliation.states, stopped=failure.stops or self.job.policy.clean != "None")

    def _why(self, failure: Failure) -> tuple[str, str]:
        """What became of it, and the type of the event."""
        name = self.job.name
        if failure.cause == BACKOFF_LIMIT:
            return stated("DL-JOB-BACKOFF", name=name), "Normal"
        if failure.cause == DEADLINE:
            return stated("DL-JOB-LATE", name=name), "Normal"
        role = failure.dead[0].replica.role
        if role.restart == EXIT_CODE:
            return stated("DL-JOB-IS-FAILING", name=name, role=role.name), "Warning"
        count = sum(1 for state in failure.dead if state.replica.role.name == role.name)
        return self._failed_text(self.job, role, count), "Normal"

    def left_running(self, pods: Sequence[Object]) -> None:
        names = ", ".join(sorted(pod["metadata"]["name"] for pod in pods))
        self.reconciliation.tell("Warning", "PodsLeftRunning", stated("DL-PODS-LEFT", pods=names))

    def after_the_end(self) -> None:
        """Replicas that a failed job has left running are counted on; what is cleaned up stays as it was counted."""
        if self.conditions.is_true(FAILED) and all(state.pod is not None for state in self.reconciliation.states):
            self._count(self.reconciliation.states)
            self._changed = True

    def expired(self) -> None:
        self.reconciliation.tell("Normal", "SuccessfulDeletePod", stated("DL-JOB-DELETED", name=self.job.name))

    # -- single children

    def making(self, replica: Replica) -> None:
        spec = replica.role.template.get("spec") or {}
        if spec.get("restartPolicy"):
            self.reconciliation.tell("Warning", "SetPodTemplateRestartPolicy", stated("DL-TEMPLATE-RESTART-POLICY"))
        if self.reconciliation.engine and spec.get("schedulerName"):
            self.reconciliation.tell("Warning", "SetPodTemplateSchedulerName", stated("DL-TEMPLATE-SCHEDULER"))

    def made(self, state: ReplicaState) -> CreatedNote:
        return CreatedNote("SuccessfulCreatePod", "DL-POD-CREATED")

    def removed(self, child: Object) -> None:
        what, name = child["kind"], child["metadata"]["name"]
        if what in DELETED:
            self.reconciliation.tell("Normal", f"SuccessfulDelete{what}", stated(DELETED[what], name=name))
        elif what == "PodGroup":
            self.reconciliation.tell("Normal", "JobTerminated", stated("DL-JOB-TERMINATED"))
            self.reconciliation.tell("Normal", "SuccessfulDeletePodGroup", stated("DL-PODGROUP-DELETED", name=name))

    # -- status

    def _count(self, states: Sequence[ReplicaState], *, succeeded: bool = False, stopped: bool = False) -> None:
        before = self.reconciliation.status.get("replicaStatuses") or {}
        counted: Object = {}
        for role in self.job.roles:
            mine = [state for state in states if state.replica.role.name == role.name]
            found = {
                "active": sum(1 for state in mine if state.phase == replicas.RUNNING),
                "succeeded": sum(1 for state in mine if state.phase == replicas.SUCCEEDED),
                "failed": sum(1 for state in mine if state.phase == replicas.FAILED or (stopped and state.down)),
            }
            if succeeded:
                found["succeeded"] += found["active"]
            if succeeded or stopped:
                found["active"] = 0
            self._tell_exits(mine, before.get(role.name) or {}, found)
            counted[role.name] = {name: number for name, number in found.items() if number}
            if self._scales:
                counted[role.name]["selector"] = labels.role_selector(self.job, role)
        self.reconciliation.status["replicaStatuses"] = counted

    def _tell_exits(self, states: Sequence[ReplicaState], before: Object, counted: Object) -> None:
        """Of what failed, once for each change of the counts; that a replica has ended well is told by the counts."""
        if before.get("failed", 0) == counted["failed"]:
            return
        for state in states:
            if state.exit_code:
                told = {"namespace": self.job.namespace, "pod": state.name, "exit_code": state.exit_code}
                self.reconciliation.tell("Normal", "ExitedWithCode", stated("DL-POD-EXITED", **told))

    def write(self) -> None:
        if not self._changed:
            return
        status, before, outcome = self.reconciliation.status, self.reconciliation.before, self.reconciliation.outcome
        status["conditions"] = self.conditions.items
        if {**before, "lastReconcileTime": ""} == {**status, "lastReconcileTime": ""}:
            status = before
        else:
            status["lastReconcileTime"] = self.reconciliation.stamp
        outcome.status = status
        told = [one for one in self.conditions.items if one["type"] != CREATED]
        same = told == [one for one in before.get("conditions") or () if one["type"] != CREATED]
        starts = self.conditions.is_true(RUNNING) and not conditions.is_true(before.get("conditions"), RUNNING)
        waits = any(state.phase == replicas.PENDING for state in self.reconciliation.states)
        if not outcome.events and (same or (starts and waits)):
            outcome.status_delay_s = COUNTS_DELAY_S if same else START_DELAY_S

    def _state(self, code: str, **more: Any) -> str:
        return stated(code, kind=self.kind, name=self.job.name, **more)

    def _event(self, type: str, reason: str, message: str) -> None:
        self.reconciliation.tell(type, f"{self.kind}{reason}", message)
