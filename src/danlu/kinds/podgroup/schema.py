"""PodGroup's spec and status, and what its CRD refuses."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._gang.markers import DEFAULT_QUEUE, POD_GROUP
from danlu.kinds.crd import LARGEST_INT32, Condition, Quantities, stored_default
from danlu.kinds.platform import PrinterColumn, Rule

__all__ = ["COLUMNS", "POD_GROUP", "RULES", "PodGroupSpec", "PodGroupStatus"]


class Role(msgspec.Struct, rename="camel"):
    name: Annotated[
        str, Meta(min_length=1, max_length=63, description="As in the pods' label scheduler.tensorstack.dev/role.")
    ]
    min_member: Annotated[int, Meta(ge=0, le=LARGEST_INT32, description="How many pods of the role at least.")] = 0


class PodGroupSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    min_member: Annotated[
        int,
        Meta(ge=0, le=LARGEST_INT32, description="So many pods at least are placed at once, or none."),
        stored_default(1),
    ] = 1
    roles: Annotated[list[Role], Meta(max_length=32, description="Minima of single roles, besides minMember.")] = []
    queue: Annotated[
        str,
        Meta(min_length=1, max_length=63, description="The queue whose room the pods use."),
        stored_default(DEFAULT_QUEUE),
    ] = DEFAULT_QUEUE
    priority: Annotated[
        int, Meta(ge=0, le=100, description="Order within the queue: larger ones first."), stored_default(0)
    ] = 0
    topology_policy: Annotated[str, Meta(description="Kept for manifests that have it; not used.")] = ""


class PodGroupStatus(msgspec.Struct, rename="camel"):
    conditions: Annotated[list[Condition], Meta(description="SufficientGroupMember, GroupScheduled.")] = []
    allocated: Annotated[Quantities, Meta(description="What pods with a node request together.")] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0


COLUMNS = (
    PrinterColumn("Queue", ".spec.queue"),
    PrinterColumn("Min", ".spec.minMember", "integer"),
    PrinterColumn("Running", ".status.running", "integer"),
    PrinterColumn("Scheduled", ".status.conditions[?(@.type=='GroupScheduled')].status"),
    PrinterColumn("Reason", ".status.conditions[?(@.type=='GroupScheduled')].reason"),
    PrinterColumn("Message", ".status.conditions[?(@.type=='GroupScheduled')].message", priority=1),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)
RULES = (
    Rule(
        "self.metadata.name.size() <= 63",
        stated("DL-NAME-LABEL", what="group"),
        at="",
    ),
    Rule(
        "!has(self.roles) || self.roles.all(r, self.roles.exists_one(o, o.name == r.name))",
        stated("DL-ROLE-TWICE"),
    ),
)
