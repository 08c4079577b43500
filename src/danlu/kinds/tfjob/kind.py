"""TFJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training.platformkind import platform_kind
from danlu.kinds.tfjob.reconcile import JOB
from danlu.kinds.tfjob.schema import COLUMNS, RULES, JobStatus, TFJobSpec

KIND = platform_kind(JOB, TFJobSpec, JobStatus, columns=COLUMNS, rules=RULES)
