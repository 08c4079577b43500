"""LauncherJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training.platformkind import platform_kind
from danlu.kinds.launcherjob.reconcile import JOB
from danlu.kinds.launcherjob.schema import COLUMNS, RULES, JobStatus, LauncherJobSpec

KIND = platform_kind(JOB, LauncherJobSpec, JobStatus, columns=COLUMNS, rules=RULES)
