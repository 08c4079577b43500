"""From the pod of a served object to its phase and conditions: pure, and recomputed from what is seen each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from danlu.diagnose.cause import Cause, said, say
from danlu.diagnose.contract import OF_PROGRAMS, SUBSTITUTED
from danlu.diagnose.evidence import Evidence
from danlu.diagnose.owners import replaced_images
from danlu.diagnose.pods import explain_pod
from danlu.kinds._served.observation import Observed
from danlu.kinds.webapp import CREATING, PAUSED, STARTED, STARTING
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.objects import copy
from danlu.runtime.reconcile import EventNote

INITIALIZING, RUNNING, SUSPENDED = "Initializing", "Running", "Suspended"


@dataclass(frozen=True, slots=True)
class PagePhase:
    phase: str
    ready: bool
    reason: str
    message: str


def phase_of(word: str, observed: Observed, suspended: bool, refused: str = "") -> PagePhase:
    """`word` is what the object calls itself in messages: Notebook, TensorBoard. `refused`: why nothing can start."""
    if refused:
        return PagePhase(INITIALIZING, False, "NotSupported", refused)
    if suspended:
        return PagePhase(SUSPENDED, False, PAUSED, say("DL-SERVED-SUSPENDED", word=word))
    if observed.missing:
        named = ", ".join(str(one) for one in observed.missing)
        one = len(observed.missing) == 1
        told = say("DL-NEEDS", name=named) if one else say("DL-NEEDS", names=named)
        return PagePhase(INITIALIZING, False, "NotFound", told)
    pod = observed.pod
    if pod is None:
        return PagePhase(INITIALIZING, False, CREATING, say("DL-SERVED-CREATING", word=word))
    if conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready"):
        return PagePhase(RUNNING, True, "Ready", say("DL-SERVED-READY", word=word))
    reason, message = trouble(pod, observed.unbound)
    return PagePhase(INITIALIZING, False, reason or STARTED, message or say("DL-SERVED-STARTING", word=word))


def trouble(pod: Object, unbound: Mapping[str, Cause]) -> tuple[str, str]:
    """Why the pod does not run: reason and message; both empty while it starts."""
    found = [cause for cause in explain_pod(pod, Evidence(unbound=unbound), starting=False) if cause.keeps]
    if not found:
        return "", ""
    ended = found[0].code in OF_PROGRAMS
    return "ContainerFailed" if ended else found[0].reason, said(found[:1])


def base_status(obj: Object, word: str, stand: PagePhase, observed: Observed, now: datetime) -> Object:
    """phase, pod, and the conditions Ready and Suspended."""
    found: list[Object] = copy((obj.get("status") or {}).get("conditions") or [])
    stamp = rfc3339(now)
    conditions.set(found, "Ready", _word(stand.ready), stand.reason, stand.message, stamp)
    asleep = stand.phase == SUSPENDED
    text = say("DL-SERVED-SUSPENDED" if asleep else "DL-SERVED-RUNNING", word=word)
    if asleep or stand.ready:
        conditions.set(found, "Suspended", _word(asleep), "", text, stamp)
    else:
        conditions.remove(found, "Suspended")
    _note_images(found, observed.pod, stamp)
    status: Object = {"phase": stand.phase, "conditions": found}
    if observed.pod is not None:
        meta = observed.pod["metadata"]
        status["pod"] = {
            "phase": (observed.pod.get("status") or {}).get("phase", "Unknown"),
            "reference": {"name": meta["name"], "uid": meta["uid"]},
        }
    return status


def _note_images(found: list[Object], pod: Object | None, stamp: str) -> None:
    if pod is None:
        return
    if causes := replaced_images([pod]):
        conditions.set(found, SUBSTITUTED, "True", SUBSTITUTED, said(causes), stamp)
    else:
        conditions.remove(found, SUBSTITUTED)


def transitions(obj: Object, word: str, stand: PagePhase) -> Sequence[EventNote]:
    """Events only for what is new: a phase, or a reason why it is not ready."""
    before = obj.get("status") or {}
    name = obj["metadata"]["name"]
    found = []
    if not before:
        found.append(EventNote("Normal", "Created", say("DL-SERVED-CREATED", word=word, name=name)))
    elif before.get("phase") != stand.phase:
        text = say("DL-SERVED-PHASE", word=word, name=name, before=before.get("phase"), after=stand.phase)
        found.append(EventNote("Normal", "PhaseTransformed", text))
    quiet = (*STARTING, PAUSED, "Ready")
    told = conditions.get(before.get("conditions"), "Ready") or {}
    if stand.reason not in quiet and told.get("message") != stand.message:
        found.append(EventNote("Warning", stand.reason, stand.message))
    return found


def _word(value: bool) -> str:
    return "True" if value else "False"
