"""`Reconciler`: all that a kind has to say about its controller; `shell.Shell` is the controller around it.

A reconciler declares what it watches, so that anybody can ask before it runs: its `kind`, the children that it `owns`,
and what else it `reads`. Then it does two things: `observe` gathers what there is to see (and may do I/O for that), and
`decide` says what should be (pure: observed in, `Outcome` out). Everything else is the shell's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.meta.kind import Kind, Object
from danlu.runtime.controller import DEFAULT_WORKERS, Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Refusal, Request
from danlu.runtime.recorder import EventRecorder

Children = Mapping[Kind, Sequence[Object]]
Seen = TypeVar("Seen")
Shared = TypeVar("Shared")


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind that is read and not owned, and who is to be reconciled when an object of it changes."""

    kind: Kind
    wakes: Callable[[Object], Iterable[Request]] | None = None  # None: nobody
    gather_s: float = 0.0  # changes that come in bursts are gathered for so long: one reconcile for all of them


@dataclass(frozen=True, slots=True)
class Context:
    """What a reconciler can use once its controller is built."""

    manager: Manager
    controller: Controller
    recorder: EventRecorder
    caches: Mapping[Kind, Informer]  # of all kinds that it declares

    @property
    def client(self) -> Client:
        return self.manager.client

    def now(self) -> datetime:
        return self.manager.clock()

    def wake(self, request: Request) -> None:
        self.controller.queue.add(request)

    def background(self, work: Coroutine[Any, Any, None], name: str) -> Any:
        """Work that no worker waits for; it ends with the controller."""
        return self.controller.background(work, name)

    def shared(self, make: Callable[[], Shared]) -> Shared:
        """One for all controllers of the program: the first to ask makes it."""
        return self.manager.shared(make)


class Reconciler(ABC, Generic[Seen]):
    """Attributes are set before the controller is built, and never after."""

    kind: Kind
    owns: Sequence[Kind] = ()  # children: they wake the object that controls them
    reads: Sequence[Watch] = ()
    writes: Sequence[Kind] = ()  # applied as well, and neither owned nor read: each time the server is asked for them
    child_labels: Mapping[Kind, str] = {}  # selectors: of these kinds only children with the labels are watched
    gather_s: float = 0.0  # as in `Watch`: for changes of the object itself
    workers: int = DEFAULT_WORKERS

    @property
    def name(self) -> str:
        """The field manager of what it applies and the source of its events."""
        return f"{self.kind.kind.lower()}-controller"

    @property
    def watched(self) -> set[Kind]:
        """All kinds that it must be allowed to read."""
        return {self.kind, *self.owns, *(watch.kind for watch in self.reads)}

    def start(self, context: Context) -> None:
        """Called once, before any object is looked at. Caches may still be empty."""
        return

    @abstractmethod
    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Seen:
        """What `decide` is to see. `refused`: what the server would not create in the attempt just made."""

    @abstractmethod
    def decide(self, obj: Object, seen: Seen, now: datetime) -> Outcome: ...

    def refused(self, obj: Object, error: errors.ApiError, now: datetime) -> Outcome | None:
        """What is told of a change of a child that the server refused; nothing else of the outcome is carried out.

        None: it is told by an event (`Blocked`, where a right is missing), and tried again.
        """
        return None

    async def finish(self, obj: Object, outcome: Outcome) -> None:
        """What is to be done besides children and status, after these are written."""
        return

    def forget(self, uid: str) -> None:
        """The object is gone."""
        return

    def explain(self, message: str) -> str:
        """A server's words, with what mends it behind them."""
        return message


class ChildrenReconciler(Reconciler[Children]):
    """A reconciler that has to see nothing but the children."""

    async def observe(self, obj: Object, children: Children, refused: Sequence[Refusal]) -> Children:
        return children
