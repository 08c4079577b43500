"""A container whose resources were changed while it runs: what changed, and whether it takes a new run."""

from __future__ import annotations

from danlu.meta.kind import Object
from danlu.meta.quantity import parse


def changed(before: Object, now: Object) -> set[str]:
    """The resources (cpu, memory) with another request or limit."""
    found: set[str] = set()
    for side in ("requests", "limits"):
        old, new = ((one.get("resources") or {}).get(side) or {} for one in (before, now))
        for name in {*old, *new}:
            if name not in old or name not in new or parse(old[name]) != parse(new[name]):
                found.add(name)
    return found


def needs_restart(container: Object, resources: set[str]) -> bool:
    return any(
        policy.get("restartPolicy") == "RestartContainer" and policy.get("resourceName") in resources
        for policy in container.get("resizePolicy") or ()
    )
