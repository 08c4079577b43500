"""What a PodDisruptionBudget's status says of itself: the controller writes it, and whoever evicts a pod."""

from __future__ import annotations

from danlu.meta import conditions
from danlu.meta.kind import Object

ENOUGH, TOO_FEW, UNKNOWN = "SufficientPods", "InsufficientPods", "SyncFailed"


def say(budget: Object, status: Object, reason: str, now: str, message: str = "") -> None:
    held = status.setdefault("conditions", [])
    allowed, generation = "True" if reason == ENOUGH else "False", budget["metadata"].get("generation", 0)
    conditions.set(held, "DisruptionAllowed", allowed, reason, message, now, observedGeneration=generation)
    for condition in held:
        condition.setdefault("message", "")  # a field that must be there, empty or not
