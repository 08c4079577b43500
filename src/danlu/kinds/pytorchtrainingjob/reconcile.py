"""What a PyTorchTrainingJob's replicas are told, and how torchrun is called. The rest is `_training.tensorstack`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from danlu.kinds._training import lifecycle, rendezvous
from danlu.kinds._training.job import Job, Replica
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port, Ports
from danlu.kinds._training.tensorstack.dialect import TensorStackKind, elastic_of
from danlu.kinds._training.tensorstack.trainingpods import is_enabled
from danlu.kinds.pytorchtrainingjob.schema import PYTORCHTRAININGJOB
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Outcome

CONF = ("--rdzv_conf=", "--rdzv-conf=")


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return lifecycle.reconcile(JOB, obj, observed, now)


def master(job: Job) -> Replica:
    first = next((role for role in job.roles if role.replicas), job.roles[0])
    return job.replica(first, 0)


def environment(job: Job, replica: Replica, ports: Ports) -> Mapping[str, str]:
    config = job.spec.get("torchrunConfig") or {}
    if is_enabled(config):
        # torchrun tells its processes itself. Where it starts several it gives each of them one thread, unless the
        # variables are set; on the embedded node they are, from the pod's limit.
        several = str(config.get("procPerNode") or 1) != "1"
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") if several else {}
        nodes = job.total > 1 or elastic_of(job.spec) is not None
        return threads | (rendezvous.TOLD_EVERY_ROUND if nodes else {})
    first = master(job)
    return {
        "MASTER_ADDR": first.name,
        "MASTER_PORT": str(ports[first.name]),
        "RANK": str(job.rank(replica)),
        "WORLD_SIZE": str(job.total),
    }


def torchrun(job: Job, replica: Replica, ports: Ports, container: Object) -> None:
    config = job.spec.get("torchrunConfig") or {}
    if not is_enabled(config):
        return
    first = master(job)
    elastic = elastic_of(job.spec)
    nodes = str(job.total)
    if elastic is not None:
        least, most = elastic.get("minReplicas"), elastic.get("maxReplicas")
        nodes = f"{least or most or job.total}:{most or max(job.total, least or 0)}"
    options = [
        f"--nnodes={nodes}",
        f"--nproc_per_node={config.get('procPerNode') or 1}",
        f"--rdzv_backend={config.get('rdzvBackend') or 'c10d'}",
        f"--rdzv_endpoint={first.name}:{ports[first.name]}",
        f"--rdzv_id={job.prefix}",
        # Each process must know the machine by a name that the others can resolve.
        f"--local_addr={replica.name}",
    ]
    extra = list(config.get("extraOptions") or ())
    if (config.get("rdzvBackend") or "c10d") == "c10d":
        # Where pods share a network every one of them would take itself for the host.
        own = f"is_host={'true' if replica.name == first.name else 'false'}"
        given = [word.partition("=")[2] for word in extra if word.startswith(CONF)]
        extra = [word for word in extra if not word.startswith(CONF)]
        options.append(f"--rdzv_conf={','.join([own, *given])}")
    if config.get("maxRestarts") is not None:
        options.append(f"--max_restarts={config['maxRestarts']}")
    container["command"] = ["torchrun", *options, *extra]


JOB = TensorStackKind(
    kind=PYTORCHTRAININGJOB,
    containers=("pytorch", "python"),
    port=Port("pytorch-port", 29500),
    environment=environment,
    master=master,
    command=torchrun,
    processes=lambda _job, _container: 1,  # several are torchrun's, and `environment` has told them
)
