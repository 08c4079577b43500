"""Why one pod does not run: the only place that works it out.

Asked in order, and the first answer counts: was it ended, do its containers say something, has it a node, do its events
say something. Warnings come beside that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from danlu.diagnose import room
from danlu.diagnose.cause import Cause, causes_in, worst_first
from danlu.diagnose.claims import why_unbound
from danlu.diagnose.evidence import NOTHING, Evidence, message_of
from danlu.diagnose.reading import recognise, without_preemption
from danlu.meta import conditions
from danlu.meta.kind import Object

IMAGE_REASONS = (
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
    "RegistryUnavailable",
)  # fmt: skip
STARTS = ("RunContainerError", "CreateContainerError", "StartError", "ContainerCannotRun", "PostStartHookError")
OF_IMAGES = (
    "DL-ENVIRONMENT-NOT-BUILT", "DL-ENVIRONMENT-UNDESCRIBED", "DL-IMAGE-NOT-LISTED", "DL-PULL-NOT-FOUND",
    "DL-PULL-DENIED", "DL-PULL-UNREACHABLE", "DL-PULL-FAILED", "DL-PULL-OFF", "DL-PULL-NEVER",
    "DL-IMAGE-NEEDS-NAMESPACES", "DL-PREFER-RULES",
)  # fmt: skip
OF_NODE = ("DL-NO-COMMAND",)  # why the node of `danlu up` cannot make a container
SUBSTITUTED = ("DL-IMAGE-UNKNOWN", "DL-IMAGE-NOT-BUILT")
HARMLESS = ("ContainerCreating", "PodInitializing", "")  # a container waits like this for a moment before every start
SIGNALS = (137, 143)
NOT_FOUND = 127  # by this a shell says that there is no such command
LINE = 300  # characters of a program's last line


def explain_pod(pod: Object, evidence: Evidence, *, starting: bool = True) -> list[Cause]:
    """The worst first. `starting`: also that it is on its way, which is no trouble."""
    if _phase(pod) == "Succeeded":
        return []
    decisive = _ended(pod) or _of_containers(pod, evidence) or _without_node(pod, evidence) or _told(pod, evidence)
    found = [decisive] if decisive else [*_starting(pod, evidence)] if starting else []
    said = decisive.params.get("replaced") if decisive else None
    beside = [one for one in substituted(pod, evidence) if one.carried() != said]
    return worst_first([*found, *beside])


def is_silent(pod: Object) -> bool:
    """It was given a node and has not begun to run, and its status does not tell why."""
    waits = _phase(pod) == "Pending" and bool((pod.get("spec") or {}).get("nodeName"))
    return waits and not any(_stuck(pod))


def ended_container(pod: Object, status: Object, ended: Object) -> Cause:
    """Why a container ended badly."""
    name, container = pod["metadata"]["name"], str(status.get("name"))
    code, reason = ended.get("exitCode"), str(ended.get("reason") or "")
    said = str(ended.get("message") or "")
    told: dict[str, Any] = {"pod": name, "container": container}
    about = f"Pod/{name}"
    if reason == "OOMKilled":
        limit = _limit(pod, container)
        return Cause("DL-OOM", {**told, **({"limit": limit} if limit else {})}, about, reason)
    known = recognise(said)
    if known and known[0] == "DL-COMMAND":
        told |= {**known[1], "message": said.strip(), **_replaced(pod, status)}
        return Cause("DL-COMMAND", told, about, reason or "StartError")
    told["exit_code"] = code
    if line := last_line(said):
        told["line"] = line
    if code == NOT_FOUND:
        return Cause("DL-COMMAND", {**told, **_replaced(pod, status)}, about, reason or "Error")
    if reason in STARTS:
        return Cause("DL-NOT-STARTED", {**told, "message": said.strip() or reason}, about, reason)
    return Cause("DL-KILLED" if code in SIGNALS else "DL-EXIT", told, about, reason or "Error")


def last_line(text: str) -> str:
    """Of what a program wrote, the last line says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LINE] if lines else ""


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _ended(pod: Object) -> Cause | None:
    status = pod.get("status") or {}
    reason, name = str(status.get("reason") or ""), pod["metadata"]["name"]
    if reason == "Evicted" or reason.startswith("Preempt"):
        told = {"pod": name, "message": str(status.get("message") or reason)}
        return Cause("DL-PREEMPTED", told, f"Pod/{name}", reason)
    return None


def _of_containers(pod: Object, evidence: Evidence) -> Cause | None:
    for status, waiting in _stuck(pod):
        return _waiting(pod, status, waiting, evidence)
    for status in _statuses(pod):
        ended = (status.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            return ended_container(pod, status, ended)
    if _phase(pod) != "Failed":
        return None
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    message = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    reason = str(status.get("reason") or "Failed")
    if reason != "Failed" and not _statuses(pod):
        told = {"pod": name, "message": str(status.get("message") or reason)}
        return Cause("DL-POD-REFUSED", told, f"Pod/{name}", reason)
    return Cause("DL-POD-FAILED", {"pod": name, **({"message": message} if message else {})}, f"Pod/{name}", reason)


def _waiting(pod: Object, status: Object, waiting: Object, evidence: Evidence) -> Cause:
    name, reason = pod["metadata"]["name"], str(waiting.get("reason"))
    message, about = str(waiting.get("message") or reason), f"Pod/{name}"
    before = (status.get("lastState") or {}).get("terminated") or {}
    if reason == "CrashLoopBackOff" and before:
        cause = ended_container(pod, status, before)
        code = "DL-CRASH" if cause.code == "DL-EXIT" else cause.code
        return Cause(code, cause.params, about, reason)
    if reason in IMAGE_REASONS:
        for cause in _carried(pod, evidence, OF_IMAGES):
            return Cause(cause.code, cause.params, about, reason)
        told = {"pod": name, "image": str(status.get("image") or ""), "message": message}
        return Cause("DL-IMAGE", told, about, reason)
    for cause in _carried(pod, evidence, OF_NODE):
        return Cause(cause.code, cause.params, about, reason)
    told = {"pod": name, "container": str(status.get("name")), "message": message, **_replaced(pod, status)}
    known = recognise(message)
    if known and known[0] == "DL-COMMAND":
        return Cause("DL-COMMAND", {**told, **known[1]}, about, reason)
    if known and known[0] == "DL-CONFIG":
        return Cause("DL-CONFIG", {"pod": name, **known[1]}, about, reason)
    return Cause("DL-NOT-STARTED" if reason in STARTS else "DL-CONFIG-OTHER", told, about, reason)


def _without_node(pod: Object, evidence: Evidence) -> Cause | None:
    scheduled = conditions.get((pod.get("status") or {}).get("conditions"), "PodScheduled")
    if not scheduled or scheduled.get("status") != "False":
        return None
    name = pod["metadata"]["name"]
    about, reason = f"Pod/{name}", str(scheduled.get("reason") or "Unschedulable")
    for cause in causes_in(pod):  # Danlu's own scheduler says it in codes, too
        return Cause(cause.code, {**cause.params, "pod": cause.params.get("pod", name)}, about, reason)
    if unbound := _unbound(pod, evidence):
        return Cause(unbound.code, unbound.params, unbound.about, reason)
    message = without_preemption(str(scheduled.get("message") or reason))
    code, told = recognise(message) or ("DL-UNSCHEDULABLE", {})
    if code == "DL-ROOM":
        if never := room.never(pod, evidence.nodes, message):
            return never
        told = {"asked": room.asked(pod)}
    elif not code.startswith(("DL-CLAIM", "DL-NODE", "DL-CONFIG")):
        code = "DL-UNSCHEDULABLE"
    return Cause(code, {"pod": name, **{k: v for k, v in told.items() if v}, "message": message}, about, reason)


def _unbound(pod: Object, evidence: Evidence) -> Cause | None:
    """Of its claims, the first that waits for what nobody will bring: a scheduler says only that they are unbound."""
    by_name = {claim["metadata"]["name"]: claim for claim in evidence.claims}
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        if why := evidence.unbound.get(name):
            return why
        if name in by_name and (cause := why_unbound(by_name[name], evidence.classes)):
            return cause
    return None


def _told(pod: Object, evidence: Evidence) -> Cause | None:
    """That a volume cannot be mounted is told by an event only."""
    if _phase(pod) != "Pending":
        return None
    name = pod["metadata"]["name"]
    for event in evidence.about(pod["metadata"].get("uid")):
        message, reason = message_of(event), str(event.get("reason") or "")
        if event.get("type") == "Normal" or any(cause.code in SUBSTITUTED for cause in causes_in(event)):
            continue
        known = recognise(message)
        if known and known[0] in ("DL-CLAIM-MISSING", "DL-CLAIM-PENDING", "DL-CONFIG", "DL-IMAGE", "DL-COMMAND"):
            return Cause(known[0], {"pod": name, **known[1], "message": message}, f"Pod/{name}", reason)
        if reason in ("FailedMount", "FailedAttachVolume"):
            return Cause("DL-MOUNT", {"pod": name, "message": message}, f"Pod/{name}", reason)
    return None


def _starting(pod: Object, evidence: Evidence) -> Iterator[Cause]:
    if _phase(pod) != "Pending":
        return
    name = pod["metadata"]["name"]
    latest = next(iter(evidence.about(pod["metadata"].get("uid"))), None)
    waiting = [w for status in _statuses(pod) if (w := (status.get("state") or {}).get("waiting"))]
    message = next((w["message"] for w in waiting if w.get("message")), None)
    message = message or (message_of(latest) if latest else next((w.get("reason") for w in waiting), None)) or "Pending"
    yield Cause("DL-STARTING", {"pod": name, "message": str(message)}, f"Pod/{name}", "Starting")


def substituted(pod: Object, evidence: Evidence = NOTHING) -> list[Cause]:
    """It runs, and in another image than the one it names."""
    found = [*_carried(pod, evidence, SUBSTITUTED)]
    return [*{cause.sentence(): cause for cause in found}.values()]


def _carried(pod: Object, evidence: Evidence, codes: tuple[str, ...]) -> Iterator[Cause]:
    """Of what its node said of it, in the pod itself and in events."""
    for told in (pod, *evidence.about(pod["metadata"].get("uid"))):
        yield from (cause for cause in causes_in(told, f"Pod/{pod['metadata']['name']}") if cause.code in codes)


def _replaced(pod: Object, status: Object) -> dict[str, Any]:
    """That its image was replaced is the likely reason why its program is not there."""
    names = (status.get("image"), _container(pod, str(status.get("name"))).get("image"))
    found = (cause for cause in causes_in(pod) if cause.code in SUBSTITUTED and cause.params.get("image") in names)
    cause = next(found, None)
    return {"replaced": cause.carried()} if cause else {}


def _statuses(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _stuck(pod: Object) -> Iterator[tuple[Object, Object]]:
    """Containers that wait for a reason, each with that."""
    for one in _statuses(pod):
        waiting = (one.get("state") or {}).get("waiting") or {}
        if (waiting.get("reason") or "") not in HARMLESS:
            yield one, waiting


def _limit(pod: Object, container: str) -> str:
    return str(((_container(pod, container).get("resources") or {}).get("limits") or {}).get("memory") or "")


def _container(pod: Object, name: str) -> Object:
    spec = pod.get("spec") or {}
    found = (
        one for one in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())) if one["name"] == name
    )
    return next(found, {})
