"""PodGroup as the platform sees it."""

from __future__ import annotations

from danlu.kinds.platform import PlatformKind, Right
from danlu.kinds.podgroup.controller import PodGroupReconciler
from danlu.kinds.podgroup.schema import COLUMNS, POD_GROUP, RULES, PodGroupSpec, PodGroupStatus

KIND = PlatformKind(
    kind=POD_GROUP,
    spec=PodGroupSpec,
    status=PodGroupStatus,
    controller=PodGroupReconciler,
    columns=COLUMNS,
    rules=RULES,
    engine="t9k",
    rights=(Right(("",), ("pods",), ("get", "list", "watch")),),
)
