"""The columns of `kubectl get pods`: one word for everything that can happen to a pod's containers."""

from __future__ import annotations

from danlu.meta import clock, conditions
from danlu.meta.kind import Object

NONE = "<none>"
NODE_LOST = "NodeLost"


def _restartable(pod: Object) -> set[str]:
    """Names of the init containers that keep running beside the others (sidecars)."""
    return {
        container.get("name") or ""
        for container in (pod.get("spec") or {}).get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }


def _initializing(pod: Object, sidecars: set[str]) -> tuple[str, int]:
    """(the word for the init container that holds the pod up, "" when none does; sidecars that are ready so far)."""
    status = pod.get("status") or {}
    total = len((pod.get("spec") or {}).get("initContainers") or ())
    ready = 0
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            return f"Init:{_ended(terminated)}", ready
        reason = waiting.get("reason") or ""
        if reason and reason != "PodInitializing":
            return f"Init:{reason}", ready
        return f"Init:{index}/{total}", ready
    return "", ready


def _ended(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _runs_containers(pod: Object, held_up: str) -> bool:
    """Whether the main containers tell the story: no init container holds them up, or none does any more."""
    return not held_up or conditions.is_true((pod.get("status") or {}).get("conditions"), "Initialized")


def _of_containers(pod: Object, reason: str) -> str:
    status = pod.get("status") or {}
    running, failed = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif terminated is not None:
            reason = _ended(terminated)
            if terminated.get("exitCode"):
                failed = reason
        elif container.get("ready") and state.get("running") is not None:
            running = True
    if reason != "Completed":
        return reason
    if running and conditions.is_true(status.get("conditions"), "Ready"):
        return "Running"
    return failed or ("NotReady" if running else reason)


def status_of(pod: Object) -> str:
    status = pod.get("status") or {}
    phase = status.get("phase") or ""
    reason = status.get("reason") or phase
    scheduled = conditions.get(status.get("conditions"), "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    held_up, _ = _initializing(pod, _restartable(pod))
    reason = held_up or reason
    if _runs_containers(pod, held_up):
        reason = _of_containers(pod, reason)
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        if status.get("reason") == NODE_LOST:
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(reason)


def ready_of(pod: Object) -> str:
    sidecars = _restartable(pod)
    total = len((pod.get("spec") or {}).get("containers") or ()) + len(sidecars)
    held_up, ready = _initializing(pod, sidecars)
    if _runs_containers(pod, held_up):
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            state = container.get("state") or {}
            if (state.get("waiting") or {}).get("reason") or state.get("terminated") is not None:
                continue
            ready += bool(container.get("ready") and state.get("running") is not None)
    return f"{ready}/{total}"


def restarts_of(pod: Object) -> str:
    """`3 (5m ago)`. Init containers count only while they are what is happening; sidecars always do."""
    status = pod.get("status") or {}
    sidecars = _restartable(pod)
    held_up, _ = _initializing(pod, sidecars)
    running = _runs_containers(pod, held_up)
    counted = []
    for container in status.get("initContainerStatuses") or ():
        if not running or container.get("name") in sidecars:
            counted.append(container)
        if held_up and not running and _is_current(container):
            break
    if running:
        counted += status.get("containerStatuses") or ()
    restarts = sum(container.get("restartCount") or 0 for container in counted)
    last = max(
        (((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "" for container in counted),
        default="",
    )
    return f"{restarts} ({clock.age(last)} ago)" if restarts and last else str(restarts)


def _is_current(container: Object) -> bool:
    terminated = (container.get("state") or {}).get("terminated")
    return terminated is None or bool(terminated.get("exitCode"))


def ip_of(pod: Object) -> str:
    status = pod.get("status") or {}
    addresses = status.get("podIPs") or ()
    return (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE


def node_of(pod: Object) -> str:
    return (pod.get("spec") or {}).get("nodeName") or NONE


def nominated_node_of(pod: Object) -> str:
    return (pod.get("status") or {}).get("nominatedNodeName") or NONE


def readiness_gates_of(pod: Object) -> str:
    gates = (pod.get("spec") or {}).get("readinessGates") or ()
    if not gates:
        return NONE
    held = (pod.get("status") or {}).get("conditions")
    passed = sum(conditions.is_true(held, gate.get("conditionType") or "") for gate in gates)
    return f"{passed}/{len(gates)}"
