"""`Observed`: everything a job's reconcile may look at besides the job itself and the time."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from danlu.diagnose.cause import Cause
from danlu.kinds.platform import PlatformSettings
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Refusal


@dataclass(frozen=True, slots=True)
class Observed:
    pods: Sequence[Object] = ()
    services: Sequence[Object] = ()
    others: Sequence[Object] = ()  # further children: PodGroup, TensorBoard
    events: Sequence[Object] = ()  # warnings about the pods that their status does not tell: FailedMount
    unbound: Mapping[str, Cause] = field(default_factory=dict)  # claims that wait in vain, by name: why
    taken_ports: Container[int] = frozenset()  # by other jobs; asked only where pods share the host's network
    refused: Sequence[Refusal] = ()  # what the server would not create in the attempt just made
    settings: PlatformSettings = field(default_factory=PlatformSettings)
    seed: Callable[[], bytes] = bytes  # 32 random bytes, for keys that a job is to have of its own

    def other(self, kind: Kind, name: str) -> Object | None:
        """A further child, if it is there."""
        return next((one for one in self.others if one["kind"] == kind.kind and one["metadata"]["name"] == name), None)
