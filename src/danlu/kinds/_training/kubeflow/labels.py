"""Labels of pods and services: those of the training operator from 1.6 on, and those that older docs select by."""

from __future__ import annotations

from danlu.kinds._training.job import Job, Replica, Role

PREFIX = "training.kubeflow.org"
GROUP = "kubeflow.org"


def operator_name(job: Job) -> str:
    return f"{job.kind.kind.lower()}-controller"


def selector(job: Job, replica: Replica) -> dict[str, str]:
    return {
        f"{PREFIX}/job-name": job.name,
        f"{PREFIX}/operator-name": operator_name(job),
        f"{PREFIX}/replica-index": str(replica.index),
        f"{PREFIX}/replica-type": replica.role.slug,
    }


def of_replica(job: Job, replica: Replica, *, is_master: bool = False) -> dict[str, str]:
    labels = {
        **selector(job, replica),
        "group-name": GROUP,
        "job-name": job.name,
        "replica-type": replica.role.slug,
        "replica-index": str(replica.index),
    }
    if is_master:
        labels |= {f"{PREFIX}/job-role": "master", "job-role": "master"}
    return labels


def role_selector(job: Job, role: Role) -> str:
    """As text, for the scale subresource."""
    parts = {"job-name": job.name, "operator-name": operator_name(job), "replica-type": role.slug}
    return ",".join(f"{PREFIX}/{name}={value}" for name, value in parts.items())
