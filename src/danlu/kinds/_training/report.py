"""`Report`: what a dialect tells of one reconcile of a job, in its own words: conditions, counts, events.

`lifecycle` calls these in the order in which things happen; the events of an outcome are told in that order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from danlu.kinds._training.job import Replica
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.kinds._training.replicas import ReplicaState
from danlu.kinds._training.trouble import Trouble
from danlu.meta.kind import Object
from danlu.runtime.reconcile import CreatedNote

REPLICAS, BACKOFF_LIMIT, DEADLINE = "replicas", "backoff limit", "deadline"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the job has failed, and whose last words are worth telling."""

    cause: str  # REPLICAS: some failed for good; BACKOFF_LIMIT, DEADLINE
    dead: Sequence[ReplicaState] = ()

    @property
    def stops(self) -> bool:
        """Whatever still runs is ended, whatever the clean-up policy says: that is what limits are for."""
        return self.cause != REPLICAS


@dataclass(frozen=True, slots=True)
class Progress:
    """Of a job that goes on."""

    running: str  # by the kind's verdict; "": not running
    again: Sequence[ReplicaState]  # replicas that failed and are made again, now or in a while
    lost: Sequence[ReplicaState]  # … and that are not
    trouble: Trouble | None  # what keeps it from running


class Report(ABC):
    refused_reason = "FailedCreate{}"  # of the warning about a child that the server does not take; {}: its kind

    def __init__(self, reconciliation: JobReconciliation) -> None:
        self.reconciliation = reconciliation

    @property
    @abstractmethod
    def is_over(self) -> bool: ...

    @property
    @abstractmethod
    def is_suspended(self) -> bool:
        """Whether it says so; the spec may say otherwise by now."""

    @abstractmethod
    def begin(self) -> None:
        """Before anything else."""

    @abstractmethod
    def images_replaced(self, message: str) -> None:
        """That replicas run in another image than theirs; "": they run in theirs. Whatever becomes of the job."""

    @abstractmethod
    def suspended(self) -> None: ...

    @abstractmethod
    def resumed(self) -> None: ...

    @abstractmethod
    def goes_on(self, progress: Progress) -> None: ...

    @abstractmethod
    def succeeded(self, text: str) -> None: ...

    @abstractmethod
    def failed(self, failure: Failure) -> None: ...

    def after_the_end(self) -> None:
        """At each reconcile of a job that is over."""
        return

    @abstractmethod
    def write(self) -> None:
        """After everything else: the status into the outcome, and how long it may wait."""

    # -- single children

    def making(self, replica: Replica) -> None:
        """Its pod is about to be made."""
        return

    @abstractmethod
    def made(self, state: ReplicaState) -> CreatedNote:
        """Told when the server has its pod."""

    def removed(self, child: Object) -> None:
        return None

    def restarting(self, again: Sequence[ReplicaState]) -> None:
        """Before the first of them is made again."""
        return

    def restarted(self, state: ReplicaState) -> None:
        """Its failure is counted and its pod goes."""
        return

    def rejected(self, state: ReplicaState) -> None:
        """Its node would not take it: its pod goes, and nothing is counted."""
        return

    def left_running(self, pods: Sequence[Object]) -> None:
        """By a job that has failed."""
        return

    def expired(self) -> None:
        """Its time to live is over: the job itself goes."""
        return
