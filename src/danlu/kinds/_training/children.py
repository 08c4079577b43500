"""The pod and the headless service of one replica, from its template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from danlu.kinds._training import restarts
from danlu.kinds._training.gang import Marks
from danlu.kinds._training.job import Job, Replica
from danlu.meta import objects, owners
from danlu.meta.kind import Kind, Object
from danlu.meta.quantity import parse

if TYPE_CHECKING:
    from danlu.kinds._training.ports import Ports
    from danlu.kinds._training.reconciliation import JobReconciliation

THREADS = "OMP_NUM_THREADS"
COMPANION_OF = "training.danlu.dev/companion-of"  # label; the kind of the job


def pod(
    job: Job,
    replica: Replica,
    *,
    labels: Mapping[str, str],
    restart: str,
    annotations: Mapping[str, str] | None = None,
    scheduler: str = "",
) -> Object:
    """The replica's template as a pod; labels of ours win over the template's. `restart` is the pod's own policy."""
    template = replica.role.template
    meta = template.get("metadata") or {}
    spec = objects.copy(template.get("spec") or {})
    spec["restartPolicy"] = restart
    if scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = scheduler
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": replica.name,
            "namespace": job.namespace,
            "labels": {**(meta.get("labels") or {}), **labels},
            "ownerReferences": [owners.reference(job.obj, job.kind)],
        },
        "spec": spec,
    }
    notes = {**(meta.get("annotations") or {}), **(annotations or {})}
    if notes:
        made["metadata"]["annotations"] = notes
    if meta.get("finalizers"):
        made["metadata"]["finalizers"] = list(meta["finalizers"])
    for container in spec.get("containers") or ():
        # So that a replica that dies in an import shows why, without anybody having to catch its log.
        container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    return made


def service(
    job: Job, replica: Replica, *, labels: Mapping[str, str], selector: Mapping[str, str], ports: list[Object]
) -> Object:
    """Names resolve as soon as the pod has an address: replicas look for each other before any of them is ready."""
    spec: Object = {"clusterIP": "None", "selector": dict(selector), "publishNotReadyAddresses": True}
    if ports:
        spec["ports"] = ports
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": replica.name,
            "namespace": job.namespace,
            "labels": dict(labels),
            "ownerReferences": [owners.reference(job.obj, job.kind)],
        },
        "spec": spec,
    }


def companion(job: Job, kind: Kind, name: str, body: Mapping[str, Any]) -> Object:
    """A child that all replicas share: a ConfigMap, a Secret."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {COMPANION_OF: job.kind.kind.lower()},
            "ownerReferences": [owners.reference(job.obj, job.kind)],
        },
        **body,
    }


def replica_pod(reconciliation: JobReconciliation, replica: Replica, planned: Ports) -> Object:
    """As the job's kind wants it."""
    job, kind = reconciliation.job, reconciliation.kind
    marks = reconciliation.engine.marks(job, replica) if reconciliation.engine else Marks()
    made = pod(
        job,
        replica,
        labels={**kind.labels(job, replica, is_master=reconciliation.is_master(replica)), **marks.labels},
        annotations=marks.annotations,
        scheduler=marks.scheduler,
        restart=restarts.pod_policy(replica.role.restart, kind.rules),
    )
    spec = made["spec"]
    spec.update(marks.spec)
    training = training_container(spec, reconciliation.container(replica.role))
    set_port(training, kind.port.name, planned[replica.name])
    kind.add_environment(spec, training, kind.environment(job, replica, planned))
    cores = reconciliation.observed.settings.shared_cores
    set_threads(training, cores=cores, replicas=job.total, processes=kind.processes(job, training))
    kind.finish_pod(reconciliation, replica, planned, made)
    return made


def replica_service(reconciliation: JobReconciliation, replica: Replica, planned: Ports) -> Object:
    job, kind = reconciliation.job, reconciliation.kind
    found = training_container(replica.role.template["spec"], reconciliation.container(replica.role))
    training = {"ports": objects.copy(found.get("ports") or [])}
    set_port(training, kind.port.name, planned[replica.name])
    return service(
        job,
        replica,
        labels=kind.labels(job, replica),
        selector=kind.selector(job, replica),
        ports=ports_for_service(training),
    )


def name_max_wait_s(asked_for: bool) -> float:
    """How long a replica that runs may be without its name while the cluster is busy starting others.

    What the others look for is wanted at once, or nearly; the rest have names because people are used to it.
    """
    return 3.0 if asked_for else 30.0


def training_container(spec: Object, name: str) -> Object:
    """The container of this name, or the first."""
    containers = spec["containers"]
    found: Object = next((one for one in containers if one.get("name") == name), containers[0])
    return found


def set_port(container: Object, name: str, number: int) -> None:
    for port in container.get("ports") or ():
        if port.get("name") == name:
            port["containerPort"] = number
            return
    container.setdefault("ports", []).append({"name": name, "containerPort": number, "protocol": "TCP"})


def add_environment(containers: Iterable[Object], environment: list[Object]) -> None:
    """After the user's own: of two variables of one name the later one counts."""
    for container in containers:
        container["env"] = [*(container.get("env") or ()), *environment]


def set_threads(container: Object, *, cores: int, replicas: int, processes: int) -> None:
    """Libraries ask the node for its cores, not for the limit: workers that share a node would trample each other.

    `cores`: of the one machine that all replicas share, whose node gives a limit its meaning; 0: of a cluster, whose
    nodes do not. `processes`: in the container; 0: it does not heed OMP_NUM_THREADS, or starts nobody knows how many.
    """
    limit = ((container.get("resources") or {}).get("limits") or {}).get("cpu")
    if any(one.get("name") == THREADS for one in container.get("env") or ()):
        return
    if limit is None and cores and replicas > 1:
        threads = cores // replicas
    elif limit is not None and not cores and processes:
        threads = math.ceil(parse(limit).value() / processes)
    else:
        return
    add_environment([container], [{"name": THREADS, "value": str(max(1, threads))}])


def ports_for_service(container: Object) -> list[Object]:
    found = []
    for port in container.get("ports") or ():
        one: Object = {"port": port["containerPort"], "targetPort": port["containerPort"]}
        if port.get("name"):
            one["name"] = port["name"]
        if port.get("protocol") not in (None, "TCP"):
            one["protocol"] = port["protocol"]
        found.append(one)
    return found
