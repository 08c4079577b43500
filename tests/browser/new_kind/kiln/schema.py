"""Kiln's spec and status as they are written."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.kinds.crd import Condition
from danlu.kinds.platform import PrinterColumn
from danlu.meta.kind import Kind

KILN = Kind("pottery.example.dev", "v1", "Kiln", "kilns", True, ("kl",), ("danlu",))


class KilnSpec(msgspec.Struct, rename="camel"):
    """Fires what is put into it."""

    image: Annotated[str, Meta(description="What its pod runs.")] = "python:3"
    heat: Annotated[int, Meta(ge=0, le=1400, description="Degrees Celsius.")] = 900
    cores: Annotated[int, Meta(ge=1, description="Cores that it asks for.")] = 1
    queue: Annotated[str, Meta(description="The T9k queue in which its pod waits for room.")] = ""
    cold: Annotated[bool, Meta(description="True lets it cool down: its pod goes.")] = False


class KilnStatus(msgspec.Struct, rename="camel"):
    phase: Annotated[str, Meta(description="Pending, Firing or Cold.")] = ""
    conditions: list[Condition] = []


COLUMNS = (
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Heat", ".spec.heat", "integer"),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)
