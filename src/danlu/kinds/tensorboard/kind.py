"""TensorBoard as the platform sees it."""

from __future__ import annotations

from danlu.kinds import unboundclaims
from danlu.kinds._served.controller import PageKind, PageReconciler
from danlu.kinds.platform import PlatformKind, PlatformSettings, Right
from danlu.kinds.suspension import SUSPEND
from danlu.kinds.tensorboard.reconcile import needs, place, reconcile
from danlu.kinds.tensorboard.schema import COLUMNS, RULES, TENSORBOARD, TensorBoardSpec, TensorBoardStatus
from danlu.kinds.webapp import WebApp
from danlu.meta.wellknown import SERVICE, STATEFUL_SET

OWNS = (STATEFUL_SET, SERVICE)


def controller(settings: PlatformSettings) -> PageReconciler:
    return PageReconciler(PageKind(TENSORBOARD, OWNS, reconcile, needs), settings)


KIND = PlatformKind(
    kind=TENSORBOARD,
    spec=TensorBoardSpec,
    status=TensorBoardStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    owns=OWNS,
    rights=(*unboundclaims.RIGHTS, Right(("",), ("pods",), ("get", "list", "watch"))),
    suspension=SUSPEND,
    # It marks its page as `identity`, and over that a Kubernetes API server breaks off.
    app=WebApp(place, knows_path=True, through_api=False),
)
