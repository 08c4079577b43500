"""The launcher is made when all workers run; a ConfigMap has the list of hosts, a Secret the keys."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime

from danlu.kinds._training import children, lifecycle
from danlu.kinds._training.job import NEVER, Job, Replica, Role
from danlu.kinds._training.jobkind import Companion, Verdict
from danlu.kinds._training.kubeflow.dialect import KubeflowKind
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port, Ports
from danlu.kinds._training.replicas import RUNNING, SUCCEEDED, ReplicaState
from danlu.kinds.launcherjob.schema import LAUNCHERJOB
from danlu.kinds.platform import PlatformSettings
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, SECRET
from danlu.runtime.reconcile import Outcome

LAUNCHER, WORKER = "Launcher", "Worker"


def reconcile(obj: Object, observed: Observed, now: datetime) -> Outcome:
    return lifecycle.reconcile(JOB, obj, observed, now)


def hosts(job: Job) -> str:
    return "".join(f"{one.name} slots=1\n" for one in job.replicas if one.role.name == WORKER)


def companions(job: Job, observed: Observed) -> Sequence[Companion]:
    keys = observed.other(SECRET, f"{job.name}-ssh")
    if keys is None:
        key = base64.b64encode(observed.seed()).decode()
        keys = children.companion(job, SECRET, f"{job.name}-ssh", {"data": {"ssh-privatekey": key}})
    config = children.companion(job, CONFIG_MAP, f"{job.name}-hosts", {"data": {"hostfile": hosts(job)}})
    return [Companion(config), Companion(keys, once=True, outlives=True)]


def may_start(_job: Job, replica: Replica, states: Sequence[ReplicaState]) -> bool:
    if replica.role.name == WORKER:
        return True
    return all(state.phase in (RUNNING, SUCCEEDED) for state in states if state.replica.role.name == WORKER)


def environment(job: Job, replica: Replica, _ports: Ports) -> Mapping[str, str]:
    """Where the list of hosts is, once the template mounts the ConfigMap."""
    return {"HOSTFILE": "/etc/hosts.d/hostfile"} if replica.role.name == LAUNCHER else {"LAUNCHED_BY": job.name}


def verdict(job: Job, states: Sequence[ReplicaState]) -> Verdict:
    launcher = next(state for state in states if state.replica.role.name == LAUNCHER)
    return Verdict(
        succeeded=f"{job.name} is done." if launcher.phase == SUCCEEDED else "",
        running=f"{job.name} runs." if launcher.phase == RUNNING else "",
    )


def master(job: Job) -> Replica | None:
    role = job.role(LAUNCHER)
    return job.replica(role, 0) if role is not None else None


def failed(job: Job, role: Role, count: int) -> str:
    return f"{job.name} has failed: {count} {role.name}"


def companion_kinds(_settings: PlatformSettings) -> Sequence[Kind]:
    return (CONFIG_MAP, SECRET)


JOB = KubeflowKind(
    kind=LAUNCHERJOB,
    field="launcherReplicaSpecs",
    roles=(LAUNCHER, WORKER),
    containers=("main",),
    port=Port("ssh", 22, for_each_replica=True),
    restart=NEVER,
    environment=environment,
    master=master,
    verdict=verdict,
    failed=failed,
    may_start=may_start,
    companions=companions,
    companion_kinds=companion_kinds,
)
