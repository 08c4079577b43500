"""A pod, or a template, against a level of a version."""

from __future__ import annotations

from functools import lru_cache

from danlu.meta.kind import Object
from danlu.meta.podsecurity import baseline, restricted
from danlu.meta.podsecurity.namespacelevel import PRIVILEGED, RESTRICTED, LevelVersion
from danlu.meta.podsecurity.violations import Check, Violation, containers_of

LATEST_MINOR = 36  # of the Kubernetes that we are


def evaluate(wanted: LevelVersion, metadata: Object, spec: Object) -> list[Violation]:
    """In Kubernetes' order: baseline before restricted, each by the alphabet."""
    if wanted.level == PRIVILEGED:
        return []
    found = (check(metadata, spec) for check in _checks(wanted.level, wanted.minor(LATEST_MINOR)))
    return [violation for violation in found if violation is not None]


@lru_cache(maxsize=128)
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    chosen = {name: _at(versions, minor) for name, versions in baseline.CHECKS.items()}
    if level == RESTRICTED:
        further = {name: _at(versions, minor) for name, versions in restricted.CHECKS.items()}
        for name, check in further.items():
            if check is not None and name in restricted.OVERRIDES:
                del chosen[restricted.OVERRIDES[name]]
        chosen |= further
    return tuple(check for check in chosen.values() if check is not None)


def _at(versions: baseline.Versions, minor: int) -> Check | None:
    return next((check for since, check in reversed(versions) if since <= minor), None)


def is_significant_update(new: Object, old: Object) -> bool:
    """Whether a pod's change can matter here: another image, or a container more. Nothing else of this can change."""
    before = {one["name"]: one.get("image") for one in containers_of(old.get("spec") or {})}
    after = {one["name"]: one.get("image") for one in containers_of(new.get("spec") or {})}
    return before != after
