"""The dialect of batch.tensorstack.dev: how its specs are read and its pods are written; how it tells: `report`.

The master speaks for the job: it succeeds when the master does, and fails when the master has failed and may not be
restarted. Any other replica that fails is restarted by its policy, as long as the job has restarts left, and told of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from danlu.kinds._served.tensorboardspec import TENSORBOARD
from danlu.kinds._training.job import NEVER, Job, Replica, Role, RunPolicy, Scheduling
from danlu.kinds._training.jobkind import Companion, JobKind, Verdict
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Ports
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.kinds._training.replicas import SUCCEEDED, ReplicaState
from danlu.kinds._training.restarts import RestartRules
from danlu.kinds._training.tensorstack import status, trainingpods
from danlu.kinds._training.tensorstack.report import TensorStackReport
from danlu.kinds._training.tensorstack.trainingpods import is_enabled
from danlu.kinds.suspension import Suspension
from danlu.meta import owners
from danlu.meta.kind import Kind, Object

RESTARTABLE = (130, 137, 138, 143)  # Ctrl+C, SIGKILL, "please restart me", SIGTERM
BACKOFF_LIMIT = 3
CLEAN = {"none": "None", "unfinished": "Running", "all": "All"}


def restartable(code: int | None) -> bool:
    """By the policy ExitCode. A pod that is lost without a code was no fault of the program."""
    return code is None or code in RESTARTABLE


def as_written(_job: Job, _replica: Replica, _ports: Ports, _container: Object) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class TensorStackKind(JobKind):
    # The last word on the training container's command, where the kind wraps it.
    command: Callable[[Job, Replica, Ports, Object], None] = as_written

    rules: ClassVar[RestartRules] = RestartRules(
        retryable=restartable, in_place=False, limit_is_budget=True, after_success=True, replaces_rejected=True
    )
    suspension: ClassVar[Suspension] = Suspension("spec.runMode.pause.enabled")
    services_outlive_pods: ClassVar[bool] = True  # they remember how often replicas were restarted
    common_kinds: ClassVar[tuple[Kind, ...]] = (TENSORBOARD,)
    gang_on_request: ClassVar[bool] = True

    def job(self, obj: Object) -> Job:
        spec = obj["spec"]
        policy = spec.get("runPolicy") or {}
        elastic = elastic_of(spec)
        return Job(
            self.kind,
            obj,
            _roles(spec, elastic),
            RunPolicy(
                clean=CLEAN[str(policy.get("cleanUpPolicy") or "None").lower()],
                deadline_s=policy.get("activeDeadlineSeconds"),
                backoff_limit=policy.get("backoffLimit", BACKOFF_LIMIT),
                suspend=is_enabled((spec.get("runMode") or {}).get("pause")),
                scheduling=_scheduling(spec, elastic),
            ),
            prefix=prefix(obj),
        ).bounded(self.most)

    def judge(self, job: Job, states: Sequence[ReplicaState]) -> Verdict:
        master = self.master(job)
        done = any(state.phase == SUCCEEDED for state in states if master is not None and state.name == master.name)
        return Verdict(succeeded=status.DONE if done else "")

    def fatal(self, reconciliation: JobReconciliation, lost: Sequence[ReplicaState]) -> Sequence[ReplicaState]:
        return [state for state in lost if reconciliation.is_master(state.replica)]

    def labels(self, job: Job, replica: Replica, *, is_master: bool = False) -> Mapping[str, str]:
        named = trainingpods.labels(job, replica)
        return {**named, "job-role": "master"} if is_master else named

    def selector(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return trainingpods.labels(job, replica)

    def add_environment(self, spec: Object, training: Object, words: Mapping[str, str]) -> None:
        trainingpods.add_environment(spec, words)

    def finish_pod(self, reconciliation: JobReconciliation, replica: Replica, planned: Ports, pod: Object) -> None:
        if not trainingpods.prepare(reconciliation, replica, pod):
            self.command(
                reconciliation.job, replica, planned, trainingpods.training_container(reconciliation, replica, pod)
            )

    def report(self, reconciliation: JobReconciliation) -> TensorStackReport:
        return TensorStackReport(reconciliation)

    def all_companions(self, job: Job, observed: Observed) -> Sequence[Companion]:
        return [*self.companions(job, observed), *_tensorboard(job)]


def _scheduling(spec: Object, elastic: Object | None) -> Scheduling | None:
    scheduler = (spec.get("scheduler") or {}).get("t9kScheduler")
    if not scheduler:
        return None
    return Scheduling(
        min_available=int(elastic["minReplicas"]) if elastic and "minReplicas" in elastic else None,
        queue=scheduler["queue"],
        priority=scheduler.get("priority") or 0,
    )


def _tensorboard(job: Job) -> list[Companion]:
    """Only what the job says is kept so: one who suspends it in the console is not overruled. The pods come first."""
    wanted = job.spec.get("tensorboardSpec")
    if not wanted:
        return []
    child: Object = {
        "apiVersion": TENSORBOARD.api_version,
        "kind": TENSORBOARD.kind,
        "metadata": {
            "name": job.prefix,
            "namespace": job.namespace,
            "ownerReferences": [owners.reference(job.obj, job.kind)],
        },
        "spec": wanted,
    }
    return [Companion(child, before_pods=False, outlives=True)]


def prefix(obj: Object) -> str:
    """The job's name and five hex digits: before the names of its pods, and the name of its TensorBoard."""
    digits = hashlib.sha256(str(obj["metadata"]["uid"]).encode()).hexdigest()[:5]
    return f"{obj['metadata']['name']}-{digits}"


def elastic_of(spec: Object) -> Object | None:
    elastic = spec.get("elastic")
    return elastic if is_enabled(elastic) else None


def _roles(spec: Object, elastic: Object | None) -> tuple[Role, ...]:
    written: Sequence[Object] = spec["replicaSpecs"]
    counts = [int(one.get("replicas") or 1) for one in written]
    if elastic is not None and elastic.get("expectedReplicas") is not None:
        counts = split(int(elastic["expectedReplicas"]), [one.get("scalingWeight", 1) for one in written])
    return tuple(
        Role(one["type"], count, one.get("template") or {}, one.get("restartPolicy") or NEVER)
        for one, count in zip(written, counts, strict=True)
    )


def split(total: int, weights: Sequence[int]) -> list[int]:
    """In proportion to the weights; what is left over goes to the largest remainders, the first of equals first."""
    weight = sum(weights) or len(weights)
    shares = [total * (one if sum(weights) else 1) / weight for one in weights]
    counts = [int(share) for share in shares]
    order = sorted(range(len(shares)), key=lambda n: (counts[n] - shares[n], n))
    for number in order[: total - sum(counts)]:
        counts[number] += 1
    return counts
