"""What becomes of a replica that failed, and how failures are counted.

Restarts in place are the node's (OnFailure, Always: the pod's own restartPolicy). What reaches us is a pod that is
Failed as a whole: evicted, its node lost, or ended under a policy by which the node does not restart it (ExitCode).
It is deleted and made again under the same name, or its failure is for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from danlu.kinds._training.job import ALWAYS, EXIT_CODE, NEVER, ON_FAILURE, Job
from danlu.kinds._training.replicas import FAILED, LAST_REPLACED, RESTARTS, ReplicaState
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object

FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 360.0  # as Kubernetes' own Job controller waits

Retryable = Callable[[int | None], bool]


def by_signal(code: int | None) -> bool:
    """Kubeflow's rule of ExitCode: ended by a signal (128 and above), or nobody knows how."""
    return code is None or code >= 128


def pod_policy(restart: str) -> str:
    return NEVER if restart == EXIT_CODE else restart


def is_permanent(state: ReplicaState, retryable: Retryable = by_signal) -> bool:
    """Failed, and by its policy not to be made again."""
    if state.phase != FAILED:
        return False
    if state.replica.role.restart == NEVER:
        return True
    return state.replica.role.restart == EXIT_CODE and not retryable(state.exit_code)


def is_replaceable(state: ReplicaState, retryable: Retryable = by_signal) -> bool:
    return state.phase == FAILED and not is_permanent(state, retryable)


def pause_s(state: ReplicaState, now: datetime) -> float:
    """How long the failed pod stays before it is made again: the first time not at all, then longer each time."""
    before = state.replaced - (1 if state.counted else 0)
    if before <= 0:
        return 0.0
    ended = ended_at(state.pod)
    wait = min(FIRST_PAUSE_S * 2 ** min(before - 1, 10), LONGEST_PAUSE_S)
    return max(0.0, wait - (now - ended).total_seconds()) if ended else 0.0


def note_replaced(job: Job, state: ReplicaState) -> Object | None:
    """What is applied to the replica's service before its failed pod is deleted; None if it is written already."""
    if state.service is None or state.pod is None or state.counted:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": state.name,
            "namespace": job.namespace,
            "annotations": {RESTARTS: str(state.replaced + 1), LAST_REPLACED: state.pod["metadata"]["uid"]},
        },
    }


def failures(states: Iterable[ReplicaState]) -> int:
    """Of all replicas together, whichever way they were restarted."""
    return sum(state.failures for state in states if state.replica.role.restart in (ALWAYS, ON_FAILURE, EXIT_CODE))


def over_limit(job: Job, states: Iterable[ReplicaState]) -> bool:
    """More failures than the job may have restarts."""
    limit = job.policy.backoff_limit
    return limit is not None and failures(states) > limit


def ended_at(pod: Object | None) -> datetime | None:
    status = (pod or {}).get("status") or {}
    times = [
        terminated["finishedAt"]
        for one in status.get("containerStatuses") or ()
        if (terminated := (one.get("state") or {}).get("terminated")) and terminated.get("finishedAt")
    ]
    if not times and status.get("startTime"):
        times = [status["startTime"]]  # its node would not take it: it never ran
    return max(map(parse_time, times)) if times else None
