"""The dialect of kubeflow.org/v1: how its specs are read and its pods are written; how it tells: `report`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from danlu.kinds._training import children, rendezvous
from danlu.kinds._training.job import Job, Replica, Role, RunPolicy, Scheduling
from danlu.kinds._training.jobkind import JobKind, Verdict
from danlu.kinds._training.kubeflow import labels
from danlu.kinds._training.kubeflow.report import KubeflowReport
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.kinds._training.replicas import ReplicaState
from danlu.kinds._training.restarts import RestartRules
from danlu.kinds.suspension import Suspension
from danlu.meta.kind import Object

MANAGED_HERE = (None, "", "kubeflow.org/training-operator")


def by_signal(code: int | None) -> bool:
    """Ended by a signal (128 and above), or nobody knows how."""
    return code is None or code >= 128


@dataclass(frozen=True, kw_only=True)
class KubeflowKind(JobKind):
    field: str  # of the spec, with the replicas: "pytorchReplicaSpecs"
    roles: tuple[str, ...]  # in the order in which ranks are given
    restart: str  # the default restart policy
    verdict: Callable[[Job, Sequence[ReplicaState]], Verdict]
    failed: Callable[[Job, Role, int], str]  # the text of the Failed condition
    environment_everywhere: bool = True  # in every container of the pod, or only in the training container
    scales: bool = False  # has the scale subresource, which wants a selector in the status

    rules: ClassVar[RestartRules] = RestartRules(
        retryable=by_signal, in_place=True, limit_is_budget=False, after_success=False, replaces_rejected=False
    )
    suspension: ClassVar[Suspension] = Suspension("spec.runPolicy.suspend")

    def is_ours(self, obj: Object) -> bool:
        return (obj["spec"].get("runPolicy") or {}).get("managedBy") in MANAGED_HERE

    def job(self, obj: Object) -> Job:
        """Role names in any letter case, in the kind's own order; defaults as the operator's, not stored."""
        spec = obj["spec"]
        written = {name.lower(): role for name, role in (spec.get(self.field) or {}).items()}
        roles = tuple(self._role(name, written[name.lower()]) for name in self.roles if name.lower() in written)
        return Job(self.kind, obj, roles, run_policy(spec.get("runPolicy") or {})).bounded(self.most)

    def _role(self, name: str, written: Mapping[str, Object]) -> Role:
        replicas = written.get("replicas")
        return Role(
            name=name,
            replicas=1 if replicas is None else int(str(replicas)),
            template=written.get("template") or {},
            restart=str(written.get("restartPolicy") or self.restart),
        )

    def judge(self, job: Job, states: Sequence[ReplicaState]) -> Verdict:
        return self.verdict(job, states)

    def fatal(self, reconciliation: JobReconciliation, lost: Sequence[ReplicaState]) -> Sequence[ReplicaState]:
        return [state for state in lost if not self.ignores_failures(reconciliation.job, state.replica.role)]

    def labels(self, job: Job, replica: Replica, *, is_master: bool = False) -> Mapping[str, str]:
        return labels.of_replica(job, replica, is_master=is_master)

    def selector(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return labels.selector(job, replica)

    def add_environment(self, spec: Object, training: Object, words: Mapping[str, str]) -> None:
        targets = spec["containers"] if self.environment_everywhere else [training]
        children.add_environment(targets, rendezvous.variables(words))

    def report(self, reconciliation: JobReconciliation) -> KubeflowReport:
        return KubeflowReport(reconciliation, self.failed, scales=self.scales)


def run_policy(written: Object) -> RunPolicy:
    scheduling = written.get("schedulingPolicy")
    return RunPolicy(
        clean=written.get("cleanPodPolicy") or "None",
        ttl_s=written.get("ttlSecondsAfterFinished"),
        deadline_s=written.get("activeDeadlineSeconds"),
        backoff_limit=written.get("backoffLimit"),
        suspend=bool(written.get("suspend")),
        scheduling=None
        if scheduling is None
        else Scheduling(
            min_available=scheduling.get("minAvailable"),
            queue=scheduling.get("queue") or "",
            min_resources=scheduling.get("minResources"),
            priority_class=scheduling.get("priorityClass") or "",
            timeout_s=scheduling.get("scheduleTimeoutSeconds"),
        ),
    )
