"""What is observed of a job's replicas. Nothing here is remembered between two looks: it is all in the API objects.

A pod that is made again has no memory of the one before it. How often that happened is kept in the annotations of the
replica's service, which outlives its pods: the number, and the uid of the pod that was counted last, so that no pod is
counted twice whatever happens between two writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from danlu.kinds._training.job import Job, Replica
from danlu.meta import conditions
from danlu.meta.integers import decimal
from danlu.meta.kind import Object

RESTARTS = "training.danlu.dev/restarts"
LAST_REPLACED = "training.danlu.dev/last-replaced-pod"

MISSING, LEAVING = "Missing", "Leaving"
PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
FINISHED = (SUCCEEDED, FAILED)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    replica: Replica
    pod: Object | None
    service: Object | None
    phase: str  # MISSING … LEAVING (being deleted)
    exit_code: int | None  # of the training container, once it has ended
    replaced: int  # pods of this replica that failed and were made again
    counted: bool  # the present pod's failure is in `replaced` already
    restarted: int  # restarts in place, by the node
    down: bool  # its container has failed and waits to be restarted in place

    @property
    def addressed(self) -> bool:
        """It has an address, or its result must be recorded: a Service is made for it."""
        status = (self.pod or {}).get("status") or {}
        return bool(status.get("podIP")) or self.phase in FINISHED

    @property
    def failures(self) -> int:
        present = 1 if self.down or (self.phase == FAILED and not self.counted) else 0
        return self.replaced + self.restarted + present

    @property
    def name(self) -> str:
        return self.replica.name


def observe(
    job: Job, pods: Iterable[Object], services: Iterable[Object], containers: Mapping[str, str]
) -> list[ReplicaState]:
    """One state for each replica the job wants, in the job's order. `containers`: the training container, by role."""
    pods_by_name = {pod["metadata"]["name"]: pod for pod in pods}
    services_by_name = {service["metadata"]["name"]: service for service in services}
    return [
        _state(
            replica, pods_by_name.get(replica.name), services_by_name.get(replica.name), containers[replica.role.name]
        )
        for replica in job.replicas
    ]


def surplus(job: Job, children: Iterable[Object]) -> list[Object]:
    """Children of replicas that the job no longer wants: it was scaled down, or a role was taken out."""
    wanted = {replica.name for replica in job.replicas}
    return [child for child in children if child["metadata"]["name"] not in wanted]


def _state(replica: Replica, pod: Object | None, service: Object | None, container: str) -> ReplicaState:
    notes = ((service or {}).get("metadata") or {}).get("annotations") or {}
    uid = pod["metadata"]["uid"] if pod else ""
    return ReplicaState(
        replica=replica,
        pod=pod,
        service=service,
        phase=phase_of(pod),
        exit_code=exit_code(pod, container),
        replaced=_number(notes.get(RESTARTS)),
        counted=bool(uid) and notes.get(LAST_REPLACED) == uid,
        restarted=sum(int(status.get("restartCount") or 0) for status in _statuses(pod)),
        down=any(_is_down(status) for status in _statuses(pod)) and phase_of(pod) not in FINISHED,
    )


def phase_of(pod: Object | None) -> str:
    if pod is None:
        return MISSING
    phase = (pod.get("status") or {}).get("phase") or PENDING
    if pod["metadata"].get("deletionTimestamp") and (phase not in FINISHED or _is_preempted(pod, phase)):
        return LEAVING
    return str(phase) if phase != "Unknown" else RUNNING


def _is_preempted(pod: Object, phase: str) -> bool:
    """The scheduler took its room for others: that it was ended is no failure of its own, and counts as none."""
    found = conditions.get((pod.get("status") or {}).get("conditions"), "DisruptionTarget")
    return phase == FAILED and found is not None and found.get("reason") == "PreemptionByScheduler"


def exit_code(pod: Object | None, container: str) -> int | None:
    """Of the container of this name, or of the first one where none has it; None while it runs."""
    found = training_status(pod, container)
    terminated = ((found or {}).get("state") or {}).get("terminated")
    return int(terminated["exitCode"]) if terminated and "exitCode" in terminated else None


def training_status(pod: Object | None, container: str) -> Object | None:
    statuses: Sequence[Object] = ((pod or {}).get("status") or {}).get("containerStatuses") or ()
    named = [status for status in statuses if status.get("name") == container]
    return next(iter(named or statuses), None)


def _statuses(pod: Object | None) -> list[Object]:
    status = (pod or {}).get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _is_down(status: Object) -> bool:
    state = status.get("state") or {}
    if "terminated" in state:
        return int(state["terminated"].get("exitCode") or 0) != 0
    last = (status.get("lastState") or {}).get("terminated")
    return "waiting" in state and last is not None and int(last.get("exitCode") or 0) != 0


def _number(text: str | None) -> int:
    return decimal(text) if text and text.isascii() and text.isdigit() else 0
