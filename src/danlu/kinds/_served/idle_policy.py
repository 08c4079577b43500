"""How a namespace treats what nobody uses: its label and annotations, as TensorStack's resource keeper reads them."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.diagnose import stated
from danlu.kinds._gang import durations
from danlu.kinds.platform import PlatformSettings
from danlu.meta.kind import Object

KEEPER = "tensorstack.dev/resource-keeper"  # label; "true": what is idle for too long is suspended
IDLE_AFTER = "tensorstack.dev/idle-after"  # annotations: durations such as 1h30m
SUSPEND_AFTER = "tensorstack.dev/suspend-after"
LOOKS = 4  # in the shortest time that counts


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    scan_s: float  # between two looks
    idle_after_s: float  # without activity
    suspend_after_s: float | None = None  # as idle; None: never
    problems: tuple[str, ...] = ()  # annotations that cannot be read


def idle_policy(namespace: Object | None, settings: PlatformSettings) -> IdlePolicy:
    """`None`: a namespace that may not be read is like one that says nothing."""
    meta = (namespace or {}).get("metadata") or {}
    problems: list[str] = []

    def read(name: str, default: float) -> float:
        text = (meta.get("annotations") or {}).get(name)
        if text is None:
            return default
        try:
            return durations.seconds(text)
        except ValueError:
            told = {"annotation": name, "namespace": meta.get("name"), "value": text, "example": durations.EXAMPLE}
            problems.append(stated("DL-IDLE-ANNOTATION", **told))
            return default

    idle, suspend = read(IDLE_AFTER, settings.idle_after_s), read(SUSPEND_AFTER, settings.suspend_after_s)
    keeps = (meta.get("labels") or {}).get(KEEPER) == "true"
    scan = min(settings.scan_interval_s, max(idle / LOOKS, 1.0), max(suspend / LOOKS, 1.0) if keeps else idle)
    return IdlePolicy(max(scan, 1.0), idle, suspend if keeps else None, tuple(problems))
