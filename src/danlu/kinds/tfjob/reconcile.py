"""What a TFJob's replicas are told, and when the job has succeeded. The rest is `_training.kubeflow`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from danlu.kinds._training import rendezvous
from danlu.kinds._training.job import MOST_TENSORFLOW_REPLICAS, NEVER, Job, Replica, Role
from danlu.kinds._training.kubeflow import machine
from danlu.kinds._training.kubeflow.flavour import Flavour, Verdict
from danlu.kinds._training.observing import Observed
from danlu.kinds._training.ports import Ports
from danlu.kinds._training.replicas import RUNNING, SUCCEEDED, ReplicaState
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Outcome

TFJOB = Kind("kubeflow.org", "v1", "TFJob", "tfjobs", True, (), ("danlu",))
CHIEF, MASTER, WORKER, PS, EVALUATOR = "Chief", "Master", "Worker", "PS", "Evaluator"


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return machine.reconcile(FLAVOUR, obj, observed, now)


def environment(job: Job, replica: Replica, ports: Ports) -> rendezvous.Environment:
    if job.total == 1:
        return []  # TensorFlow is not distributed then, and would wait for a cluster

    def address(one: Replica) -> str:
        return f"{one.name}.{job.namespace}.svc:{ports[one.name]}"

    if job.spec.get("enableDynamicWorker"):
        return rendezvous.variables({"TF_CONFIG": rendezvous.sparse_tf_config(job, replica, address)})
    return rendezvous.variables({"TF_CONFIG": rendezvous.tf_config(job, replica, address)})


def judge(job: Job, states: Sequence[ReplicaState]) -> Verdict:
    """The chief speaks for the job; without one the first worker does, or all do. PS and Evaluator never count."""
    text = f"{TFJOB.kind} {job.namespace}/{job.name}"
    chiefs = [state for state in states if state.replica.role.name in (CHIEF, MASTER)]
    workers = [state for state in states if state.replica.role.name == WORKER]
    speakers = chiefs or (workers if job.spec.get("successPolicy") == "AllWorkers" else workers[:1])
    done = bool(speakers) and all(state.phase == SUCCEEDED for state in speakers)
    runs = any(state.phase == RUNNING for state in chiefs or workers)
    return Verdict(
        succeeded=f"{text} successfully completed." if done else "", running=f"{text} is running." if runs else ""
    )


def is_master(job: Job, replica: Replica) -> bool:
    chief = next((role.name for role in job.roles if role.name in (CHIEF, MASTER)), WORKER)
    return replica.index == 0 and replica.role.name == chief


def failed(job: Job, role: Role, count: int) -> str:
    return f"{TFJOB.kind} {job.namespace}/{job.name} has failed because {count} {role.name} replica(s) failed."


def ignores_failures(job: Job, role: Role) -> bool:
    return bool(job.spec.get("enableDynamicWorker")) and role.name == WORKER


FLAVOUR = Flavour(
    kind=TFJOB,
    most=MOST_TENSORFLOW_REPLICAS,
    field="tfReplicaSpecs",
    roles=(CHIEF, MASTER, WORKER, PS, EVALUATOR),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    restart=NEVER,
    environment=environment,
    judge=judge,
    is_master=is_master,
    failed=failed,
    environment_everywhere=False,
    port_for_each_replica=True,
    ignores_failures=ignores_failures,
)
