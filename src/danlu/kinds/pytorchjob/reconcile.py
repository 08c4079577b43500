"""What a PyTorchJob's replicas are told, and when the job has succeeded. The rest is `_training.kubeflow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from danlu.diagnose import say, stated
from danlu.kinds._training import lifecycle, rendezvous
from danlu.kinds._training.job import ON_FAILURE, Job, Replica, Role
from danlu.kinds._training.jobkind import Companion, Verdict
from danlu.kinds._training.kubeflow.dialect import KubeflowKind
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port, Ports
from danlu.kinds._training.replicas import RUNNING, SUCCEEDED, ReplicaState
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.pytorchjob.autoscaling import AUTOSCALER, autoscaler, elastic_range
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import EventNote, Outcome

PYTORCHJOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", True, (), ("danlu",))
MASTER, WORKER = "Master", "Worker"


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return lifecycle.reconcile(JOB, obj, observed, now)


def environment(job: Job, replica: Replica, ports: Ports) -> Mapping[str, str]:
    found = {"PYTHONUNBUFFERED": "1"}
    master = job.role(MASTER)
    if master is not None:
        first = job.replica(master, 0)
        # One process for each pod, as far as we can know: RANK counts pods, so WORLD_SIZE must too. torchrun, which
        # starts more of them, reads neither and sets both for its processes.
        found |= rendezvous.torch(
            address=first.name, port=ports[first.name], world_size=job.total, rank=job.rank(replica)
        )
    elastic = job.spec.get("elasticPolicy")
    if not (elastic and elastic.get("nProcPerNode")):
        found["PET_NPROC_PER_NODE"] = job.spec.get("nprocPerNode") or "auto"
    if elastic is None:
        found["PET_NNODES"] = str(job.total)
    else:
        found |= _elastic(job, elastic, ports)
    return found


def processes(job: Job, container: Object) -> int:
    elastic = job.spec.get("elasticPolicy")
    asked = str(job.spec.get("nprocPerNode") or (elastic or {}).get("nProcPerNode") or "")
    if asked.isdigit():
        return int(asked)
    words = " ".join([*(container.get("command") or ()), *(container.get("args") or ())])
    # torchrun counts the node's devices, and gives each process one thread where it starts several.
    return 0 if asked or elastic is not None or "torchrun" in words or "torch.distributed" in words else 1


def _elastic(job: Job, elastic: Object, ports: Ports) -> dict[str, str]:
    worker = job.role(WORKER)
    assert worker is not None, "the CRD refuses elasticPolicy without Worker"
    first = job.replica(worker, 0)
    port = elastic.get("rdzvPort") or ports.get(first.name) or JOB.port.number
    least, most = elastic_range(elastic, worker)
    found = {
        "PET_RDZV_ENDPOINT": f"{elastic.get('rdzvHost') or first.name}:{port}",
        "PET_RDZV_BACKEND": elastic.get("rdzvBackend") or "c10d",
        "PET_NNODES": f"{least}:{most}",
    }
    if elastic.get("maxRestarts") is not None:
        found["PET_MAX_RESTARTS"] = str(elastic["maxRestarts"])
    if elastic.get("nProcPerNode"):
        found["PET_NPROC_PER_NODE"] = str(elastic["nProcPerNode"])
    if elastic.get("rdzvId"):
        found["PET_RDZV_ID"] = elastic["rdzvId"]
    if elastic.get("rdzvConf"):
        found["PET_RDZV_CONF"] = ",".join(f"{one.get('key')}={one.get('value')}" for one in elastic["rdzvConf"])
    if elastic.get("standalone"):
        found["PET_STANDALONE"] = ""
    return found | rendezvous.TOLD_EVERY_ROUND


def verdict(job: Job, states: Sequence[ReplicaState]) -> Verdict:
    """The master speaks for the job. Without one, all workers do; of elastic workers one is enough."""
    masters = [state for state in states if state.replica.role.name == MASTER]
    if masters:
        name, ended = job.name, "DL-JOB-IS-COMPLETED"
        done = all(state.phase == SUCCEEDED for state in masters)
    else:
        name, ended = f"{job.namespace}/{job.name}", "DL-JOB-COMPLETED"
        needed = 1 if job.spec.get("elasticPolicy") else max(len(states), 1)
        done = sum(1 for state in states if state.phase == SUCCEEDED) >= needed
    runs = any(state.phase == RUNNING for state in masters or states)
    told = {"kind": PYTORCHJOB.kind, "name": name}
    return Verdict(
        succeeded=stated(ended, **told) if done else "", running=stated("DL-JOB-RUNNING", **told) if runs else ""
    )


def master(job: Job) -> Replica | None:
    role = job.role(MASTER) or job.role(WORKER)
    return job.replica(role, 0) if role is not None else None


def failed(job: Job, role: Role, count: int) -> str:
    return stated("DL-JOB-IS-FAILED", kind=PYTORCHJOB.kind, name=job.name, count=count, role=role.name)


def companions(job: Job, observed: Observed) -> list[Companion]:
    found = autoscaler(job, job.role(WORKER)) if observed.settings.autoscaling else None
    return [Companion(found)] if found else []


def companion_kinds(settings: PlatformSettings) -> Sequence[Kind]:
    return [AUTOSCALER] if settings.autoscaling else []


def notes(job: Job, settings: PlatformSettings) -> list[EventNote]:
    if settings.autoscaling or autoscaler(job, job.role(WORKER)) is None:
        return []
    return [EventNote("Warning", "NoAutoscaler", say("DL-NO-AUTOSCALER"))]


JOB = KubeflowKind(
    kind=PYTORCHJOB,
    field="pytorchReplicaSpecs",
    roles=(MASTER, WORKER),
    containers=("pytorch",),
    port=Port("pytorchjob-port", 23456),
    restart=ON_FAILURE,
    environment=environment,
    verdict=verdict,
    master=master,
    failed=failed,
    scales=True,
    processes=processes,
    companions=companions,
    companion_kinds=companion_kinds,
    notes=notes,
)
