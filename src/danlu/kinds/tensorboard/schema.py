"""TensorBoard's status, and what its CRD refuses; its spec is shared with the job kinds."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._served.tensorboardspec import TENSORBOARD, TensorBoardSpec, rules
from danlu.kinds.crd import Condition
from danlu.kinds.platform import PrinterColumn, Rule

__all__ = ["COLUMNS", "RULES", "TENSORBOARD", "TensorBoardSpec", "TensorBoardStatus"]


class PodReference(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""


class PodState(msgspec.Struct, rename="camel"):
    phase: str = ""
    reference: PodReference | None = None


class TensorBoardStatus(msgspec.Struct, rename="camel"):
    phase: Annotated[str, Meta(description="Initializing, Running or Suspended.")] = ""
    conditions: list[Condition] = []
    pod: PodState | None = None
    url: Annotated[str, Meta(description="Where the TensorBoard is reached.")] = ""


COLUMNS = (
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    PrinterColumn("URL", ".status.url", priority=1),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)
RULES = (
    Rule(
        "self.metadata.name.size() <= 63",
        stated("DL-NAME-LABEL", what="TensorBoard"),
        at="",
    ),
    *rules("spec"),
)
