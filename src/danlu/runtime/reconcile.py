"""What goes into a reconciler and what comes out: `Request` in, `Outcome` out.

A request holds only a name, so a reconciler cannot depend on which event woke it. An outcome holds only decisions;
`outcomewriter` does the I/O.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from danlu.meta.kind import Object


@dataclass(frozen=True, slots=True)
class Request:
    namespace: str  # "" for cluster scope
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class EventNote:
    """An event about the reconciled object (or `about`), to be recorded if the outcome is carried out."""

    type: str  # Normal, Warning
    reason: str
    message: str
    about: Object | None = None


@dataclass(frozen=True, slots=True)
class CreatedNote:
    """An event when the server has a child. One tells of all that were made together: it is a write like any other."""

    reason: str
    code: str  # of a message with `names`, and `others` where there are more than it names
    params: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Creation:
    """A child that is made once and then left alone, such as a pod: its name must be free, or be its own."""

    obj: Object
    made: CreatedNote | None = None
    refused: str = "FailedCreate"  # reason of the warning when the server does not take it
    max_wait_s: float = 0.0  # how long it may wait for what is more urgent


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the server said to a creation, in its own words."""

    obj: Object
    message: str


@dataclass(slots=True)
class Outcome:
    """Carried out in this order; what stands in one list is done at the same time."""

    apply: list[Object] = field(default_factory=list)  # children, each whole as this controller wants it
    delete: list[Object] = field(default_factory=list)  # children to delete, as observed
    create: list[Creation] = field(default_factory=list)  # one kind after the other, in the order given
    status: dict[str, Any] | None = None  # the whole status; None leaves it alone
    status_delay_s: float = 0.0  # so long it may wait for more of what it tells: see `debounce`
    events: list[EventNote] = field(default_factory=list)
    create_last: list[Creation] = field(default_factory=list)  # nobody waits for these
    requeue_after: float | None = None  # seconds

    def requeue_within(self, seconds: float | None) -> None:
        """Not later than that; None asks for nothing."""
        if seconds is not None and (self.requeue_after is None or seconds < self.requeue_after):
            self.requeue_after = seconds


COUNTS_DELAY_S = 1.0  # `Outcome.status_delay_s` of a status in which nothing is new but counts
START_DELAY_S = 0.05  # … that tells of a start under way: more of that comes at once


class Unreconcilable(Exception):
    """Nothing can be done for this object until it is changed; the text says why, to its owner.

    The controller sets it aside (`setaside`) and does not try again before the object has changed.
    """


Reconcile = Callable[[Request], Awaitable[Outcome | None]]
"""With I/O of its own; what it returns is used for `requeue_after` only."""
