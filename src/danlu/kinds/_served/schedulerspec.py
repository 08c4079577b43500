"""`spec.scheduler`: how an object asks for the T9k scheduler; the same words in every kind."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class T9kScheduler(msgspec.Struct, omit_defaults=True):
    queue: Annotated[str, Meta(min_length=1, description="The queue whose quota the pods use.")]
    priority: Annotated[int, Meta(ge=0, le=100, description="Order within the queue; 0 if not given.")] | None = None


class Scheduler(msgspec.Struct, omit_defaults=True):
    t9kScheduler: Annotated[T9kScheduler, Meta(description="Absent: the cluster's default scheduler.")] | None = None
