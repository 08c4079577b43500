"""Kiln, put together: schema, controller, rights."""

from __future__ import annotations

from danlu.kinds.kiln.controller import KilnReconciler
from danlu.kinds.kiln.reconcile import place
from danlu.kinds.kiln.schema import COLUMNS, KILN, KilnSpec, KilnStatus
from danlu.kinds.platform import PlatformKind
from danlu.kinds.suspension import Suspension
from danlu.kinds.webapp import WebApp

KIND = PlatformKind(
    kind=KILN,
    spec=KilnSpec,
    status=KilnStatus,
    controller=KilnReconciler,
    columns=COLUMNS,
    owns=KilnReconciler.owns,
    suspension=Suspension("spec.cold"),
    app=WebApp(place),
)
