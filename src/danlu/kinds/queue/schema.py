"""Queue's spec and status, and what its CRD refuses."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._gang import durations
from danlu.kinds._gang.markers import QUEUE
from danlu.kinds.crd import Condition, Quantities, stored_default
from danlu.kinds.platform import PrinterColumn, Rule

__all__ = ["COLUMNS", "QUEUE", "RULES", "QueueSpec", "QueueStatus"]


class Requirement(msgspec.Struct, omit_defaults=True):
    key: Annotated[str, Meta(min_length=1, max_length=317)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[Annotated[str, Meta(max_length=63)]], Meta(max_length=256)] = []


class LabelSelector(msgspec.Struct, rename="camel", omit_defaults=True):
    match_labels: dict[str, str] = {}
    match_expressions: Annotated[list[Requirement], Meta(max_length=32)] = []


class Quota(msgspec.Struct):
    requests: Annotated[Quantities, Meta(description="The most that all pods of the queue may request together.")]


class QueueSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    quota: Annotated[Quota, Meta(description="Absent: no limit.")] | None = None
    priority: Annotated[
        int,
        Meta(ge=0, le=100, description="Queues with a larger one are served first and may preempt those below."),
        stored_default(0),
    ] = 0
    preemptible: (
        Annotated[bool, Meta(description="Whether queues of higher priority may take its room. Absent: true.")] | None
    ) = None
    closed: Annotated[
        bool, Meta(description="A closed queue takes nothing new; what runs goes on."), stored_default(False)
    ] = False
    max_duration: (
        Annotated[
            str,
            Meta(
                min_length=2,
                pattern=durations.PATTERN,
                description="How long a pod may run, as 1h20m15s (y w d h m s ms); then its job is paused.",
            ),
        ]
        | None
    ) = None
    resource_shape_profile: Annotated[str, Meta(description="Kept for manifests that have it; not used.")] = ""
    node_selector: Annotated[LabelSelector, Meta(description="The nodes of the queue. Absent: all.")] | None = None
    namespace_selector: (
        Annotated[LabelSelector, Meta(description="The namespaces that may use it. Absent: none; {}: all.")] | None
    ) = None
    requests: Annotated[Quantities, Meta(description="An older spelling of quota.requests.")] | None = None


class GroupCounts(msgspec.Struct):
    total: Annotated[int, Meta(description="PodGroups in the queue, and pods on their own.")] = 0


class PodCounts(msgspec.Struct):
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0


class QueueStatus(msgspec.Struct, rename="camel"):
    allocated: Annotated[Quantities, Meta(description="What pods with a node request together.")] = {}
    conditions: Annotated[list[Condition], Meta(description="QueueClosed, ResourcePressure.")] = []
    pod_groups: GroupCounts | None = None
    pods: PodCounts | None = None


COLUMNS = (
    PrinterColumn("Priority", ".spec.priority", "integer"),
    PrinterColumn("Closed", ".spec.closed", "boolean"),
    PrinterColumn("Groups", ".status.podGroups.total", "integer"),
    PrinterColumn("Running", ".status.pods.running", "integer"),
    PrinterColumn("Pending", ".status.pods.pending", "integer"),
    PrinterColumn("Pressure", ".status.conditions[?(@.type=='ResourcePressure')].status", priority=1),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)


def _selector_rule(field: str) -> Rule:
    there = f"!has(self.{field}) || !has(self.{field}.matchExpressions)"
    return Rule(
        f"{there} || self.{field}.matchExpressions.all(e, "
        "(e.operator in ['In', 'NotIn']) == (has(e.values) && e.values.size() > 0))",
        stated("DL-SELECTOR-VALUES", field=field),
    )


RULES = (
    Rule(
        "self.metadata.name.size() <= 63",
        stated("DL-NAME-LABEL", what="queue"),
        at="",
    ),
    Rule(
        "!(has(self.quota) && has(self.requests))",
        stated("DL-QUOTA-TWICE"),
    ),
    _selector_rule("nodeSelector"),
    _selector_rule("namespaceSelector"),
)
