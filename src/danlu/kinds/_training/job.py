"""`Job`: what any job kind's spec says, in one shape. Each kind translates its own spelling into it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from danlu.diagnose import stated
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Unreconcilable

ALWAYS, ON_FAILURE, NEVER, EXIT_CODE = "Always", "OnFailure", "Never", "ExitCode"

# Of all roles together; the CRDs refuse more. A pod for each machine of 32,768 GPUs; the whole status of a job with so
# many still fits into one object.
MOST_REPLICAS = 4096
# TF_CONFIG names every replica in the environment of each: Linux takes 128 KiB in one variable, and what the pods of a
# job take together grows with the square of their number.
MOST_TENSORFLOW_REPLICAS = 1024
# Pods made at one look at the job: the loop has to turn, and a cluster that refuses the first need not refuse them all.
MADE_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Role:
    """Replicas of one sort: the same template, counted from 0."""

    name: str  # as the kind writes it: "Master", "worker"
    replicas: int
    template: Object
    restart: str  # Always, OnFailure, Never, ExitCode

    @property
    def slug(self) -> str:
        """As it stands in names and labels."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Replica:
    role: Role
    index: int
    name: str  # of its pod and of its service


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What a gang scheduler is told; None leaves it to the scheduler."""

    min_available: int | None = None
    queue: str = ""
    min_resources: Object | None = None
    priority_class: str = ""
    priority: int | None = None
    timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class RunPolicy:
    clean: str = "None"  # None, Running (what is unfinished goes), All
    ttl_s: int | None = None  # after the end the job itself is deleted
    deadline_s: int | None = None  # counted from startTime
    backoff_limit: int | None = None  # restarts of all replicas together; None: as many as it takes
    suspend: bool = False
    scheduling: Scheduling | None = None


@dataclass(frozen=True)
class Job:
    kind: Kind
    obj: Object
    roles: tuple[Role, ...]  # in the order in which ranks are given
    policy: RunPolicy
    prefix: str = ""  # of the replicas' names; "" is the job's own name
    names: dict[tuple[str, int], str] = field(default_factory=dict)  # replicas named otherwise than PREFIX-ROLE-INDEX
    texts: dict[str, str] = field(default_factory=dict, compare=False)  # what several replicas are told, made once

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.obj["metadata"]["uid"])

    @property
    def spec(self) -> Object:
        return self.obj["spec"]  # type: ignore[no-any-return]

    @property
    def total(self) -> int:
        return sum(role.replicas for role in self.roles)

    def bounded(self, most: int) -> Job:
        """The job itself. The CRD refuses more replicas than `most`; an object that is older than that rule would
        otherwise be listed, replica by replica, until the memory is full."""
        if self.total > most:
            raise Unreconcilable(stated("DL-TOO-MANY-REPLICAS", most=most, total=self.total))
        return self

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def replica_name(self, role: Role, index: int) -> str:
        return self.names.get((role.name, index)) or f"{self.prefix or self.name}-{role.slug}-{index}"

    def replica(self, role: Role, index: int) -> Replica:
        return Replica(role, index, self.replica_name(role, index))

    @cached_property
    def replicas(self) -> tuple[Replica, ...]:
        return tuple(self.replica(role, index) for role in self.roles for index in range(role.replicas))

    def rank(self, replica: Replica) -> int:
        """Counted through all roles in their order."""
        rank = 0
        for role in self.roles:
            if role.name == replica.role.name:
                return rank + replica.index
            rank += role.replicas
        raise KeyError(replica.role.name)
