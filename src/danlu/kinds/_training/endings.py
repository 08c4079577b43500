"""How a job ends by the clock, and what is taken away afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from danlu.kinds._training.job import Job
from danlu.kinds._training.replicas import FINISHED, phase_of
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object


def seconds_to_deadline(job: Job, started: str | None, now: datetime) -> float | None:
    """At most 0 once it has passed; None without a deadline."""
    if job.policy.deadline_s is None or not started:
        return None
    return job.policy.deadline_s - (now - parse_time(started)).total_seconds()


def seconds_to_live(job: Job, ended: str | None, now: datetime) -> float | None:
    if job.policy.ttl_s is None or not ended:
        return None
    return job.policy.ttl_s - (now - parse_time(ended)).total_seconds()


def unfinished(pods: Iterable[Object]) -> list[Object]:
    return [pod for pod in pods if phase_of(pod) not in FINISHED]


def to_clean(policy: str, pods: Iterable[Object], services: Iterable[Object]) -> tuple[list[Object], list[Object]]:
    """Pods and services that go when the job has ended, by `RunPolicy.clean`. A service goes with its pod."""
    if policy == "None":
        return [], []
    gone = list(pods) if policy == "All" else unfinished(pods)
    if policy == "All":
        return gone, list(services)
    names = {pod["metadata"]["name"] for pod in gone}
    return gone, [service for service in services if service["metadata"]["name"] in names]
