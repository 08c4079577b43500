"""Preemption: which pods of lower priority would have to go, on which node, so that this pod fits.

Pure: the answer is a node and its victims, or the sentence that goes behind the pod's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.filters import FilterRefusal, VolumeFilter, refusal_among_nominated
from danlu.embedded.scheduler.nodeinfo import NodeInfo
from danlu.embedded.scheduler.placement import Diagnosis, histogram
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.trial import Trial
from danlu.embedded.scheduler.volumeclaims import Claims, VolumeView
from danlu.meta import conditions

NOT_HELPFUL = FilterRefusal(("Preemption is not helpful for scheduling",), True, frozenset())
NO_VICTIMS = FilterRefusal(("No preemption victims found for incoming pod",), True, frozenset())
PRIORITY_SHIFT = 2**31  # makes every priority positive, so that fewer victims also means a smaller sum


@dataclass(slots=True)
class PreemptionPlan:
    node: str
    victims: list[PodInfo]  # the most important first


def _importance(pod: PodInfo) -> tuple[int, str]:
    """Smaller is more important: a higher priority, then an older pod."""
    started = (pod.pod.get("status") or {}).get("startTime") or pod.created
    return -pod.priority, started


def _is_leaving_for_us(pod: PodInfo) -> bool:
    found = conditions.get((pod.pod.get("status") or {}).get("conditions"), "DisruptionTarget")
    by_us = found is not None and found.get("reason") == "PreemptionByScheduler" and found.get("status") == "True"
    return pod.deleting and by_us


def ineligible(pod: PodInfo, cache: Cache, diagnosis: Diagnosis) -> str:
    if (pod.pod.get("spec") or {}).get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = cache.real.get(pod.nominated)
    refused = diagnosis.refusals.get(pod.nominated)
    if nominated is not None and not (refused is not None and refused.final):
        for other in nominated.pods.values():
            if other.priority < pod.priority and _is_leaving_for_us(other):
                return "not eligible due to a terminating pod on the nominated node."
    return ""


def victims_on(trial: Trial, node: NodeInfo, volumes: VolumeFilter | None) -> list[PodInfo] | FilterRefusal:
    lower = sorted((pod for pod in node.pods.values() if pod.priority < trial.pod.priority), key=_importance)
    if not lower:
        return NO_VICTIMS
    emptied, without = node.copy(), trial.copy()
    for pod in lower:
        emptied.remove(pod)
        without.shift(pod, node, -1)
    refused = refusal_among_nominated(without, emptied, volumes)
    if refused is not None:
        return refused
    victims = []
    for pod in lower:  # each may stay if the newcomer still fits, the most important asked first
        emptied.add(pod)
        without.shift(pod, node, 1)
        if refusal_among_nominated(without, emptied, volumes) is not None:
            emptied.remove(pod)
            without.shift(pod, node, -1)
            victims.append(pod)
    return victims or NO_VICTIMS


def _cost(plan: PreemptionPlan) -> tuple[int, int, int, list[int]]:
    """Smaller is better: the mightiest victim, the sum of priorities, how many, and how long they have run."""
    priorities = [pod.priority for pod in plan.victims]
    highest = max(priorities)
    started = min(_importance(pod)[1] for pod in plan.victims if pod.priority == highest)
    return highest, sum(p + PRIORITY_SHIFT for p in priorities), len(priorities), [-ord(char) for char in started]


def plan(pod: PodInfo, cache: Cache, view: VolumeView, diagnosis: Diagnosis) -> PreemptionPlan | str:
    """A plan, or the words that follow the refusal."""
    if not cache.real:
        return ""
    reason = ineligible(pod, cache, diagnosis)
    if reason:
        return f"preemption: {reason}"
    answers: dict[str, FilterRefusal] = {}
    plans: list[PreemptionPlan] = []
    claims = Claims(pod, view) if pod.claims else None
    trial: Trial | None = None
    for name, node in cache.real.items():
        refused = diagnosis.refusals.get(name)
        if diagnosis.overall or refused is None or refused.final:
            answers[name] = NOT_HELPFUL
            continue
        trial = trial or Trial(pod, cache)
        found = victims_on(trial, node, claims.filter if claims else None)
        if isinstance(found, FilterRefusal):
            answers[name] = found
        else:
            plans.append(PreemptionPlan(name, found))
    if plans:
        return min(plans, key=_cost)
    return f"preemption: 0/{len(cache.real)} nodes are available: {histogram(answers.values())}."
