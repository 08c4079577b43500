"""`JobKind`: all that one kind of job says for itself; `lifecycle` decides the rest.

A dialect is a subclass (`kubeflow.dialect`, `tensorstack.dialect`): how a spec is read, which labels pods have, how
status and events are written (its `Report`). A kind is an instance of one: its roles, its port, what its replicas are
told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from danlu.kinds._training import gang
from danlu.kinds._training.job import MOST_REPLICAS, Job, Replica, Role
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.ports import Port, Ports
from danlu.kinds._training.replicas import ReplicaState
from danlu.kinds._training.restarts import RestartRules
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.suspension import Suspension
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD, SERVICE
from danlu.runtime.reconcile import EventNote

if TYPE_CHECKING:
    from danlu.kinds._training.reconciliation import JobReconciliation
    from danlu.kinds._training.report import Report


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the replicas' states mean for the job; an empty text means: not so."""

    succeeded: str = ""
    running: str = ""


@dataclass(frozen=True, slots=True)
class Companion:
    """A child besides pods, services and the gang's group: a ConfigMap, a Secret, an autoscaler, a TensorBoard.

    ConfigMaps and Secrets are made by `children.companion`: they are found by its label.
    """

    obj: Object
    once: bool = False  # made once and then left alone, such as keys; else kept as it is here
    before_pods: bool = True  # pods need it; else they come first
    outlives: bool = False  # stays when the job has ended or is suspended


def _no_companions(_job: Job, _observed: Observed) -> Sequence[Companion]:
    return ()


def _no_kinds(_settings: PlatformSettings) -> Sequence[Kind]:
    return ()


def _no_notes(_job: Job, _settings: PlatformSettings) -> Sequence[EventNote]:
    return ()


def _at_once(_job: Job, _replica: Replica, _states: Sequence[ReplicaState]) -> bool:
    return True


def _unknown(_job: Job, _container: Object) -> int:
    return 0


def _none_ignored(_job: Job, _role: Role) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class JobKind(ABC):
    kind: Kind
    containers: tuple[str, ...]  # names of the training container, the first that is there; else the pod's first
    port: Port
    environment: Callable[[Job, Replica, Ports], Mapping[str, str]]  # what a replica is told
    master: Callable[[Job], Replica | None]  # the replica that the others look for
    most: int = MOST_REPLICAS  # of all roles together
    processes: Callable[[Job, Object], int] = _unknown  # in the training container, for children.set_threads
    ignores_failures: Callable[[Job, Role], bool] = _none_ignored
    may_start: Callable[[Job, Replica, Sequence[ReplicaState]], bool] = _at_once  # a launcher waits for its workers
    companions: Callable[[Job, Observed], Sequence[Companion]] = _no_companions
    companion_kinds: Callable[[PlatformSettings], Sequence[Kind]] = _no_kinds
    notes: Callable[[Job, PlatformSettings], Sequence[EventNote]] = _no_notes  # events when the job is first seen

    rules: ClassVar[RestartRules]
    suspension: ClassVar[Suspension]
    services_outlive_pods: ClassVar[bool] = False  # when the job is suspended or stopped: they hold what is to be kept
    common_kinds: ClassVar[tuple[Kind, ...]] = ()  # of companions that every kind of the dialect can have
    gang_on_request: ClassVar[bool] = False  # only jobs that ask for it are placed together

    # -- how a spec is read

    @abstractmethod
    def job(self, obj: Object) -> Job: ...

    @abstractmethod
    def judge(self, job: Job, states: Sequence[ReplicaState]) -> Verdict: ...

    @abstractmethod
    def fatal(self, reconciliation: JobReconciliation, lost: Sequence[ReplicaState]) -> Sequence[ReplicaState]:
        """Of the replicas that failed and are not made again those whose failure is the job's."""

    def is_ours(self, obj: Object) -> bool:
        """Another controller may look after it."""
        return True

    def container_of(self, role: Role) -> str:
        names = [one["name"] for one in (role.template.get("spec") or {}).get("containers") or ()]
        return next((name for name in self.containers if name in names), next(iter(names), self.containers[0]))

    # -- how pods and services are written

    @abstractmethod
    def labels(self, job: Job, replica: Replica, *, is_master: bool = False) -> Mapping[str, str]: ...

    @abstractmethod
    def selector(self, job: Job, replica: Replica) -> Mapping[str, str]: ...

    @abstractmethod
    def add_environment(self, spec: Object, training: Object, words: Mapping[str, str]) -> None:
        """To a pod's containers; `training` is one of them."""

    def finish_pod(self, reconciliation: JobReconciliation, replica: Replica, planned: Ports, pod: Object) -> None:
        """The last word on a pod."""
        return

    # -- how status and events are written

    @abstractmethod
    def report(self, reconciliation: JobReconciliation) -> Report: ...

    # -- what there is besides pods and services

    def all_companions(self, job: Job, observed: Observed) -> Sequence[Companion]:
        """Those of the kind and those that every kind of the dialect has."""
        return self.companions(job, observed)

    def watched(self, settings: PlatformSettings) -> tuple[Kind, ...]:
        """Children besides pods and services that are looked at."""
        return (*gang.kinds_of(settings), *self.companion_kinds(settings), *self.common_kinds)

    @property
    def owns(self) -> tuple[Kind, ...]:
        """All kinds of children that there can be, wherever the platform runs."""
        return (POD, SERVICE, *self.companion_kinds(PlatformSettings()), *self.common_kinds, *gang.KINDS)
