"""What goes into a reconciler and what comes out: `Request` in, `Outcome` out.

A request holds only a name, so a reconciler cannot depend on which event woke it. An outcome holds only decisions;
`applying` does the I/O.
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
class Creation:
    """A child that is made once and then left alone, such as a pod: its name must be free, or be its own."""

    obj: Object
    # Recorded when the server has it. `{}` stands for its name, or for all of them where several are made together:
    # an event is a write like any other.
    made: EventNote | None = None
    refused: str = "FailedCreate"  # reason of the warning when the server does not take it
    patience_s: float = 0.0  # how long it may wait for what is more urgent


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
    patient: bool = False  # the status tells nothing new but numbers: it may wait a moment for more of them
    beginning: bool = False  # it tells of a start that is under way: more of that comes in the blink of an eye
    events: list[EventNote] = field(default_factory=list)
    create_last: list[Creation] = field(default_factory=list)  # nobody waits for these
    requeue_after: float | None = None  # seconds


class Unreconcilable(Exception):
    """Nothing can be done for this object until it is changed; the text says why, to its owner.

    The controller sets it aside (`setaside`) and does not try again before the object has changed.
    """


Reconcile = Callable[[Request], Awaitable[Outcome | None]]
"""With I/O of its own; what it returns is used for `requeue_after` only."""
