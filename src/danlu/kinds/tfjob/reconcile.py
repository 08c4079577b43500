"""What a TFJob's replicas are told, and when the job has succeeded. The rest is `_training.kubeflow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from danlu.diagnose import stated
from danlu.kinds._training import lifecycle, rendezvous
from danlu.kinds._training.job import MOST_TENSORFLOW_REPLICAS, NEVER, Job, Replica, Role
from danlu.kinds._training.jobkind import Verdict
from danlu.kinds._training.kubeflow.dialect import KubeflowKind
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port, Ports
from danlu.kinds._training.replicas import RUNNING, SUCCEEDED, ReplicaState
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Outcome

TFJOB = Kind("kubeflow.org", "v1", "TFJob", "tfjobs", True, (), ("danlu",))
CHIEF, MASTER, WORKER, PS, EVALUATOR = "Chief", "Master", "Worker", "PS", "Evaluator"


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return lifecycle.reconcile(JOB, obj, observed, now)


def environment(job: Job, replica: Replica, ports: Ports) -> Mapping[str, str]:
    if job.total == 1:
        return {}  # TensorFlow is not distributed then, and would wait for a cluster

    def address(one: Replica) -> str:
        return f"{one.name}.{job.namespace}.svc:{ports[one.name]}"

    if job.spec.get("enableDynamicWorker"):
        return {"TF_CONFIG": rendezvous.sparse_tf_config(job, replica, address)}
    return {"TF_CONFIG": rendezvous.tf_config(job, replica, address)}


def verdict(job: Job, states: Sequence[ReplicaState]) -> Verdict:
    """The chief speaks for the job; without one the first worker does, or all do. PS and Evaluator never count."""
    told = {"kind": TFJOB.kind, "name": f"{job.namespace}/{job.name}"}
    chiefs = [state for state in states if state.replica.role.name in (CHIEF, MASTER)]
    workers = [state for state in states if state.replica.role.name == WORKER]
    speakers = chiefs or (workers if job.spec.get("successPolicy") == "AllWorkers" else workers[:1])
    done = bool(speakers) and all(state.phase == SUCCEEDED for state in speakers)
    runs = any(state.phase == RUNNING for state in chiefs or workers)
    return Verdict(
        succeeded=stated("DL-JOB-COMPLETED", **told) if done else "",
        running=stated("DL-JOB-RUNNING", **told) if runs else "",
    )


def master(job: Job) -> Replica | None:
    role = next((role for role in job.roles if role.name in (CHIEF, MASTER)), job.role(WORKER))
    return job.replica(role, 0) if role is not None else None


def failed(job: Job, role: Role, count: int) -> str:
    name = f"{job.namespace}/{job.name}"
    return stated("DL-JOB-HAS-FAILED", kind=TFJOB.kind, name=name, count=count, role=role.name)


def ignores_failures(job: Job, role: Role) -> bool:
    return bool(job.spec.get("enableDynamicWorker")) and role.name == WORKER


JOB = KubeflowKind(
    kind=TFJOB,
    most=MOST_TENSORFLOW_REPLICAS,
    field="tfReplicaSpecs",
    roles=(CHIEF, MASTER, WORKER, PS, EVALUATOR),
    containers=("tensorflow",),
    port=Port("tfjob-port", 2222, for_each_replica=True),
    restart=NEVER,
    environment=environment,
    verdict=verdict,
    master=master,
    failed=failed,
    environment_everywhere=False,
    ignores_failures=ignores_failures,
)
