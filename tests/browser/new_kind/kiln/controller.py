"""What a Kiln's `reconcile` sees: its pods and services."""

from __future__ import annotations

from datetime import datetime

from danlu.kinds.kiln.reconcile import reconcile
from danlu.kinds.kiln.schema import KILN
from danlu.kinds.platform import PlatformSettings
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD, SERVICE
from danlu.runtime.reconcile import Outcome
from danlu.runtime.reconciler import Children, ChildrenReconciler


class KilnReconciler(ChildrenReconciler):
    kind = KILN
    owns = (POD, SERVICE)

    def __init__(self, _settings: PlatformSettings) -> None:
        pass

    def decide(self, obj: Object, seen: Children, now: datetime) -> Outcome:
        return reconcile(obj, seen[POD], seen[SERVICE], rfc3339(now))
