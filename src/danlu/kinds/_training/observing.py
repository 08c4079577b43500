"""`Observed`: everything a job's reconcile may look at besides the job itself and the time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from danlu.kinds.platform import PlatformSettings
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Refusal


@dataclass(frozen=True, slots=True)
class Observed:
    pods: Sequence[Object] = ()
    services: Sequence[Object] = ()
    others: Sequence[Object] = ()  # further children: PodGroup, TensorBoard
    events: Sequence[Object] = ()  # warnings about the pods that their status does not tell: FailedMount
    unbound: Mapping[str, str] = field(default_factory=dict)  # claims that wait in vain, by name: why
    taken_ports: Container[int] = frozenset()  # by other jobs; asked only where pods share the host's network
    refused: Sequence[Refusal] = ()  # what the server would not create in the attempt just made
    settings: PlatformSettings = field(default_factory=PlatformSettings)
