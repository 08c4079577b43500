"""TensorBoard as the platform sees it."""

from __future__ import annotations

from danlu.kinds import claims
from danlu.kinds._served.controller import ServedKind, served_controller
from danlu.kinds.platform import PlatformKind, PlatformSettings, Right
from danlu.kinds.tensorboard.reconcile import needs, reconcile
from danlu.kinds.tensorboard.schema import COLUMNS, RULES, TENSORBOARD, TensorBoardSpec, TensorBoardStatus
from danlu.meta.wellknown import SERVICE, STATEFUL_SET
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager

OWNS = (STATEFUL_SET, SERVICE)


def controller(manager: Manager, settings: PlatformSettings) -> Controller:
    return served_controller(manager, settings, ServedKind(TENSORBOARD, OWNS, reconcile, needs))


KIND = PlatformKind(
    kind=TENSORBOARD,
    spec=TensorBoardSpec,
    status=TensorBoardStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    owns=OWNS,
    rights=(*claims.RIGHTS, Right(("",), ("pods",), ("get", "list", "watch"))),
)
