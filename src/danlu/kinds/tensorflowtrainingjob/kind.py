"""TensorFlowTrainingJob and its other name, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._served.tensorboardspec import TENSORBOARD
from danlu.kinds._training import gang
from danlu.kinds._training.controller import training_controller
from danlu.kinds.claims import RIGHTS
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.tensorflowtrainingjob.reconcile import reconcile
from danlu.kinds.tensorflowtrainingjob.schema import (
    COLUMNS,
    RULES,
    TENSORFLOWJOB,
    TENSORFLOWTRAININGJOB,
    TensorFlowTrainingJobSpec,
    TrainingJobStatus,
)
from danlu.meta.kind import Kind
from danlu.meta.wellknown import POD, SERVICE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager


def _platform(kind: Kind) -> PlatformKind:
    def controller(manager: Manager, settings: PlatformSettings) -> Controller:
        name = f"{kind.kind.lower()}-controller"
        more = (*gang.kinds_of(settings), TENSORBOARD)
        return training_controller(manager, settings, name, kind, reconcile, more)

    return PlatformKind(
        kind,
        spec=TensorFlowTrainingJobSpec,
        status=TrainingJobStatus,
        controller=controller,
        columns=COLUMNS,
        rules=RULES,
        owns=(POD, SERVICE, TENSORBOARD, *gang.KINDS),
        rights=RIGHTS,
    )


KIND = _platform(TENSORFLOWTRAININGJOB)
OTHER_NAME = _platform(TENSORFLOWJOB)
