"""Gangs: a PodGroup for each job, for the engine that places its pods together.

An engine is one entry in `ENGINES`: the kind of its PodGroup, what stands in it, and how a pod names its group. The
kinds only write what the engine reads; whether the pods fit is the engine's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from danlu.kinds._training.job import Job, Replica, Scheduling
from danlu.kinds.platform import PlatformSettings
from danlu.meta import owners
from danlu.meta.kind import Kind, Object
from danlu.meta.quantity import Quantity, parse

VOLCANO_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", True, ("pg",))
COSCHEDULING_GROUP = Kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", True, ("pg",))


@dataclass(frozen=True, slots=True)
class Marks:
    """What a pod carries to belong to its group."""

    scheduler: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    kind: Kind
    spec: Callable[[Job, Scheduling], Object]
    marks: Callable[[Job, Replica], Marks]
    # Volcano admits the group to its queue first; pods made before that would only fill the cluster.
    is_admitted: Callable[[Object], bool] = lambda _group: True


def _volcano_spec(job: Job, scheduling: Scheduling) -> Object:
    spec: Object = {
        "minMember": min_member(job, scheduling),
        "queue": scheduling.queue or "default",
        "minResources": min_resources(job, scheduling),
    }
    if scheduling.priority_class:
        spec["priorityClassName"] = scheduling.priority_class
    return spec


def _coscheduling_spec(job: Job, scheduling: Scheduling) -> Object:
    spec: Object = {"minMember": min_member(job, scheduling), "minResources": min_resources(job, scheduling)}
    if scheduling.timeout_s is not None:
        spec["scheduleTimeoutSeconds"] = scheduling.timeout_s
    return spec


def _volcano_marks(job: Job, replica: Replica) -> Marks:
    notes = {"scheduling.k8s.io/group-name": job.name, "volcano.sh/task-spec": replica.role.slug}
    return Marks("volcano", annotations=notes)


def _coscheduling_marks(job: Job, _replica: Replica) -> Marks:
    return Marks("scheduler-plugins-scheduler", labels={"scheduling.x-k8s.io/pod-group": job.name})


def _volcano_admitted(group: Object) -> bool:
    return (group.get("status") or {}).get("phase") not in (None, "", "Pending")


ENGINES: Mapping[str, Engine] = {
    "volcano": Engine(VOLCANO_GROUP, _volcano_spec, _volcano_marks, _volcano_admitted),
    "coscheduling": Engine(COSCHEDULING_GROUP, _coscheduling_spec, _coscheduling_marks),
}


def engine(settings: PlatformSettings) -> Engine | None:
    return ENGINES.get(settings.gang)


def group(job: Job, engine: Engine) -> Object:
    made: Object = {
        "apiVersion": engine.kind.api_version,
        "kind": engine.kind.kind,
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "ownerReferences": [owners.reference(job.obj, job.kind)],
        },
        "spec": engine.spec(job, job.policy.scheduling or Scheduling()),
    }
    notes = {
        name: text
        for name, text in (job.obj["metadata"].get("annotations") or {}).items()
        if name != "kubectl.kubernetes.io/last-applied-configuration"
    }
    if notes:
        made["metadata"]["annotations"] = notes
    return made


def min_member(job: Job, scheduling: Scheduling) -> int:
    return job.total if scheduling.min_available is None else scheduling.min_available


def min_resources(job: Job, scheduling: Scheduling) -> Object:
    """As given, or what the first `min_member` pods ask for together."""
    if scheduling.min_resources:
        return scheduling.min_resources
    total: dict[str, Quantity] = {}
    replicas = list(job.replicas())[: min_member(job, scheduling)]
    for replica in replicas:
        for container in (replica.role.template.get("spec") or {}).get("containers") or ():
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                total[name] = total[name] + parse(str(amount)) if name in total else parse(str(amount))
    return {name: str(amount) for name, amount in sorted(total.items())}


def of_job(job: Job, others: Iterable[Object]) -> Object | None:
    return next((one for one in others if one["kind"] == "PodGroup" and one["metadata"]["name"] == job.name), None)


KINDS = tuple(one.kind for one in ENGINES.values())


def kinds_of(settings: PlatformSettings) -> tuple[Kind, ...]:
    """What the controller watches: only the chosen engine's kind is sure to be there."""
    found = engine(settings)
    return (found.kind,) if found else ()
