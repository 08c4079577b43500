"""Lists of completion indexes as Jobs write them: `1,3-5,7`, in rising order and below the number of completions."""

from __future__ import annotations

from danlu.meta.fields import quoted
from danlu.meta.integers import decimal


class IndexesError(ValueError):
    """The text is Kubernetes' own."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes the list names."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        low, high = _interval(interval, completions)
        if last is not None and last >= low:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {low}")
        total += high - low + 1
        last = high
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both lists; intervals that cannot be read are told elsewhere."""
    ours, theirs = _intervals(completed, completions), _intervals(failed, completions)
    at, other = 0, 0
    while at < len(ours) and other < len(theirs):
        (low, high), (their_low, their_high) = ours[at], theirs[other]
        if low <= their_high and their_low <= high:
            return max(low, their_low)
        if low <= their_low:
            at += 1
        else:
            other += 1
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for interval in text.split(",") if text else ():
        try:
            found.append(_interval(interval, completions))
        except IndexesError:
            continue
    return found


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise IndexesError(
            f"the fragment {quoted(text)} violates the requirement that an index interval can have at most two parts "
            "separated by '-'"
        )
    limits = [_index(part, completions) for part in parts]
    if len(limits) == 2 and limits[0] >= limits[1]:
        raise IndexesError(f"non-increasing order, previous: {limits[0]}, current: {limits[1]}")
    return limits[0], limits[-1]


def _index(text: str, completions: int) -> int:
    if not text.isascii() or not text.isdecimal():
        raise IndexesError(f"cannot convert string to integer for index: {quoted(text)}")
    if decimal(text) >= completions:
        raise IndexesError(f"too large index: {quoted(text)}")
    return decimal(text)
