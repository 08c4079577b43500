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


@dataclass(slots=True)
class Outcome:
    apply: list[Object] = field(default_factory=list)  # children, each whole as this controller wants it
    delete: list[Object] = field(default_factory=list)  # children to delete, as observed
    status: dict[str, Any] | None = None  # the whole status; None leaves it alone
    events: list[EventNote] = field(default_factory=list)
    requeue_after: float | None = None  # seconds


Reconcile = Callable[[Request], Awaitable[Outcome | None]]
"""With I/O of its own; what it returns is used for `requeue_after` only."""
