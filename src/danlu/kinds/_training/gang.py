"""Gangs: a PodGroup for each job, for the engine that places its pods together.

An engine is one entry in `ENGINES`: the kind of its PodGroup, what stands in it, and how a pod names its group. The
kinds only write what the engine reads; whether the pods fit is the engine's business.

    t9k            the embedded scheduler, by Queue and PodGroup objects of TensorStack
    volcano        Volcano's PodGroup
    coscheduling   the PodGroup of scheduler-plugins
    kube           kube-scheduler's own PodGroup (1.36, feature gates GenericWorkload and GangScheduling)
    kueue          no group object: labels of the pods, or of the job itself where Kueue knows its kind
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from danlu.kinds._gang import markers
from danlu.kinds._training.job import Job, Replica, Scheduling
from danlu.kinds.platform import PlatformSettings
from danlu.meta import owners
from danlu.meta.kind import Kind, Object
from danlu.meta.quantity import Quantity, parse

VOLCANO_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", True, ("pg",))
COSCHEDULING_GROUP = Kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", True, ("pg",))
KUBE_GROUP = Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups")

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
KNOWN_TO_KUEUE = ("kubeflow.org",)  # Kueue itself suspends and resumes these jobs, by the queue's label on the job


@dataclass(frozen=True, slots=True)
class Marks:
    """What a pod carries to belong to its group."""

    scheduler: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, object] = field(default_factory=dict)  # further fields of the pod's spec


@dataclass(frozen=True, slots=True)
class Engine:
    kind: Kind | None  # None: there is no group object
    spec: Callable[[Job, Scheduling], Object]
    marks: Callable[[Job, Replica], Marks]
    # Volcano admits the group to its queue first; pods made before that would only fill the cluster.
    is_admitted: Callable[[Object], bool] = lambda _group: True
    on_request: bool = False  # only for jobs that ask for it; others are left to the default scheduler
    frozen: bool = False  # a group's spec cannot be changed once it is made


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


def _t9k_spec(job: Job, scheduling: Scheduling) -> Object:
    return {
        "minMember": min_member(job, scheduling),
        "queue": scheduling.queue or markers.DEFAULT_QUEUE,
        "priority": scheduling.priority or 0,
    }


def _kube_spec(job: Job, scheduling: Scheduling) -> Object:
    return {"schedulingPolicy": {"gang": {"minCount": max(min_member(job, scheduling), 1)}}}


def _no_spec(_job: Job, _scheduling: Scheduling) -> Object:
    return {}


def _t9k_marks(job: Job, replica: Replica) -> Marks:
    queue = (job.policy.scheduling or Scheduling()).queue or markers.DEFAULT_QUEUE
    named = {markers.GROUP_NAME: job.name, markers.QUEUE_NAME: queue, markers.ROLE: replica.role.slug}
    return Marks(markers.SCHEDULER, labels=named)


def _kube_marks(job: Job, _replica: Replica) -> Marks:
    return Marks(spec={"schedulingGroup": {"podGroupName": job.name}})


def _kueue_marks(job: Job, _replica: Replica) -> Marks:
    """Kueue holds the pods back by a gate of its own until the whole group has quota."""
    if job.kind.group in KNOWN_TO_KUEUE:
        return Marks()
    queue = (job.policy.scheduling or Scheduling()).queue or markers.DEFAULT_QUEUE
    return Marks(labels={KUEUE_QUEUE: queue, KUEUE_GROUP: job.name}, annotations={KUEUE_TOTAL: str(job.total)})


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
    "t9k": Engine(markers.POD_GROUP, _t9k_spec, _t9k_marks, on_request=True),
    "kube": Engine(KUBE_GROUP, _kube_spec, _kube_marks, frozen=True),
    "kueue": Engine(None, _no_spec, _kueue_marks, on_request=True),
}


def engine(settings: PlatformSettings, scheduling: Scheduling | None) -> Engine | None:
    found = ENGINES.get(settings.gang)
    return None if found is not None and found.on_request and scheduling is None else found


def wanted(job: Job, engine: Engine, others: Iterable[Object]) -> list[Object]:
    """The job's group as it should be, if the engine has one."""
    if engine.kind is None or (engine.frozen and of_job(job, others) is not None):
        return []
    return [group(job, engine, engine.kind)]


def is_admitted(job: Job, engine: Engine, others: Iterable[Object]) -> bool:
    return engine.kind is None or engine.is_admitted(of_job(job, others) or {})


def group(job: Job, engine: Engine, kind: Kind) -> Object:
    made: Object = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
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
    replicas = job.replicas[: min_member(job, scheduling)]
    for replica in replicas:
        for container in (replica.role.template.get("spec") or {}).get("containers") or ():
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                total[name] = total[name] + parse(str(amount)) if name in total else parse(str(amount))
    return {name: str(amount) for name, amount in sorted(total.items())}


def of_job(job: Job, others: Iterable[Object]) -> Object | None:
    return next((one for one in others if one["kind"] == "PodGroup" and one["metadata"]["name"] == job.name), None)


KINDS = tuple(one.kind for one in ENGINES.values() if one.kind is not None)


def kinds_of(settings: PlatformSettings) -> tuple[Kind, ...]:
    """What the controller watches: only the chosen engine's kind is sure to be there."""
    found = ENGINES.get(settings.gang)
    return (found.kind,) if found is not None and found.kind is not None else ()
