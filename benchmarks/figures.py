"""All values seen of each figure, and how they are shown."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, field


@dataclass(slots=True)
class Figures:
    seen: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, *values: float) -> None:
        self.seen.setdefault(name, []).extend(values)

    def middle(self, name: str) -> float:
        return statistics.median(self.seen[name])

    def __contains__(self, name: str) -> bool:
        return name in self.seen


def say(text: str) -> None:
    """With the load average: where others are at work too, times say little, and processor time and ratios more."""
    print(f"bench: {text} (load average {os.getloadavg()[0]:.1f})", flush=True)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
