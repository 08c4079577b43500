"""From the pod of a served object to its phase and conditions: pure, and recomputed from what is seen each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from danlu.kinds._served.observing import Observed
from danlu.kinds.mending import with_remedy
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.objects import copy
from danlu.runtime.reconcile import EventNote

INITIALIZING, RUNNING, SUSPENDED = "Initializing", "Running", "Suspended"


@dataclass(frozen=True, slots=True)
class Standing:
    phase: str
    ready: bool
    reason: str
    message: str


def standing(word: str, observed: Observed, suspended: bool, refused: str = "") -> Standing:
    """`word` is what the object calls itself in messages: Notebook, TensorBoard. `refused`: why nothing can start."""
    if refused:
        return Standing(INITIALIZING, False, "NotSupported", refused)
    if suspended:
        return Standing(SUSPENDED, False, "Suspended", f"The {word} is suspended")
    if observed.missing:
        named = ", ".join(str(one) for one in observed.missing)
        verb = "does" if len(observed.missing) == 1 else "do"
        return Standing(INITIALIZING, False, "NotFound", f"{named} {verb} not exist in this namespace")
    pod = observed.pod
    if pod is None:
        return Standing(INITIALIZING, False, "Creating", f"The {word} is being created")
    if conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready"):
        return Standing(RUNNING, True, "Ready", f"The {word} is ready to serve")
    reason, message = trouble(pod, observed.unbound)
    return Standing(INITIALIZING, False, reason or "Starting", message or f"The {word} is starting")


def trouble(pod: Object, unbound: Mapping[str, str]) -> tuple[str, str]:
    """Why the pod does not run, in the words of whoever knows: scheduler, node, or the program's last words."""
    status = pod.get("status") or {}
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        ended = (container.get("state") or {}).get("terminated") or (container.get("lastState") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            said = (ended.get("message") or "").strip()
            text = f"container {container['name']} ended with exit code {ended['exitCode']}"
            return "ContainerFailed", f"{text}: {said}" if said else text
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return waiting["reason"], with_remedy(waiting["reason"], waiting.get("message") or waiting["reason"])
    scheduled = conditions.get(status.get("conditions"), "PodScheduled")
    if scheduled and scheduled.get("status") == "False":
        text = with_remedy("", scheduled.get("message") or "the pod has no node yet")
        return scheduled.get("reason") or "Unschedulable", "; ".join(unbound.values()) or text
    return "", ""


def base_status(obj: Object, word: str, stand: Standing, observed: Observed, now: datetime) -> Object:
    """phase, pod, and the conditions Ready and Suspended."""
    found: list[Object] = copy((obj.get("status") or {}).get("conditions") or [])
    stamp = rfc3339(now)
    conditions.set(found, "Ready", _word(stand.ready), stand.reason, stand.message, stamp)
    asleep = stand.phase == SUSPENDED
    text = f"The {word} is suspended" if asleep else f"The {word} is running"
    if asleep or stand.ready:
        conditions.set(found, "Suspended", _word(asleep), "", text, stamp)
    else:
        conditions.remove(found, "Suspended")
    status: Object = {"phase": stand.phase, "conditions": found}
    if observed.pod is not None:
        meta = observed.pod["metadata"]
        status["pod"] = {
            "phase": (observed.pod.get("status") or {}).get("phase", "Unknown"),
            "reference": {"name": meta["name"], "uid": meta["uid"]},
        }
    return status


def transitions(obj: Object, word: str, stand: Standing) -> Sequence[EventNote]:
    """Events only for what is new: a phase, or a reason why it is not ready."""
    before = obj.get("status") or {}
    name = obj["metadata"]["name"]
    found = []
    if not before:
        found.append(EventNote("Normal", "Created", f"A {word} has been created: {name}"))
    elif before.get("phase") != stand.phase:
        text = f"{word} {name} transformed from {before.get('phase')} to {stand.phase}"
        found.append(EventNote("Normal", "PhaseTransformed", text))
    quiet = ("Creating", "Starting", "Suspended", "Ready")
    told = conditions.get(before.get("conditions"), "Ready") or {}
    if stand.reason not in quiet and told.get("message") != stand.message:
        found.append(EventNote("Warning", stand.reason, stand.message))
    return found


def _word(value: bool) -> str:
    return "True" if value else "False"
