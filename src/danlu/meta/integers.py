"""Integers that people write as text: in annotations, in percentages, in lists of indexes."""

from __future__ import annotations

LARGEST = 2**63 - 1
_MOST_DIGITS = 20  # with a sign; more cannot be a number of 64 bits, leading zeros aside


def decimal(text: str) -> int:
    """The number, held within 64 bits. Raises ValueError for what is none.

    Python itself raises that for a number of more than 4,300 digits, which reads as if it were none, and takes its time
    for one that is a little shorter.
    """
    if len(text) <= _MOST_DIGITS:
        return max(-LARGEST, min(LARGEST, int(text)))
    negative = text.startswith("-")
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"not a number: {text[:_MOST_DIGITS]}…")
    digits = digits.lstrip("0") or "0"
    size = int(digits) if len(digits) < _MOST_DIGITS else LARGEST
    return -min(size, LARGEST) if negative else min(size, LARGEST)
