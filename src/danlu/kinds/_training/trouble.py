"""What keeps a job's replicas from running, and the last words of one that died, as `danlu.diagnose` has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from danlu.diagnose import owners
from danlu.diagnose.cause import Cause, entries, said
from danlu.diagnose.evidence import Evidence
from danlu.diagnose.owners import of_pods, partly
from danlu.diagnose.pods import ended_container
from danlu.diagnose.refusals import refused
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.replicas import FAILED, PENDING, RUNNING, SUCCEEDED, ReplicaState, training_status
from danlu.meta.kind import Object
from danlu.meta.said import CAUSES, Said, carried

LINES, CHARACTERS = 10, 1500  # of a log, in a message


@dataclass(frozen=True, slots=True)
class Trouble:
    reason: str
    message: Said

    def is_told(self, present: Iterable[Object]) -> bool:
        """Whether a condition says it already; how many others have the same, or run meanwhile, is no news."""
        return any(_essence(one.get(CAUSES) or ()) == _essence(self.message.causes) for one in present)


def find(states: Iterable[ReplicaState], observed: Observed) -> Trouble | None:
    """What keeps the job from running, the worst first; None when all is well or just starting."""
    for refusal in observed.refused:
        cause = refused(refusal.obj, refusal.message)
        return Trouble(f"FailedCreate{refusal.obj['kind']}", said([cause]))
    known = [*states]
    pods = [state.pod for state in known if state.pod is not None and state.phase in (PENDING, RUNNING)]
    evidence = Evidence(events=observed.events, unbound=observed.unbound)
    found = [cause for cause in of_pods(pods, evidence, starting=False) if cause.keeps]
    if not found:
        return None
    partial = partly([state.pod for state in known if state.pod is not None], len(known), found, "")
    return Trouble(found[0].reason, said([*([partial] if partial else ()), found[0]], log=_log(pods, found[0])))


def replaced_images(states: Iterable[ReplicaState]) -> Said | None:
    """That replicas run in another image than theirs; "" where they run in theirs, None while nobody knows."""
    pods = [state.pod for state in states if state.pod is not None]
    found = owners.replaced_images(pods)
    if not found and not any(state.phase in (RUNNING, SUCCEEDED) for state in states):
        return None
    return said(found)


def _essence(causes: Iterable[Object]) -> list[Object]:
    return [
        {**one, "params": {name: value for name, value in (one.get("params") or {}).items() if name != "more"}}
        for one in causes
        if one["code"] != "DL-PARTIAL"
    ]


def _log(pods: Iterable[Object], cause: Cause) -> str:
    """The end of the log of what is started again and again, where that is more than the line that the cause names."""
    if cause.code != "DL-CRASH":
        return ""
    for pod in (one for one in pods if one["metadata"]["name"] == cause.params["pod"]):
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = (status.get("lastState") or {}).get("terminated") or {}
            if status.get("name") == cause.params["container"] and "\n" in (log := tail(ended.get("message") or "")):
                return log
    return ""


def explained(head: str, causes: Sequence[Cause], dead: Iterable[ReplicaState], container: str) -> Said:
    """An operator's own line of how a job ended; below it why, of whoever died first, too; below that its log's end."""
    found, log = [*causes], ""
    fallen = [state for state in dead if state.phase == FAILED or state.down]
    if fallen:
        first = min(fallen, key=lambda state: _ended(state.pod, container))
        found.append(cause_of_death(first, container))
        log = last_lines(first, container, found[-1])
    lines = (head, *(cause.text() for cause in found), log)
    return Said("\n".join(filter(None, lines)), [*carried(head), *entries(found, log)])


def cause_of_death(state: ReplicaState, container: str) -> Cause:
    terminated = _terminated(state.pod, container)
    if terminated is not None and state.pod is not None:
        return ended_container(state.pod, training_status(state.pod, container) or {}, terminated)
    status = (state.pod or {}).get("status") or {}
    why = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    told = {"pod": state.name, **({"message": why} if why else {})}
    return Cause("DL-POD-FAILED", told, f"Pod/{state.name}", str(status.get("reason") or "Failed"))


def last_lines(state: ReplicaState, container: str, cause: Cause) -> str:
    """The end of a dead replica's log, where that is more than what its cause says."""
    log = tail((_terminated(state.pod, container) or {}).get("message") or "")
    return "" if log in cause.text() else log


def with_causes(text: str, causes: Iterable[Cause]) -> Said:
    """A sentence that is not ours to choose, with the causes that belong to it."""
    return Said(text, entries(causes))


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
