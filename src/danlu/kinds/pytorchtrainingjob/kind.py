"""PyTorchTrainingJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training.platformkind import platform_kind
from danlu.kinds.pytorchtrainingjob.reconcile import JOB
from danlu.kinds.pytorchtrainingjob.schema import COLUMNS, RULES, PyTorchTrainingJobSpec, TrainingJobStatus

KIND = platform_kind(JOB, PyTorchTrainingJobSpec, TrainingJobStatus, columns=COLUMNS, rules=RULES)
