"""A job kind as the platform sees it: all that follows from its `JobKind`, and what it says of itself."""

from __future__ import annotations

from functools import partial

import msgspec

from danlu.kinds._training.controller import TrainingReconciler
from danlu.kinds._training.jobkind import JobKind
from danlu.kinds.platform import PlatformKind, PrinterColumn, Rule
from danlu.kinds.unboundclaims import RIGHTS


def platform_kind(
    job: JobKind,
    spec: type[msgspec.Struct],
    status: type[msgspec.Struct],
    *,
    columns: tuple[PrinterColumn, ...],
    rules: tuple[Rule, ...] = (),
    scale: dict[str, str] | None = None,
) -> PlatformKind:
    return PlatformKind(
        job.kind,
        spec=spec,
        status=status,
        controller=partial(TrainingReconciler, job),
        columns=columns,
        rules=rules,
        scale=scale,
        owns=job.owns,
        rights=RIGHTS,
        suspension=job.suspension,
    )
