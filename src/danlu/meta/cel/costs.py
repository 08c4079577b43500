"""What evaluating an expression costs, and the limit: as Kubernetes' own, counted while it runs.

Rules are written by whoever may define a kind or a policy, and run on every write of others. Each call costs one; text
costs a tenth for each character that is gone through or made; lists and maps one for each element. What makes a value
larger than its parts (`replace`, `join`, `lists.range` …) pays for the result before it is made, so that memory is
bounded by the same number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

LIMIT = 1_000_000  # of one expression, as in Kubernetes (PerCallLimit); of all rules of one object together, too
CHARACTERS = 10  # of text for a cost of one
EXCEEDED = "operation cancelled: actual cost limit exceeded"


class CostExceeded(Exception):
    """No CelError: `||` must not swallow it."""

    def __init__(self) -> None:
        super().__init__(EXCEEDED)


class Budget:
    __slots__ = ("left",)

    def __init__(self, left: int = LIMIT) -> None:
        self.left = left

    def spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostExceeded

    def spend_on(self, value: Any) -> None:
        """For going through a value with all that is in it."""
        kind = value.__class__
        if kind is str or kind is bytes:
            self.spend(1 + len(value) // CHARACTERS)
        elif isinstance(value, list):
            self.spend(1)
            for item in value:
                self.spend_on(item)
        elif kind is dict:
            self.spend(1)
            for key, item in value.items():
                self.spend_on(key)
                self.spend_on(item)
        else:
            self.spend(1)


Counted = TypeVar("Counted", bound=Callable[..., Any])


def counted(function: Counted) -> Counted:
    """Marks a function whose cost does not follow from its arguments' size: it takes the budget before them."""
    function.takes_budget = True  # type: ignore[attr-defined]
    return function


def free(function: Counted) -> Counted:
    """Marks a function that costs the same whatever the size of its arguments."""
    function.is_free = True  # type: ignore[attr-defined]
    return function
