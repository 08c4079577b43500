"""What becomes of a replica that failed, and how failures are counted.

Restarts in place are the node's (OnFailure, Always: the pod's own restartPolicy). What reaches us is a pod that is
Failed as a whole: evicted, its node lost, or ended under a policy by which the node does not restart it (ExitCode).
It is deleted and made again under the same name, or its failure is for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

from danlu.kinds._training.job import ALWAYS, EXIT_CODE, NEVER, ON_FAILURE, Job
from danlu.kinds._training.replicas import FAILED, FINISHED, LAST_REPLACED, RESTARTS, ReplicaState
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object

FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 360.0  # as Kubernetes' own Job controller waits

REJECTED_PAUSE_S = 2.0  # a node that had no room for a pod may have it when another has really gone

Retryable = Callable[[int | None], bool]


@dataclass(frozen=True, slots=True)
class RestartRules:
    """In what dialects differ."""

    retryable: Retryable  # by the policy ExitCode; None: nobody knows how it ended
    in_place: bool  # OnFailure, Always: the node restarts the container; else only new pods are made
    limit_is_budget: bool  # what fails beyond backoffLimit stays as it is; else the job has failed by it
    after_success: bool  # Always: also a replica that has ended well, but for the master, which speaks for the job
    replaces_rejected: bool  # a pod that its node would not take is made again, whatever the policy, and not counted


@dataclass(frozen=True, slots=True)
class Failures:
    again: list[ReplicaState]  # replicas to be made again
    lost: list[ReplicaState]  # failed, and stay as they are: by their policy, or for want of restarts


def sort(job: Job, states: Sequence[ReplicaState], rules: RestartRules, master: str) -> Failures:
    """`master` is a replica's name."""
    found = Failures([], [])
    left = inf
    for state in states:
        if state.phase not in FINISHED:
            continue
        if rules.limit_is_budget and left == inf:
            left = (job.policy.backoff_limit or 0) - sum(one.replaced for one in states)
        if rules.replaces_rejected and never_ran(state):
            found.again.append(state)
        elif _wants_restart(state, rules, master) and (state.counted or left > 0):
            left -= 0 if state.counted else 1
            found.again.append(state)
        elif state.phase == FAILED:
            found.lost.append(state)
    return found


def _wants_restart(state: ReplicaState, rules: RestartRules, master: str) -> bool:
    if state.phase == FAILED:
        return not is_permanent(state, rules.retryable)
    return rules.after_success and state.replica.role.restart == ALWAYS and state.name != master


def never_ran(state: ReplicaState) -> bool:
    """Its node would not take it: it failed without any of its containers having been made."""
    status = (state.pod or {}).get("status") or {}
    return state.phase == FAILED and bool(status.get("reason")) and not status.get("containerStatuses")


def pod_policy(restart: str, rules: RestartRules) -> str:
    """Of the pod, which the node heeds."""
    return restart if rules.in_place and restart != EXIT_CODE else NEVER


def is_permanent(state: ReplicaState, retryable: Retryable) -> bool:
    """Failed, and by its policy not to be made again."""
    if state.phase != FAILED:
        return False
    if state.replica.role.restart == NEVER:
        return True
    return state.replica.role.restart == EXIT_CODE and not retryable(state.exit_code)


def pause_s(state: ReplicaState, now: datetime) -> float:
    """How long the failed pod stays before it is made again: the first time not at all, then longer each time."""
    before = state.replaced - (1 if state.counted else 0)
    if before <= 0:
        return 0.0
    ended = ended_at(state.pod)
    wait = min(FIRST_PAUSE_S * 2 ** min(before - 1, 10), LONGEST_PAUSE_S)
    return max(0.0, wait - (now - ended).total_seconds()) if ended else 0.0


def rejected_pause_s(state: ReplicaState, now: datetime) -> float:
    began = ended_at(state.pod)
    return REJECTED_PAUSE_S - (now - began).total_seconds() if began else 0.0


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
