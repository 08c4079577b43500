"""What is particular to the pods of a TensorStack job."""

from __future__ import annotations

from collections.abc import Mapping

from danlu.kinds._training import children, rendezvous
from danlu.kinds._training.job import Job, Replica
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.meta import conditions
from danlu.meta.kind import Object

DEBUG_COMMAND = ["sleep", "inf"]
UNBUFFERED = "PYTHONUNBUFFERED"
YIELDING = (
    UNBUFFERED,
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    *rendezvous.TOLD_EVERY_ROUND,
)  # what the template says itself, counts


def labels(job: Job, replica: Replica) -> dict[str, str]:
    return {
        "replica-type": replica.role.slug,
        "replica-index": str(replica.index),
        "tensorstack.dev/owner-name": job.name,
        # Pods of a job of the same name that was deleted a moment ago are not this job's.
        "tensorstack.dev/owner-uid": job.uid,
        "tensorstack.dev/component": job.kind.kind.lower(),
        "tensorstack.dev/component-type": "user",
    }


def training_container(reconciliation: JobReconciliation, replica: Replica, pod: Object) -> Object:
    return children.training_container(pod["spec"], reconciliation.container(replica.role))


def prepare(reconciliation: JobReconciliation, replica: Replica, pod: Object) -> bool:
    """For debugging, or to go on after a pause. Whether its command is settled by that."""
    mode: Object = reconciliation.job.spec.get("runMode") or {}
    spec, training = pod["spec"], training_container(reconciliation, replica, pod)
    if is_enabled(mode.get("debug")):
        _debug(mode["debug"], replica, spec, training)
        return True
    if conditions.get(reconciliation.before.get("conditions"), "Paused") is not None:
        _resume((mode.get("pause") or {}).get("resumeSpecs") or [], replica, spec, training)
    return False


def is_enabled(mode: Object | None) -> bool:
    """`enable` is the older spelling."""
    return bool((mode or {}).get("enabled", (mode or {}).get("enable")))


def add_environment(spec: Object, added: Mapping[str, str]) -> None:
    for container in spec["containers"]:
        own = {entry["name"] for entry in container.get("env") or ()}
        # Progress is to be seen while it is made.
        words = {UNBUFFERED: "1", **added}
        words = {name: value for name, value in words.items() if name not in own or name not in YIELDING}
        children.add_environment([container], rendezvous.variables(words))


def _debug(debug: Object, replica: Replica, spec: Object, training: Object) -> None:
    own: Object = next((one for one in debug.get("replicaSpecs") or () if one["type"] == replica.role.name), {})
    training["command"] = list(own.get("command") or DEBUG_COMMAND)
    training.pop("args", None)
    if own.get("skipInitContainer"):
        spec.pop("initContainers", None)


def _resume(resume: list[Object], replica: Replica, spec: Object, training: Object) -> None:
    own = next((one for one in resume if one["type"] == replica.role.name), {})
    for field in ("command", "args"):
        if own.get(field):
            training[field] = list(own[field])
    if own.get("command") and not own.get("args"):
        training.pop("args", None)
    if own.get("skipInitContainer"):
        spec.pop("initContainers", None)
