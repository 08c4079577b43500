"""What a scheduler with rules of its own hands to this one: gangs of pods, and the lanes they wait in.

The scheduler knows no kind that has gangs or queues. A `SchedulingPolicy` reads them, wherever they are, and answers
in these plain terms; the program that puts the cluster together passes it in (`Scheduler.use`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from danlu.meta.kind import Object


class Gang(Protocol):
    """Pods that are only of use together. A pod on its own is a gang of one."""

    @property
    def key(self) -> str: ...  # unique in the cluster
    @property
    def name(self) -> str: ...  # for people; "" for a pod on its own
    @property
    def min_member(self) -> int: ...
    @property
    def roles(self) -> Mapping[str, int]: ...  # role → how many of it at least, besides min_member
    @property
    def lane(self) -> str: ...
    @property
    def priority(self) -> int: ...  # inside its lane; higher is first


class Lane(Protocol):
    """Gangs of one lane share a priority, a quota and a set of nodes."""

    @property
    def priority(self) -> int: ...
    @property
    def preemptible(self) -> bool: ...
    @property
    def quota(self) -> Mapping[str, int]: ...  # cpu in thousandths, all else in whole units; what is absent is free
    @property
    def node_requirements(self) -> Sequence[Object]: ...  # as in a node selector term; () is every node


Listener = Callable[[str], None]


class SchedulingPolicy(Protocol):
    @property
    def names(self) -> Collection[str]: ...  # the schedulerNames that these rules are for

    def gang(self, pod: Object) -> Gang: ...
    def role(self, pod: Object) -> str: ...
    def lane(self, name: str) -> Lane | None: ...
    def objection(self, pod: Object, started: bool) -> str:
        """Why the pod may not be placed at all, or "". `started`: others of its gang already have nodes."""

    def listen(self, gang_changed: Listener, lane_changed: Listener) -> None:
        """From now on to be told, by key or name, when an answer of `gang`, `lane` or `objection` may be another."""
