"""How an object is told to let its pods go: one field is set, and its controller does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET


@dataclass(frozen=True, slots=True)
class Suspension:
    path: str  # of the field, `spec.suspend`
    value: bool | int = True

    @property
    def said(self) -> str:
        """The value as YAML has it."""
        return str(self.value).lower()

    @property
    def patch(self) -> Object:
        """The merge patch that sets it."""
        patch: Any = self.value
        for step in reversed(self.path.split(".")):
            patch = {step: patch}
        return dict(patch)

    def is_set(self, obj: Object) -> bool:
        found: Any = obj
        for step in self.path.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return found == self.value and type(found) is type(self.value)


SUSPEND = Suspension("spec.suspend")
SCALE_DOWN = Suspension("spec.replicas", 0)

OTHERS: Mapping[Kind, Suspension] = {
    DEPLOYMENT: SCALE_DOWN,
    STATEFUL_SET: SCALE_DOWN,
    REPLICA_SET: SCALE_DOWN,
    JOB: SUSPEND,
    # TensorStack's, where they are installed beside ours.
    Kind("tensorstack.dev", "v1beta1", "Explorer", "explorers"): SUSPEND,
    Kind("tensorstack.dev", "v1beta1", "SimpleMLService", "simplemlservices"): SCALE_DOWN,
}
"""Of kinds that are not the platform's own; those say it themselves: `PlatformKind.suspension`."""
