"""TensorFlowTrainingJob and its other name, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training.platformkind import platform_kind
from danlu.kinds.platform import PlatformKind
from danlu.kinds.tensorflowtrainingjob.reconcile import JOBS
from danlu.kinds.tensorflowtrainingjob.schema import (
    COLUMNS,
    RULES,
    TENSORFLOWJOB,
    TENSORFLOWTRAININGJOB,
    TensorFlowTrainingJobSpec,
    TrainingJobStatus,
)
from danlu.meta.kind import Kind


def _named(kind: Kind) -> PlatformKind:
    return platform_kind(JOBS[kind.kind], TensorFlowTrainingJobSpec, TrainingJobStatus, columns=COLUMNS, rules=RULES)


KIND = _named(TENSORFLOWTRAININGJOB)
TENSORFLOWJOB_ALIAS = _named(TENSORFLOWJOB)
KINDS = (KIND, TENSORFLOWJOB_ALIAS)
