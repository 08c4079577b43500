"""`Evidence`: what is known around an object. What is not given is not known, and nothing is concluded from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from danlu.diagnose.cause import Cause
from danlu.meta.kind import Object


@dataclass(frozen=True, slots=True)
class Evidence:
    pods: Sequence[Object] = ()  # of the object
    events: Sequence[Object] = ()  # about the object, its pods and its claims
    claims: Sequence[Object] = ()  # of the namespace
    classes: Sequence[Object] | None = None  # StorageClasses
    nodes: Sequence[Object] = ()
    quotas: Sequence[Object] = ()  # of the namespace; only with the pods: what is there already, they allow
    unbound: Mapping[str, Cause] = field(default_factory=dict)  # by claim: why it waits, where that is known already

    def about(self, uid: str | None) -> list[Object]:
        """Events about the object of this uid, the newest first."""
        found = [event for event in self.events if uid and involved(event).get("uid") == uid]
        return sorted(found, key=_when, reverse=True)


NOTHING = Evidence()


def involved(event: Object) -> Object:
    return event.get("involvedObject") or event.get("regarding") or {}


def message_of(event: Object) -> str:
    return str(event.get("message") or event.get("note") or event.get("reason") or "")


def _when(event: Object) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
