"""`JobReconciliation`: all that is known in one reconcile of a job, and the outcome that is being put together."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from danlu.kinds._training import gang, ports, replicas
from danlu.kinds._training.job import Replica, Role
from danlu.kinds._training.jobkind import JobKind
from danlu.kinds._training.observation import Observed
from danlu.meta import objects
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.runtime.reconcile import EventNote, Outcome


class JobReconciliation:
    def __init__(self, kind: JobKind, obj: Object, observed: Observed, now: datetime) -> None:
        self.kind = kind
        self.job = kind.job(obj)
        self.observed = observed
        self.now = now
        self.stamp = rfc3339(now)
        self.before: Object = obj.get("status") or {}
        self.status: Object = objects.copy(self.before)
        self.outcome = Outcome()
        self._containers = {role.name: kind.container_of(role) for role in self.job.roles}
        self.states = replicas.observe(self.job, observed.pods, observed.services, self._containers)
        scheduling = self.job.policy.scheduling
        wanted = scheduling is not None or not kind.gang_on_request
        self.engine = gang.engine(observed.settings, scheduling) if wanted else None

    @cached_property
    def master(self) -> str:
        """The name of the replica that the others look for; "" where there is none."""
        found = self.kind.master(self.job)
        return found.name if found is not None else ""

    def is_master(self, replica: Replica) -> bool:
        return replica.name == self.master

    def container(self, role: Role) -> str:
        return self._containers[role.name]

    def ports(self) -> ports.Ports:
        # A template's own port is looked for in the training container of the first role.
        container = self.container(self.job.roles[0])
        return ports.for_job(self.job, self.observed, container, self.kind.port)

    def tell(self, type: str, reason: str, message: str) -> None:
        self.outcome.events.append(EventNote(type, reason, message))
