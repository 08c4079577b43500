"""A TensorStack job's status: what is told of its pods, in TensorStack's words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.diagnose import stated
from danlu.kinds._served.tensorboardspec import TENSORBOARD
from danlu.kinds._training.job import Job
from danlu.kinds._training.replicas import MISSING, ReplicaState
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.said import CAUSES, carried

PENDING, RUNNING, PAUSED, RESUMING = "Pending", "Running", "Paused", "Resuming"
SUCCEEDED, FAILED = "Succeeded", "Failed"

INITIALIZED = stated("DL-JOB-INITIALIZED")
ALL_WELL = stated("DL-JOB-ALL-WELL")
STILL_RUNNING = stated("DL-JOB-GOES-ON")
DONE = stated("DL-JOB-FINISHED")

COUNTS = ("creating", "pending", "running", "succeeded", "failed", "unknown", "deleted")


def tasks(job: Job, states: Sequence[ReplicaState], before: Sequence[Object], *, ended: bool) -> list[Object]:
    """`ended`: pods that are not there are gone for good, not still to come. What was known of those is kept."""
    known = {one["name"]: one for task in before for one in task.get("replicas") or ()}
    counted = {task["type"]: int(task.get("restartCount") or 0) for task in before}
    found = []
    for role in job.roles:
        mine = [state for state in states if state.replica.role.name == role.name]
        found.append(
            {
                "type": role.name,
                # The count lies in the services, which go at the end.
                "restartCount": max(sum(state.replaced for state in mine), counted.get(role.name, 0)),
                "replicas": [_replica(state, known.get(state.name) or {}, ended) for state in mine],
            }
        )
    return found


def aggregate(told: Sequence[Object]) -> Object:
    counts = dict.fromkeys(COUNTS, 0)
    for task in told:
        for replica in task["replicas"]:
            counts[replica["phase"].lower()] += 1
    return counts


def _replica(state: ReplicaState, before: Object, ended: bool) -> Object:
    found: Object = {"name": state.name}
    if state.pod is None:
        if before.get("uid"):
            found["uid"] = before["uid"]
        found["phase"] = "Deleted" if ended else "Creating"
        if before.get("containers") and ended:
            found["containers"] = before["containers"]
        return found
    found["uid"] = state.pod["metadata"]["uid"]
    found["phase"] = pod_phase(state.pod)
    containers = [_container(one) for one in (state.pod.get("status") or {}).get("containerStatuses") or ()]
    if containers:
        found["containers"] = containers
    return found


def pod_phase(pod: Object) -> str:
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    return "Creating" if phase == "Pending" and not pod["spec"].get("nodeName") else str(phase)


def _container(status: Object) -> Object:
    state = status.get("state") or {}
    for key, word in (("terminated", "Terminated"), ("running", "Running"), ("waiting", "Waiting")):
        if key in state:
            found: Object = {"name": status["name"], "state": word}
            if key == "terminated":
                found["exitCode"] = state[key].get("exitCode", 0)
            return found
    return {"name": status["name"], "state": "Unknown"}


def said(status: Object) -> tuple[object, ...]:
    """What people wait for to change; the rest are numbers."""
    found = status.get("conditions") or ()
    return (status.get("phase"), *((one.get("type"), one.get("status"), one.get("reason")) for one in found))


def tensorboard(child: Object | None, name: str) -> Object:
    """The DependentStatus of the job's TensorBoard."""
    if child is None:
        note = stated("DL-DEPENDENT-CREATING", kind=TENSORBOARD.kind, name=name)
        return {
            "name": name,
            "ready": False,
            "reason": "DependentCreating",
            "action": "Create",
            "note": note,
            "type": "Normal",
            CAUSES: carried(note),
        }
    meta = child["metadata"]
    told = conditions.get((child.get("status") or {}).get("conditions"), "Ready") or {}
    ready = told.get("status") == "True"
    quiet = told.get("reason") in (None, "Creating", "Starting", "Suspended")
    causes = {CAUSES: told[CAUSES]} if told.get(CAUSES) else {}
    return {
        "name": name,
        "dependent": {
            "apiVersion": child["apiVersion"],
            "kind": child["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        },
        "ready": ready,
        "reason": "DependentReady" if ready else "DependentNotReady",
        "action": "NOP",
        "note": told.get("message") or "",
        "type": "Normal" if ready or quiet else "Warning",
        **causes,
    }


class JobConditions:
    """All of them are always told; times move when the status does."""

    def __init__(self, present: Sequence[Object] | None, stamp: str) -> None:
        self.items = [dict(one) for one in present or ()]
        self._stamp = stamp

    def set(self, type: str, status: bool, reason: str, message: str) -> bool:
        return conditions.set(self.items, type, "True" if status else "False", reason, message, self._stamp)

    def is_true(self, type: str) -> bool:
        return conditions.is_true(self.items, type)

    def has(self, type: str) -> bool:
        return conditions.get(self.items, type) is not None

    def succeed(self) -> None:
        self.set("Running", False, SUCCEEDED, DONE)
        self.set("Failed", False, SUCCEEDED, DONE)
        self.set("Completed", True, SUCCEEDED, DONE)
        self.set("ReplicaFailure", False, "Finished", DONE)

    def fail(self, message: str) -> None:
        self.set("Running", False, FAILED, message)
        self.set("Failed", True, FAILED, message)
        self.set("Completed", True, FAILED, message)

    def go_on(self, states: Sequence[ReplicaState], waiting: tuple[str, str] | None, failure: str) -> None:
        """`waiting`: reason and message of what is not running yet; `failure`: what is known of pods that failed."""
        if not any(state.phase == MISSING for state in states):
            self.set("Initialized", True, "-", INITIALIZED)
        if failure:
            self.set("Running", False, "ErrorInPod", failure)
            self.set("ReplicaFailure", True, "ErrorInPod", failure)
        else:
            reason, message = waiting or ("-", ALL_WELL)
            self.set("Running", waiting is None, reason, message)
            self.set("ReplicaFailure", False, reason, message)
        self.set("Completed", False, "NotFinished", STILL_RUNNING)
