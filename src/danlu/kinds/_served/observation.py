"""What a served kind's `reconcile` gets to see beside the object itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from danlu.diagnose.cause import Cause
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.references import Needed
from danlu.meta.kind import Kind, Object
from danlu.runtime.reconcile import Outcome


@dataclass(frozen=True, slots=True)
class Activity:
    """What the program in the pod says of itself when asked."""

    last: datetime | None  # when somebody last did something with it
    busy: bool  # something runs right now: a kernel, a connection
    probed: datetime
    ssh: datetime | None = None  # when an SSH client last sent something


@dataclass(frozen=True, slots=True)
class Observed:
    settings: PlatformSettings
    children: Mapping[Kind, Sequence[Object]] = field(default_factory=dict)
    pod: Object | None = None
    missing: Sequence[Needed] = ()  # what the object names and nobody has made
    activity: Activity | None = None
    fresh_token: str = ""  # a new random word, for a Secret that is not there yet
    unbound: Mapping[str, Cause] = field(default_factory=dict)  # claims that wait in vain, by name: why
    namespace: Object | None = None  # its labels say what becomes of what nobody uses; None: it may not be read

    def child(self, kind: Kind, name: str) -> Object | None:
        for candidate in self.children.get(kind, ()):
            if candidate["metadata"]["name"] == name:
                return candidate
        return None


@dataclass(slots=True)
class ServedOutcome(Outcome):
    suspend: bool = False  # write `suspend: true` into the object: it was idle for too long
