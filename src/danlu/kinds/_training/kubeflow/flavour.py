"""`Flavour`: all that one kind of Kubeflow job differs in from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from danlu.kinds._training.job import MOST_REPLICAS, Job, Replica, Role, RunPolicy, Scheduling
from danlu.kinds._training.ports import Ports
from danlu.kinds._training.rendezvous import Environment
from danlu.kinds._training.replicas import ReplicaState
from danlu.meta.kind import Kind, Object


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the replicas' states mean for the job; an empty text means: not so."""

    succeeded: str = ""
    running: str = ""


def _no(_job: Job, _role: Role) -> bool:
    return False


def _none(_job: Job) -> list[Object]:
    return []


def _unknown(_job: Job, _container: Object) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Flavour:
    kind: Kind
    field: str  # of the spec, with the replicas: "pytorchReplicaSpecs"
    roles: tuple[str, ...]  # in the order in which ranks are given
    container: str  # whose exit code and ports count
    port_name: str
    port: int
    restart: str  # the default restart policy
    environment: Callable[[Job, Replica, Ports], Environment]
    judge: Callable[[Job, Sequence[ReplicaState]], Verdict]
    is_master: Callable[[Job, Replica], bool]
    failed: Callable[[Job, Role, int], str]  # the text of the Failed condition
    environment_everywhere: bool = True  # in every container of the pod, or only in the training container
    port_for_each_replica: bool = False  # all replicas listen, or only the first
    ignores_failures: Callable[[Job, Role], bool] = _no
    processes: Callable[[Job, Object], int] = _unknown  # in the training container, for children.set_threads
    companions: Callable[[Job], list[Object]] = _none  # further children, there while the job is active
    most: int = MOST_REPLICAS  # of all roles together
    scales: bool = False  # has the scale subresource, which wants a selector in the status

    def job(self, obj: Object) -> Job:
        """Role names in any letter case, in the kind's own order; defaults as the operator's, not stored."""
        spec = obj["spec"]
        written = {name.lower(): role for name, role in (spec.get(self.field) or {}).items()}
        roles = tuple(self._role(name, written[name.lower()]) for name in self.roles if name.lower() in written)
        return Job(self.kind, obj, roles, run_policy(spec.get("runPolicy") or {})).bounded(self.most)

    def _role(self, name: str, written: Mapping[str, Object]) -> Role:
        replicas = written.get("replicas")
        return Role(
            name=name,
            replicas=1 if replicas is None else int(str(replicas)),
            template=written.get("template") or {},
            restart=str(written.get("restartPolicy") or self.restart),
        )


def run_policy(written: Object) -> RunPolicy:
    scheduling = written.get("schedulingPolicy")
    return RunPolicy(
        clean=written.get("cleanPodPolicy") or "None",
        ttl_s=written.get("ttlSecondsAfterFinished"),
        deadline_s=written.get("activeDeadlineSeconds"),
        backoff_limit=written.get("backoffLimit"),
        suspend=bool(written.get("suspend")),
        scheduling=None
        if scheduling is None
        else Scheduling(
            min_available=scheduling.get("minAvailable"),
            queue=scheduling.get("queue") or "",
            min_resources=scheduling.get("minResources"),
            priority_class=scheduling.get("priorityClass") or "",
            timeout_s=scheduling.get("scheduleTimeoutSeconds"),
        ),
    )
