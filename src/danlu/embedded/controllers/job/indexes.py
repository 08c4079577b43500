"""Sets of completion indexes as Kubernetes writes them: `0-3,5,6` (a run of two is written as two)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from danlu.meta import objects
from danlu.meta.integers import decimal
from danlu.meta.kind import Object

ANNOTATION = "batch.kubernetes.io/job-completion-index"  # also the label's name


def completion_index(pod: Object) -> int | None:
    text = objects.annotations_of(pod).get(ANNOTATION, "")
    return decimal(text) if text.isascii() and text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Indexes:
    """Runs (first, last) in rising order, never touching each other."""

    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str, completions: int) -> Indexes:
        """Indexes beyond `completions` and what cannot be read are left out."""
        runs = []
        for part in text.split(",") if text else ():
            first, _, last = part.partition("-")
            try:
                start, end = decimal(first), decimal(last or first)
            except ValueError:
                continue
            if start >= completions:
                break
            runs.append((start, min(end, completions - 1)))
        return cls(_joined(runs))

    def __str__(self) -> str:
        parts = []
        for first, last in self.runs:
            if first == last:
                parts.append(str(first))
            else:
                parts.append(f"{first}{',' if last == first + 1 else '-'}{last}")
        return ",".join(parts)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def __contains__(self, index: int) -> bool:
        at = bisect_left(self.runs, index, key=lambda run: run[1])
        return at < len(self.runs) and self.runs[at][0] <= index

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(_joined([*self.runs, *other.runs])) if other.runs else self

    def adding(self, indexes: Iterable[int]) -> Indexes:
        more = [(index, index) for index in indexes]
        return Indexes(_joined([*self.runs, *more])) if more else self

    def overlap(self, other: Indexes) -> int:
        """How many indexes both have."""
        common = mine = theirs = 0
        while mine < len(self.runs) and theirs < len(other.runs):
            (first, last), (start, end) = self.runs[mine], other.runs[theirs]
            common += max(0, min(last, end) - max(first, start) + 1)
            if last < end:
                mine += 1
            else:
                theirs += 1
        return common

    def first_missing(self, count: int, completions: int) -> list[int]:
        """The `count` lowest indexes below `completions` that are not in here."""
        missing: list[int] = []
        candidate = 0
        for first, last in (*self.runs, (completions, completions)):
            while candidate < min(first, completions) and len(missing) < count:
                missing.append(candidate)
                candidate += 1
            candidate = max(candidate, last + 1)
        return missing


def _joined(runs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)
