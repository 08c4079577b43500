"""What a TensorFlowTrainingJob's replicas are told. The rest is `_training.tensorstack`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from danlu.kinds._training import lifecycle, rendezvous
from danlu.kinds._training.job import MOST_TENSORFLOW_REPLICAS, Job, Replica
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port, Ports
from danlu.kinds._training.tensorstack.dialect import TensorStackKind
from danlu.kinds.tensorflowtrainingjob.schema import TENSORFLOWJOB, TENSORFLOWTRAININGJOB
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Outcome


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return lifecycle.reconcile(JOBS[obj["kind"]], obj, observed, now)


def master(job: Job) -> Replica:
    for wanted in ("chief", "worker"):
        for role in job.roles:
            if role.slug == wanted:
                return job.replica(role, 0)
    return job.replica(job.roles[0], 0)


def environment(job: Job, replica: Replica, ports: Ports) -> Mapping[str, str]:
    # An evaluator looks on: it knows the cluster and is no part of it.
    def address(one: Replica) -> str:
        return f"{one.name}:{ports[one.name]}"

    return {"TF_CONFIG": rendezvous.tf_config(job, replica, address, environment="", without="evaluator")}


def _job(kind: Kind) -> TensorStackKind:
    return TensorStackKind(
        kind=kind,
        most=MOST_TENSORFLOW_REPLICAS,
        containers=("tensorflow",),
        port=Port("tensorflow-port", 2222, for_each_replica=True),
        environment=environment,
        master=master,
    )


JOBS = {kind.kind: _job(kind) for kind in (TENSORFLOWTRAININGJOB, TENSORFLOWJOB)}
