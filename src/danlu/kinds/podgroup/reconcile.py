"""One PodGroup and its pods → its status and what is told to people. Pure.

Why a group is not placed is the scheduler's to say; it says so in the PodScheduled condition of the pods, and from
there it is taken into the group and told to the job that owns it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from danlu.diagnose import causes_in, stated
from danlu.kinds._gang import markers
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.said import Said
from danlu.runtime.reconcile import EventNote, Outcome

SCHEDULED = "GroupScheduled"
SUFFICIENT = "SufficientGroupMember"


def reconcile(group: Object, pods: Sequence[Object], now: datetime) -> Outcome:
    outcome = Outcome()
    before = (group.get("status") or {}).get("conditions") or ()
    found = [dict(one) for one in before]
    stamp = rfc3339(now)
    status, reason, message = _members(group, pods)
    conditions.set(found, SUFFICIENT, status, reason, message, stamp)
    status, reason, message = _placement(group, pods)
    conditions.set(found, SCHEDULED, status, reason, message, stamp)
    outcome.events = _events(group, conditions.get(before, SCHEDULED), status, reason, message)
    outcome.status = {"conditions": found, "allocated": markers.allocated(pods), **markers.counts(pods)}
    return outcome


def _present(pods: Sequence[Object]) -> list[Object]:
    """Those that count: not on their way out, and not failed."""
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp") and markers.phase_of(pod) != "failed"]


def _members(group: Object, pods: Sequence[Object]) -> tuple[str, str, str]:
    spec, present = group.get("spec") or {}, _present(pods)
    least = min_member(group)
    if len(present) < least:
        return "False", "TooFewPods", stated("DL-GROUP-FEW-PODS", have=len(present), least=least)
    have = Counter(markers.role_of(pod) for pod in present)
    for role in spec.get("roles") or ():
        name, wanted = role["name"], role.get("minMember") or 0
        if have[name] < wanted:
            return "False", "TooFewPods", stated("DL-GROUP-FEW-PODS", have=have[name], least=wanted, role=name)
    return "True", "EnoughPods", stated("DL-GROUP-PODS", have=len(present), least=least)


def _placement(group: Object, pods: Sequence[Object]) -> tuple[str, str, str]:
    least = min_member(group)
    placed = [pod for pod in _present(pods) if markers.is_placed(pod)]
    if placed and len(placed) >= least:
        return "True", "Scheduled", stated("DL-GROUP-NODES", have=len(placed), least=least)
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        told = conditions.get((pod.get("status") or {}).get("conditions"), "PodScheduled")
        if told is not None and told.get("status") == "False" and not markers.is_placed(pod):
            message = Said(told.get("message") or "", [cause.carried() for cause in causes_in(pod)])
            return "False", told.get("reason") or "Unschedulable", message
    if not pods:
        return "False", "NoPods", stated("DL-GROUP-NO-PODS")
    return "False", "Waiting", stated("DL-GROUP-FEW-NODES", have=len(placed), least=least)


def min_member(group: Object) -> int:
    found = (group.get("spec") or {}).get("minMember")
    return 1 if found is None else int(found)


def _events(group: Object, before: Object | None, status: str, reason: str, message: str) -> list[EventNote]:
    if before is not None and (before.get("status"), before.get("message")) == (status, message):
        return []
    name = group["metadata"]["name"]
    if status == "True":
        if before is not None and before.get("status") == "True":
            return []  # an elastic group that grew
        return [EventNote("Normal", "Scheduled", stated("DL-GROUP-TOGETHER", group=name))]
    if reason not in ("Unschedulable", "SchedulerError"):
        return []
    owner = next((o for o in group["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    notes = [EventNote("Warning", reason, message)]
    if owner is not None:
        about = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "namespace": group["metadata"].get("namespace"),
            "name": owner["name"],
            "uid": owner["uid"],
        }
        notes.append(EventNote("Warning", reason, message, about))
    return notes
