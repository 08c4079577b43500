"""The pods that an object wants, read off its spec: templates, each with its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from danlu.meta.kind import Object


def of_roles(obj: Object) -> Iterator[tuple[Object, int]]:
    """All places in a job's spec that have a pod template and a number beside it, as lists or by name."""
    for value in (obj.get("spec") or {}).values():
        roles: list[Any] = []
        if isinstance(value, dict):
            roles = [*value.values()]
        elif isinstance(value, list):
            roles = value
        for role in roles:
            if isinstance(role, dict) and isinstance(role.get("template"), dict):
                replicas = role.get("replicas")
                yield role["template"], replicas if isinstance(replicas, int) else 1


def of(obj: Object) -> list[tuple[Object, int]]:
    """Of what has one template, too: a Deployment, a Job, a Notebook."""
    found = [*of_roles(obj)]
    spec = obj.get("spec") or {}
    if not found and isinstance(spec.get("template"), dict):
        number = spec.get("replicas", spec.get("parallelism"))
        found.append((spec["template"], number if isinstance(number, int) else 1))
    return found


def is_elastic(obj: Object) -> bool:
    """Whether it also works with fewer."""
    spec = obj.get("spec") or {}
    elastic = spec.get("elastic") or {}
    return bool(spec.get("elasticPolicy") or elastic.get("enabled", elastic.get("enable")))
