"""Which standard holds in a namespace: its `pod-security.kubernetes.io/…` labels, over the cluster's defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from danlu.meta.fields import FieldError, invalid

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
PREFIX = "pod-security.kubernetes.io/"
LATEST = "latest"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class LevelVersion:
    level: str = PRIVILEGED
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def minor(self, latest: int) -> int:
        """Of Kubernetes 1.x; one that has not come yet is the latest."""
        found = _VERSION.fullmatch(self.version)
        return min(int(found[1]), latest) if found else latest


@dataclass(frozen=True, slots=True)
class PodSecurityPolicy:
    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def asks_nothing(self) -> bool:
        return all(one.level == PRIVILEGED for one in (self.enforce, self.audit, self.warn))


def strictness(level: str) -> int:
    return LEVELS.index(level)


def policy_of(labels: Mapping[str, str], defaults: PodSecurityPolicy) -> tuple[PodSecurityPolicy, list[FieldError]]:
    """A policy always; errors name the labels that cannot be read. To enforce what cannot be read is to enforce the
    strictest level; to warn and to audit is to say nothing."""
    errors: list[FieldError] = []
    found = {}
    for mode in ("enforce", "audit", "warn"):
        stated: LevelVersion = getattr(defaults, mode)
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None:
            if level not in LEVELS:
                text = f"must be one of {', '.join(LEVELS)}"
                errors.append(invalid(f"metadata.labels[{PREFIX}{mode}]", level, text))
            failed = RESTRICTED if mode == "enforce" else PRIVILEGED
            stated = replace(stated, level=level if level in LEVELS else failed)
        if version is not None:
            readable = version == LATEST or _VERSION.fullmatch(version) is not None
            if not readable:
                errors.append(
                    invalid(f"metadata.labels[{PREFIX}{mode}-version]", version, 'must be "latest" or "v1.x"')
                )
            stated = replace(stated, version=version if readable else LATEST)
        found[mode] = stated
    return PodSecurityPolicy(**{**found, "warn": _warned_of(labels, found["enforce"], found["warn"])}), errors


def _warned_of(labels: Mapping[str, str], enforce: LevelVersion, warn: LevelVersion) -> LevelVersion:
    """Who enforces more than is warned of, and says nothing of warnings, is warned of what is enforced."""
    explicit = labels.get(f"{PREFIX}enforce") in LEVELS
    if f"{PREFIX}warn" in labels or not explicit or strictness(enforce.level) <= strictness(warn.level):
        return warn
    version = warn.version if f"{PREFIX}warn-version" in labels else enforce.version
    return LevelVersion(enforce.level, version)
