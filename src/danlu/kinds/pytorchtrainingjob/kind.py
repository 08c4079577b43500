"""PyTorchTrainingJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._served.tensorboardspec import TENSORBOARD
from danlu.kinds._training import gang
from danlu.kinds._training.controller import training_controller
from danlu.kinds.claims import RIGHTS
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.pytorchtrainingjob.reconcile import reconcile
from danlu.kinds.pytorchtrainingjob.schema import (
    COLUMNS,
    PYTORCHTRAININGJOB,
    RULES,
    PyTorchTrainingJobSpec,
    TrainingJobStatus,
)
from danlu.meta.wellknown import POD, SERVICE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager


def controller(manager: Manager, settings: PlatformSettings) -> Controller:
    more = (*gang.kinds_of(settings), TENSORBOARD)
    return training_controller(manager, settings, "pytorchtrainingjob-controller", PYTORCHTRAININGJOB, reconcile, more)


KIND = PlatformKind(
    PYTORCHTRAININGJOB,
    spec=PyTorchTrainingJobSpec,
    status=TrainingJobStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    owns=(POD, SERVICE, TENSORBOARD, *gang.KINDS),
    rights=RIGHTS,
)
