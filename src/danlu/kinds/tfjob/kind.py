"""TFJob, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds._training import gang
from danlu.kinds._training.controller import training_controller
from danlu.kinds.claims import RIGHTS
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.tfjob.reconcile import TFJOB, reconcile
from danlu.kinds.tfjob.schema import COLUMNS, RULES, JobStatus, TFJobSpec
from danlu.meta.wellknown import POD, SERVICE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager


def controller(manager: Manager, settings: PlatformSettings) -> Controller:
    return training_controller(manager, settings, "tfjob-controller", TFJOB, reconcile, gang.kinds_of(settings))


KIND = PlatformKind(
    TFJOB,
    spec=TFJobSpec,
    status=JobStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    owns=(POD, SERVICE, *gang.KINDS),
    rights=RIGHTS,
)
