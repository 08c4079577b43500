"""What a controller has done so far, counted as it goes: for `/metrics`, and cheap enough to be always on."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

DONE, AGAIN, FAILED = "done", "again", "failed"  # AGAIN: the cache was behind, or the API was not there


@dataclass(slots=True)
class Stats:
    results: dict[str, int] = field(default_factory=lambda: {DONE: 0, AGAIN: 0, FAILED: 0})
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))  # not cumulated; the last: above all
    busy: int = 0  # workers at work now

    def count(self, result: str, seconds: float) -> None:
        self.results[result] += 1
        self.seconds += seconds
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
