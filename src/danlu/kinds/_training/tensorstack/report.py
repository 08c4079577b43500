"""What is told of a TensorStack job: phase, conditions, every replica's state, events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from danlu.diagnose.cause import Cause, stated
from danlu.diagnose.contract import SUBSTITUTED
from danlu.kinds._served.tensorboardspec import TENSORBOARD
from danlu.kinds._training import replicas, trouble
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.kinds._training.replicas import ReplicaState
from danlu.kinds._training.report import DEADLINE, Failure, Progress, Report
from danlu.kinds._training.tensorstack import status
from danlu.kinds._training.tensorstack.status import JobConditions
from danlu.meta import conditions
from danlu.meta.said import Said
from danlu.runtime.reconcile import COUNTS_DELAY_S, CreatedNote


class TensorStackReport(Report):
    refused_reason = "FailedCreate"

    def __init__(self, reconciliation: JobReconciliation) -> None:
        super().__init__(reconciliation)
        self.job, self.status, self.before = reconciliation.job, reconciliation.status, reconciliation.before
        self.conditions = JobConditions(reconciliation.status.get("conditions"), reconciliation.stamp)

    @property
    def is_over(self) -> bool:
        return self.conditions.is_true("Completed")

    @property
    def is_suspended(self) -> bool:
        return self.conditions.is_true("Paused")

    def begin(self) -> None:
        if not self.before:
            self.reconciliation.tell(
                "Normal", "Created", stated("DL-SERVED-CREATED", word=self.job.kind.kind, name=self.job.name)
            )

    def images_replaced(self, message: str) -> None:
        if not message:
            conditions.remove(self.conditions.items, SUBSTITUTED)
        elif self.conditions.set(SUBSTITUTED, True, SUBSTITUTED, message):
            self.reconciliation.tell("Warning", SUBSTITUTED, message)

    def resumed(self) -> None:
        text = stated("DL-JOB-UNPAUSED")
        self.conditions.set("Paused", False, "Resumed", text)
        self.reconciliation.tell("Normal", "Resumed", text)

    def suspended(self) -> None:
        self.status["phase"] = status.PAUSED
        text = stated("DL-JOB-PAUSED")
        if not self.conditions.is_true("Paused"):
            self.reconciliation.tell("Normal", "Paused", text)
        self.conditions.set("Paused", True, "Paused", text)
        self.conditions.set("Running", False, "Paused", text)
        self.conditions.set("Completed", False, "NotFinished", text)

    # -- going on

    def goes_on(self, progress: Progress) -> None:
        self.status["phase"] = self._phase()
        found = progress.trouble
        waiting = self._waiting(progress)
        failure = _lost(progress.lost)
        was = self.conditions.is_true("Initialized")
        told = [one.get("message") for one in self.conditions.items]
        is_new = found is not None and not found.is_told(self.conditions.items)
        self.conditions.go_on(self.reconciliation.states, waiting, failure)
        if self.conditions.is_true("Initialized") and not was:
            self.reconciliation.tell("Normal", "Start", status.INITIALIZED)
        if found and is_new and not self.reconciliation.observed.refused:
            self.reconciliation.tell("Warning", found.reason, found.message)
        if failure and failure not in told:
            self.reconciliation.tell("Warning", "ErrorInPod", failure)

    def _phase(self) -> str:
        if any(state.phase in (replicas.RUNNING, replicas.SUCCEEDED) for state in self.reconciliation.states):
            return status.RUNNING
        resumes = self.before.get("phase") in (status.PAUSED, status.RESUMING)
        return status.RESUMING if resumes else status.PENDING

    def _waiting(self, progress: Progress) -> tuple[str, str] | None:
        if progress.trouble is not None:
            return progress.trouble.reason, progress.trouble.message
        if progress.again:
            names = ", ".join(_error_in_pod(state) for state in progress.again)
            cause = Cause("DL-REPLICAS-AGAIN", {"pods": ", ".join(state.name for state in progress.again)})
            return "Restarting", trouble.with_causes(f"Replicas are restarted: {names}", [cause])
        states = self.reconciliation.states
        running = sum(state.phase in (replicas.RUNNING, *replicas.FINISHED) for state in states)
        if running < len(states):
            return "Pending", stated("DL-JOB-PODS-RUN", running=running, all=len(states))
        return None

    # -- single children

    @cached_property
    def _known(self) -> set[str]:
        """Replicas that have had a pod."""
        tasks = self.before.get("tasks") or ()
        return {one["name"] for task in tasks for one in task.get("replicas") or () if one.get("uid")}

    def made(self, state: ReplicaState) -> CreatedNote:
        if state.replaced:
            return CreatedNote("RestartReplica", "DL-REPLICA-RETRIED", (("restarts", state.replaced),))
        return CreatedNote("NewReplica", "DL-REPLICA-RECREATED" if state.name in self._known else "DL-REPLICA-CREATED")

    def restarted(self, state: ReplicaState) -> None:
        """With why, and the last lines of its log: they go with the pod."""
        if state.phase == replicas.SUCCEEDED:
            self.reconciliation.tell("Normal", "Ended", stated("DL-ENDED-AGAIN", pod=state.name))
            return
        head = stated("DL-REPLICA-RESTARTED", why=_error_in_pod(state))
        self.reconciliation.tell("Warning", "ErrorInPod", self._explained(head, state))

    def rejected(self, state: ReplicaState) -> None:
        found = (state.pod or {}).get("status") or {}
        why = found.get("message") or found.get("reason")
        text = f"Pod[{state.name}] was not run by its node: {why}"
        cause = Cause("DL-POD-REFUSED", {"pod": state.name, "message": why})
        self.reconciliation.tell("Warning", found.get("reason") or "Rejected", trouble.with_causes(text, [cause]))

    # -- the end

    def succeeded(self, text: str) -> None:
        self.status["phase"] = status.SUCCEEDED
        self.conditions.succeed()
        self.reconciliation.tell("Normal", status.SUCCEEDED, text)

    def failed(self, failure: Failure) -> None:
        message = self._why(failure)
        self.status["phase"] = status.FAILED
        self.conditions.fail(message)
        if failure.dead:
            self.conditions.set("ReplicaFailure", True, "ErrorInPod", _error_in_pod(failure.dead[0]))
        self.reconciliation.tell("Warning", status.FAILED, message)

    def _why(self, failure: Failure) -> Said:
        if failure.cause == DEADLINE:
            late = Cause("DL-DEADLINE", {"limit": self.job.policy.deadline_s})
            head = self._failed(stated("DL-JOB-OVERRAN", limit=self.job.policy.deadline_s))
            return trouble.with_causes(f"{head}; {late.remedy()}", [late])
        state = failure.dead[0]
        if state.exit_code is not None:
            why = stated("DL-REPLICA-ENDED", pod=state.name, exit_code=state.exit_code)
            return self._explained(self._failed(why), state)
        found = (state.pod or {}).get("status") or {}
        told = ": ".join(filter(None, (found.get("reason"), found.get("message"))))
        return self._explained(self._failed(stated("DL-REPLICA-GONE", pod=state.name, message=told)), state)

    def _failed(self, why: str) -> Said:
        return stated("DL-JOB-FAILED", kind=self.job.kind.kind, name=self.job.name, why=why)

    def _explained(self, head: Said, dead: ReplicaState) -> Said:
        return trouble.explained(head, [], [dead], self.reconciliation.container(dead.replica.role))

    # -- status

    def write(self) -> None:
        ended = self.is_over or self.job.policy.suspend
        told = status.tasks(self.job, self.reconciliation.states, self.before.get("tasks") or (), ended=ended)
        self.status["tasks"] = told
        self.status["aggregate"] = status.aggregate(told)
        self.status["backoffCount"] = sum(task["restartCount"] for task in told)
        self.status["conditions"] = self.conditions.items
        if self.job.spec.get("tensorboardSpec"):
            name = self.job.prefix
            self.status["tensorboard"] = status.tensorboard(self.reconciliation.observed.other(TENSORBOARD, name), name)
        else:
            self.status.pop("tensorboard", None)
        outcome = self.reconciliation.outcome
        outcome.status = self.status
        if not outcome.events and status.said(self.status) == status.said(self.before):
            outcome.status_delay_s = COUNTS_DELAY_S


def _lost(states: Sequence[ReplicaState]) -> str:
    text = "; ".join(_error_in_pod(state) for state in states)
    told = [{"pod": one.name, **({"exit_code": one.exit_code} if one.exit_code is not None else {})} for one in states]
    return trouble.with_causes(text, [Cause("DL-REPLICA-LOST", one) for one in told])


def _error_in_pod(state: ReplicaState) -> Said:
    if state.exit_code is None:
        return stated("DL-REPLICA-FAILED", pod=state.name)
    return stated("DL-REPLICA-EXITED", pod=state.name, exit_code=state.exit_code)
