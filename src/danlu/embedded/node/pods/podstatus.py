"""The status of a pod, computed from what is known of its containers, as kubelet computes it. Pure: no I/O.

Whatever others wrote into the status (PodScheduled, readiness gates, DisruptionTarget) is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from danlu.embedded.node.sandbox.processes import LOST
from danlu.embedded.node.sandbox.shim import Exit
from danlu.meta import conditions as conditions_of
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)
EPOCH = "1970-01-01T00:00:00Z"
MESSAGE_LIMIT = 4096


@dataclass(slots=True)
class Ended:
    """A run that is over, as `terminated` tells it."""

    exit: Exit
    container_id: str
    message: str = ""

    def state(self) -> Object:
        found: Object = {"exitCode": self.exit["exit_code"], "reason": self.exit["reason"]}
        message = self.message or self.exit["message"]
        if message:
            found["message"] = message[:MESSAGE_LIMIT]
        started = self.exit["started_at"]
        found["startedAt"] = rfc3339(started) if started else EPOCH
        found["finishedAt"] = rfc3339(self.exit["finished_at"])
        found["containerID"] = self.container_id
        return {"terminated": found}


@dataclass(slots=True)
class View:
    """What the pod worker knows of one container."""

    name: str
    running_since: float | None = None
    container_id: str = ""
    ended: Ended | None = None  # how the newest run ended; None while it runs or before there was one
    previous: Ended | None = None  # the run before
    waiting: tuple[str, str] | None = ("ContainerCreating", "")  # reason and message, while nothing runs and it should
    restarts: int = 0
    image_id: str = ""
    started: bool = False  # the startup probe, where there is one, has passed
    ready: bool = False
    spec: Object = field(default_factory=dict)  # its container spec

    @property
    def is_running(self) -> bool:
        return self.running_since is not None

    @property
    def is_sidecar(self) -> bool:
        return self.spec.get("restartPolicy") == "Always"

    def status(self) -> Object:
        found: Object = {
            "name": self.name,
            "image": self.spec.get("image", ""),
            "imageID": self.image_id,
            "restartCount": self.restarts,
            "ready": self.ready and (self.is_running or self.is_done_well),
            "started": self.started and self.is_running,
            "state": {},
            "lastState": {},
        }
        if self.container_id:
            found["containerID"] = self.container_id
        if self.running_since is not None:
            found["state"] = {"running": {"startedAt": rfc3339(self.running_since)}}
            last = self.previous
        elif self.waiting is not None:
            reason, message = self.waiting
            found["state"] = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
            last = self.ended
        elif self.ended is not None:
            found["state"] = self.ended.state()
            last = self.previous
        else:
            found["state"] = {"waiting": {"reason": "ContainerCreating"}}
            last = None
        if last is not None:
            found["lastState"] = last.state()
        resources = self.spec.get("resources") or {}
        if self.is_running and (resources.get("requests") or resources.get("limits")):
            found["resources"] = {k: v for k, v in resources.items() if k in ("requests", "limits")}
            if resources.get("requests"):
                found["allocatedResources"] = resources["requests"]
        return found

    def debugging_status(self) -> Object:
        """Of a container that nobody waits for: neither ready nor started mean anything."""
        found = {key: value for key, value in self.status().items() if key != "started"}
        return {**found, "ready": False}

    @property
    def is_done_well(self) -> bool:
        return self.waiting is None and self.ended is not None and self.ended.exit["exit_code"] == 0

    @property
    def has_failed(self) -> bool:
        return self.waiting is None and self.ended is not None and self.ended.exit["exit_code"] != 0


@dataclass(slots=True)
class PodView:
    """What the pod worker knows of its pod."""

    init: list[View]
    main: list[View]
    debugging: list[View] = field(default_factory=list)  # ephemeral containers
    pod_ip: str = ""
    host_ip: str = ""
    started_at: float = 0.0  # when the node took the pod up
    sandbox_ready: bool = False
    verdict: tuple[str, str] | None = None  # reason, message: the node itself ended the pod (Evicted, DeadlineExceeded)
    finished: bool = False  # nothing runs and nothing will

    def all(self) -> list[View]:
        return [*self.init, *self.main]


def restart_policy(pod_spec: Object, container: Object) -> str:
    return str(container.get("restartPolicy") or pod_spec.get("restartPolicy") or "Always")


def wants_restart(spec: Object, view: View, is_init: bool) -> bool:
    """Whether a run that ended is to be followed by another."""
    if view.ended is None:
        return True
    policy = restart_policy(spec, view.spec)
    code = view.ended.exit["exit_code"]
    for rule in view.spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        within = code in (codes.get("values") or ())
        if within == (codes.get("operator", "In") == "In"):
            return bool(rule.get("action") == "Restart")
    if is_init and not view.is_sidecar:
        return code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def phase(spec: Object, view: PodView) -> str:
    if view.verdict is not None:
        # The phase of an ended pod is told when nothing of it runs any more.
        return FAILED if view.finished else (RUNNING if any(c.is_running for c in view.main) else PENDING)
    for init in view.init:
        if init.is_sidecar:
            if not (init.started or init.ended or any(c.container_id for c in view.main)):
                return PENDING
        elif not init.is_done_well:
            return FAILED if init.has_failed and not wants_restart(spec, init, True) else PENDING
    if any(c.running_since is None and c.ended is None for c in view.main):
        return PENDING
    if any(c.is_running for c in view.main):
        return RUNNING
    if any(wants_restart(spec, c, False) for c in view.main):
        return RUNNING
    if any(c.is_sidecar and c.is_running for c in view.init):
        return RUNNING
    return FAILED if any(c.has_failed for c in view.main) else SUCCEEDED


def compute(pod: Object, view: PodView, now: float) -> Object:
    """The whole new status."""
    old = pod.get("status") or {}
    spec = pod["spec"]
    current = phase(spec, view)
    status: Object = {key: value for key, value in old.items() if key in KEPT}
    status["phase"] = current
    if pod["metadata"].get("generation"):
        status["observedGeneration"] = pod["metadata"]["generation"]
    if view.verdict is not None and view.finished:
        status["reason"], status["message"] = view.verdict
    if view.started_at:
        status["startTime"] = rfc3339(view.started_at)
    if view.host_ip:
        status["hostIP"], status["hostIPs"] = view.host_ip, [{"ip": view.host_ip}]
    if view.pod_ip and view.sandbox_ready:
        status["podIP"], status["podIPs"] = view.pod_ip, [{"ip": view.pod_ip}]
    status["qosClass"] = old.get("qosClass") or qos_class(spec)
    status["conditions"] = _conditions(pod, old, view, current, rfc3339(now))
    if view.init:
        status["initContainerStatuses"] = [c.status() for c in view.init]
    status["containerStatuses"] = [c.status() for c in view.main]
    if view.debugging:
        status["ephemeralContainerStatuses"] = [c.debugging_status() for c in view.debugging]
    return status


KEPT = ("nominatedNodeName", "ephemeralContainerStatuses", "resize", "resourceClaimStatuses", "hostIP", "hostIPs")


def _conditions(pod: Object, old: Object, view: PodView, current: str, now: str) -> list[Object]:
    found = [dict(condition) for condition in old.get("conditions") or ()]
    generation = pod["metadata"].get("generation")
    more = {"observedGeneration": generation} if generation else {}

    def put(kind: str, verdict: tuple[bool, str, str]) -> None:
        conditions_of.set(found, kind, "True" if verdict[0] else "False", verdict[1], verdict[2], now, **more)

    put("PodReadyToStartContainers", (view.sandbox_ready and current not in TERMINAL, "", ""))
    put("Initialized", _initialized(view, current))
    containers_ready = _containers_ready(view, current)
    put("Ready", _ready(pod, found, containers_ready))
    put("ContainersReady", containers_ready)
    if conditions_of.get(found, "PodScheduled") is None:
        put("PodScheduled", (True, "", ""))
    return found


def _initialized(view: PodView, current: str) -> tuple[bool, str, str]:
    if current == SUCCEEDED:
        return True, "PodCompleted", ""
    if any(c.container_id for c in view.main):
        return True, "", ""
    incomplete = [c.name for c in view.init if not (c.started if c.is_sidecar else c.is_done_well)]
    if incomplete:
        return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"
    return True, "", ""


def _containers_ready(view: PodView, current: str) -> tuple[bool, str, str]:
    if current == SUCCEEDED:
        return False, "PodCompleted", ""
    if current == FAILED:
        return False, "PodFailed", ""
    unready = [c.name for c in view.all() if (c.is_sidecar or c in view.main) and not (c.ready and c.is_running)]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, "", ""


def _ready(pod: Object, known: list[Object], containers: tuple[bool, str, str]) -> tuple[bool, str, str]:
    if not containers[0]:
        return containers
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        condition = conditions_of.get(known, gate["conditionType"])
        if condition is None:
            problems.append(f'corresponding condition of pod readiness gate "{gate["conditionType"]}" does not exist.')
        elif condition.get("status") != "True":
            problems.append(
                f'the status of pod readiness gate "{gate["conditionType"]}" is not "True", but {condition["status"]}'
            )
    return (False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else (True, "", "")


def qos_class(spec: Object) -> str:
    guaranteed, any_stated = True, False
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            limit, request = limits.get(name), requests.get(name, limits.get(name))
            any_stated |= limit is not None or request is not None
            guaranteed &= limit is not None and request == limit
    if not any_stated:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def rejected(pod: Object, reason: str, message: str, now: float) -> Object:
    """The status of a pod that the node refuses to run."""
    old = pod.get("status") or {}
    return {
        "phase": FAILED,
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": rfc3339(now),
        "qosClass": old.get("qosClass") or qos_class(pod["spec"]),
        "conditions": old.get("conditions") or [],
    }


def is_terminal(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in TERMINAL


def was_lost(ended: Ended) -> bool:
    return ended.exit["reason"] == LOST
