"""The pods and services of a TensorStack job's replicas."""

from __future__ import annotations

from danlu.kinds._training import children, rendezvous
from danlu.kinds._training.gang import Marks
from danlu.kinds._training.job import NEVER, Job, Replica
from danlu.kinds._training.ports import Ports
from danlu.kinds._training.tensorstack.flavour import Flavour, is_enabled
from danlu.meta import objects
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


def pod(
    flavour: Flavour, job: Job, replica: Replica, ports: Ports, marks: Marks, *, resumed: bool, cores: int
) -> Object:
    named = labels(job, replica)
    master = flavour.master(job)
    if replica.name == master.name:
        named["job-role"] = "master"
    made = children.pod(
        job,
        replica,
        labels={**named, **marks.labels},
        annotations=marks.annotations,
        scheduler=marks.scheduler,
        restart=NEVER,  # the controller restarts, by making a new pod
    )
    spec = made["spec"]
    spec.update(marks.spec)
    training = children.training_container(spec, flavour.container_name(spec))
    children.set_port(training, flavour.port_name, ports[replica.name])
    _environment(flavour, job, replica, ports, spec)
    children.set_threads(training, cores=cores, replicas=job.total, processes=flavour.processes)
    debug: Object = (job.spec.get("runMode") or {}).get("debug") or {}
    if is_enabled(debug):
        _debug(debug, replica, spec, training)
        return made
    if resumed:
        _resume((job.spec["runMode"].get("pause") or {}).get("resumeSpecs") or [], replica, spec, training)
    flavour.command(job, replica, ports, training)
    return made


def service(flavour: Flavour, job: Job, replica: Replica, ports: Ports) -> Object:
    spec = replica.role.template["spec"]
    found = children.training_container(spec, flavour.container_name(spec))
    training = {"ports": objects.copy(found.get("ports") or [])}
    children.set_port(training, flavour.port_name, ports[replica.name])
    named = labels(job, replica)
    return children.service(job, replica, labels=named, selector=named, ports=children.ports_for_service(training))


def _environment(flavour: Flavour, job: Job, replica: Replica, ports: Ports, spec: Object) -> None:
    added = dict(flavour.environment(job, replica, ports))
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
