"""Durations as people write them: `1h20m15s`, of y (365 d), w, d, h, m, s and ms, each at most once, largest first."""

from __future__ import annotations

import re

UNITS = {"y": 365 * 86400.0, "w": 7 * 86400.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
EXAMPLE = "1h20m15s"
PATTERN = "^" + "".join(f"([0-9]{{1,9}}{unit})?" for unit in UNITS) + "$"
_PARTS = re.compile(r"([0-9]+)([a-z]+)")
_WHOLE = re.compile(PATTERN)


def seconds(text: str) -> float:
    """Raises ValueError."""
    if not text or _WHOLE.match(text) is None:
        raise ValueError(f"{text!r} is no duration; write for example {EXAMPLE}")
    return sum(int(number) * UNITS[unit] for number, unit in _PARTS.findall(text))
