"""PyTorchJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training import gang
from danlu.kinds._training.controller import training_controller
from danlu.kinds.claims import RIGHTS
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.pytorchjob.autoscaling import AUTOSCALER
from danlu.kinds.pytorchjob.reconcile import PYTORCHJOB, reconcile
from danlu.kinds.pytorchjob.schema import COLUMNS, RULES, SCALE, JobStatus, PyTorchJobSpec
from danlu.meta.wellknown import POD, SERVICE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager


def controller(manager: Manager, settings: PlatformSettings) -> Controller:
    more = [*gang.kinds_of(settings), *([AUTOSCALER] if settings.autoscaling else [])]
    return training_controller(manager, settings, "pytorchjob-controller", PYTORCHJOB, reconcile, more)


KIND = PlatformKind(
    PYTORCHJOB,
    spec=PyTorchJobSpec,
    status=JobStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    scale=SCALE,
    owns=(POD, SERVICE, AUTOSCALER, *gang.KINDS),
    rights=RIGHTS,
)
