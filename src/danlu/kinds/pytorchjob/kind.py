"""PyTorchJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training.platformkind import platform_kind
from danlu.kinds.pytorchjob.reconcile import JOB
from danlu.kinds.pytorchjob.schema import COLUMNS, RULES, SCALE, JobStatus, PyTorchJobSpec

KIND = platform_kind(JOB, PyTorchJobSpec, JobStatus, columns=COLUMNS, rules=RULES, scale=SCALE)
