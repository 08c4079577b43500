"""Why a replica does not start, and the last words of one that died."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from danlu.kinds import references
from danlu.kinds._training.observing import Observed
from danlu.kinds._training.replicas import FAILED, PENDING, ReplicaState, training_status
from danlu.kinds.mending import with_remedy
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM

LINES, CHARACTERS = 10, 1500  # of a log, in a message

# A container waits like this for a moment before every start.
HARMLESS = ("ContainerCreating", "PodInitializing", "")


@dataclass(frozen=True, slots=True)
class Trouble:
    reason: str
    message: str


def find(states: Iterable[ReplicaState], observed: Observed) -> Trouble | None:
    """The first thing that keeps the job from running; None when all is well or just starting."""
    for refusal in observed.refused:
        kind, name = refusal.obj["kind"], refusal.obj["metadata"]["name"]
        text = with_remedy("", refusal.message)
        return Trouble(f"FailedCreate{kind}", f"{kind} {name} cannot be created: {text}")
    found = [trouble for state in states if (trouble := _of_pod(state, observed))]
    if not found:
        return None
    first = found[0]
    more = sum(1 for one in found[1:] if one.reason == first.reason)
    return Trouble(first.reason, f"{first.message} (and {more} more)") if more else first


def _of_pod(state: ReplicaState, observed: Observed) -> Trouble | None:
    pod = state.pod
    if pod is None or state.phase not in (PENDING, "Running"):
        return None
    status = pod.get("status") or {}
    for one, waiting in _stuck(status):
        reason = waiting["reason"]
        text = _crashed(one) or with_remedy(reason, waiting.get("message") or reason)
        return Trouble(reason, f"Pod {state.name}, container {one.get('name')}: {text}")
    scheduled = conditions.get(status.get("conditions"), "PodScheduled")
    if scheduled and scheduled.get("status") == "False":
        text = _unbound(pod, observed) or with_remedy("", str(scheduled.get("message")))
        return Trouble(scheduled.get("reason") or "Unschedulable", f"Pod {state.name}: {text}")
    if state.phase == PENDING:
        about = [
            event
            for event in observed.events
            if (event.get("involvedObject") or {}).get("uid") == pod["metadata"]["uid"]
        ]
        if about:
            last = max(about, key=lambda event: str(event.get("lastTimestamp") or ""))
            text = with_remedy("", str(last.get("message")))
            return Trouble(last.get("reason") or "FailedMount", f"Pod {state.name}: {text}")
    return None


def is_silent(pod: Object) -> bool:
    """It was given a node and has not begun to run, and its status does not tell why."""
    status = pod.get("status") or {}
    waits = (status.get("phase") or PENDING) == PENDING and bool(pod["spec"].get("nodeName"))
    return waits and not any(_stuck(status))


def _stuck(status: Object) -> Iterator[tuple[Object, Object]]:
    """Containers that wait for a reason, each with that."""
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (one.get("state") or {}).get("waiting") or {}
        if (waiting.get("reason") or "") not in HARMLESS:
            yield one, waiting


def _crashed(status: Object) -> str:
    """What it said when it died, rather than how long the node waits before it starts it again."""
    ended = (status.get("lastState") or {}).get("terminated") or {}
    if (status.get("state") or {})["waiting"].get("reason") != "CrashLoopBackOff" or not ended:
        return ""
    head = f"ended with exit code {ended.get('exitCode')} and is started again and again"
    said = tail(ended.get("message") or "")
    return f"{head}; its last lines:\n{said}" if said else head


def _unbound(pod: Object, observed: Observed) -> str:
    for need in references.of_pod(pod["spec"]):
        if need.kind == PERSISTENT_VOLUME_CLAIM and need.name in observed.unbound:
            return observed.unbound[need.name]
    return ""


def last_words(states: Iterable[ReplicaState], container: str) -> str:
    """Who died first, with which code, and the end of its log."""
    dead = [state for state in states if state.phase == FAILED or state.down]
    if not dead:
        return ""
    first = min(dead, key=lambda state: _ended(state.pod, container))
    return _words(first, container)


def _words(state: ReplicaState, container: str) -> str:
    terminated = _terminated(state.pod, container)
    if terminated is None:
        status = (state.pod or {}).get("status") or {}
        why = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
        return f"Pod {state.name} failed" + (f": {why}" if why else "") + "."
    said = tail(terminated.get("message") or "")
    why = terminated.get("reason") or ""
    head = f"Pod {state.name} ended with exit code {terminated.get('exitCode')}"
    head += f" ({why})" if why not in ("", "Error") else ""
    return f"{head}; its last lines:\n{said}" if said else f"{head}."


def tail(text: str) -> str:
    """The last lines of it, and not too long a last line."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[-LINES:])[-CHARACTERS:]


def _terminated(pod: Object | None, container: str) -> Object | None:
    status = training_status(pod, container) or {}
    found = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated")
    if found is None or (found.get("exitCode") == 0 and (status.get("state") or {}).get("terminated") is None):
        return None
    return found  # type: ignore[no-any-return]


def _ended(pod: Object | None, container: str) -> str:
    return str((_terminated(pod, container) or {}).get("finishedAt") or "~")
