"""QuotaProfile: limits that several projects follow. It stands in t9k-system and has no controller of its own."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.kinds._gang.markers import SYSTEM_NAMESPACE
from danlu.kinds.crd import Condition, FreeForm, Quantities
from danlu.kinds.platform import PlatformKind, PrinterColumn
from danlu.meta.kind import Kind

QUOTA_PROFILE = Kind("tensorstack.dev", "v1beta1", "QuotaProfile", "quotaprofiles", True, (), ("danlu",))
NAMESPACE = SYSTEM_NAMESPACE


class QuotaProfileSpec(msgspec.Struct, rename="camel"):
    hard: Annotated[Quantities, Meta(description="As in a ResourceQuota: cpu, memory, nvidia.com/gpu, pods …")] = {}
    scopes: Annotated[list[str], Meta(description="As in a ResourceQuota.")] = []
    scope_selector: Annotated[FreeForm | None, Meta(description="As in a ResourceQuota.")] = None


class QuotaProfileStatus(msgspec.Struct):
    conditions: list[Condition] = []  # none yet: the projects that follow it say what is used


PROFILE = PlatformKind(
    kind=QUOTA_PROFILE,
    spec=QuotaProfileSpec,
    status=QuotaProfileStatus,
    controller=None,
    columns=(
        PrinterColumn("CPU", ".spec.hard.cpu"),
        PrinterColumn("Memory", ".spec.hard.memory"),
        PrinterColumn("Pods", ".spec.hard.pods"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
)
