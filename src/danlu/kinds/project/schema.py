"""Project's spec and status, and what its CRD refuses."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.kinds.crd import Condition, FreeForm, Quantities
from danlu.kinds.platform import PrinterColumn
from danlu.meta.kind import Kind

PROJECT = Kind("tensorstack.dev", "v1beta1", "Project", "projects", True, ("proj",), ("danlu",))


class QuotaSpec(msgspec.Struct, rename="camel"):
    hard: Annotated[Quantities, Meta(description="As in a ResourceQuota: cpu, memory, nvidia.com/gpu, pods …")] = {}


class QuotaTemplate(msgspec.Struct, rename="camel"):
    spec: QuotaSpec | None = None


class Quota(msgspec.Struct, rename="camel"):
    template: QuotaTemplate | None = None


class NetworkPolicyTemplate(msgspec.Struct, rename="camel"):
    spec: FreeForm | None = None


class NetworkPolicy(msgspec.Struct, rename="camel"):
    use_default_template: Annotated[bool, Meta(description="Only pods of the project reach its pods.")] = False
    template: NetworkPolicyTemplate | None = None


class T9kScheduler(msgspec.Struct, rename="camel"):
    queue: str = ""


class DefaultScheduler(msgspec.Struct, rename="camel"):
    t9k_scheduler: T9kScheduler | None = msgspec.field(default=None, name="t9kScheduler")


class ProjectSpec(msgspec.Struct, rename="camel"):
    quota_profile: Annotated[
        str,
        Meta(description="A QuotaProfile in t9k-system that the project follows, unless resourceQuota has limits."),
    ] = ""
    resource_quota: Annotated[Quota | None, Meta(description="What all pods of the project may use together.")] = None
    network_policy: NetworkPolicy | None = None
    default_scheduler: Annotated[
        DefaultScheduler | None, Meta(description="What forms preselect; nothing is enforced by it.")
    ] = None


class ProjectStatus(msgspec.Struct, rename="camel"):
    conditions: list[Condition] = []
    resource_quota: Annotated[FreeForm | None, Meta(description="The quota's `hard` and `used`.")] = None


COLUMNS = (
    PrinterColumn("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    PrinterColumn("Queue", ".spec.defaultScheduler.t9kScheduler.queue"),
    PrinterColumn("CPU", ".status.resourceQuota.used.cpu", priority=1),
    PrinterColumn("Memory", ".status.resourceQuota.used.memory", priority=1),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)
