"""Queue as the platform sees it."""

from __future__ import annotations

from danlu.kinds.platform import PlatformKind, Right
from danlu.kinds.queue.controller import QueueReconciler
from danlu.kinds.queue.schema import COLUMNS, QUEUE, RULES, QueueSpec, QueueStatus
from danlu.kinds.suspension import OTHERS

KIND = PlatformKind(
    kind=QUEUE,
    spec=QueueSpec,
    status=QueueStatus,
    controller=QueueReconciler,
    columns=COLUMNS,
    rules=RULES,
    engine="t9k",
    rights=(
        Right(("",), ("pods",), ("get", "list", "watch", "delete")),
        Right(("scheduler.tensorstack.dev",), ("podgroups",), ("get", "list", "watch")),
        # Owners of pods that ran too long are suspended; of the platform's own kinds others have the right.
        *(Right((kind.group,), (kind.plural,), ("get", "patch")) for kind in OTHERS),
    ),
)
