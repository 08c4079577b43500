"""What a PyTorchJob's replicas are told, and when the job has succeeded. The rest is `_training.kubeflow`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from danlu.kinds._training import rendezvous
from danlu.kinds._training.job import ON_FAILURE, Job, Replica, Role
from danlu.kinds._training.kubeflow import machine
from danlu.kinds._training.kubeflow.flavour import Flavour, Verdict
from danlu.kinds._training.observing import Observed
from danlu.kinds._training.ports import Ports
from danlu.kinds._training.replicas import RUNNING, SUCCEEDED, ReplicaState
from danlu.kinds.pytorchjob.autoscaling import autoscaler, elastic_range
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Outcome

PYTORCHJOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", True, (), ("danlu",))
MASTER, WORKER = "Master", "Worker"


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return machine.reconcile(FLAVOUR, obj, observed, now)


def environment(job: Job, replica: Replica, ports: Ports) -> rendezvous.Environment:
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
    return rendezvous.variables(found)


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
    port = elastic.get("rdzvPort") or ports.get(first.name) or FLAVOUR.port
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


def judge(job: Job, states: Sequence[ReplicaState]) -> Verdict:
    """The master speaks for the job. Without one, all workers do; of elastic workers one is enough."""
    kind, name = PYTORCHJOB.kind, job.name
    masters = [state for state in states if state.replica.role.name == MASTER]
    if masters:
        return Verdict(
            succeeded=f"{kind} {name} is successfully completed."
            if all(state.phase == SUCCEEDED for state in masters)
            else "",
            running=f"{kind} {name} is running." if any(state.phase == RUNNING for state in masters) else "",
        )
    done = sum(1 for state in states if state.phase == SUCCEEDED)
    needed = 1 if job.spec.get("elasticPolicy") else max(len(states), 1)
    return Verdict(
        succeeded=f"{kind} {job.namespace}/{name} successfully completed." if done >= needed else "",
        running=f"{kind} {job.namespace}/{name} is running." if any(state.phase == RUNNING for state in states) else "",
    )


def is_master(job: Job, replica: Replica) -> bool:
    return replica.index == 0 and replica.role.name == (MASTER if job.role(MASTER) else WORKER)


def failed(job: Job, role: Role, count: int) -> str:
    return f"{PYTORCHJOB.kind} {job.name} is failed because {count} {role.name} replica(s) failed."


def companions(job: Job) -> list[Object]:
    found = autoscaler(job, job.role(WORKER))
    return [found] if found else []


FLAVOUR = Flavour(
    kind=PYTORCHJOB,
    field="pytorchReplicaSpecs",
    roles=(MASTER, WORKER),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    restart=ON_FAILURE,
    environment=environment,
    judge=judge,
    is_master=is_master,
    failed=failed,
    scales=True,
    processes=processes,
    companions=companions,
)
