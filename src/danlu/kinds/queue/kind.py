"""Queue as the platform sees it."""

from __future__ import annotations

from danlu.kinds.platform import PlatformKind, Right
from danlu.kinds.queue.controller import controller
from danlu.kinds.queue.schema import COLUMNS, QUEUE, RULES, QueueSpec, QueueStatus

KIND = PlatformKind(
    kind=QUEUE,
    spec=QueueSpec,
    status=QueueStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    rights=(
        Right(("",), ("pods",), ("get", "list", "watch", "delete")),
        Right(("scheduler.tensorstack.dev",), ("podgroups",), ("get", "list", "watch")),
        # Owners of pods that ran too long are paused.
        Right(("batch.tensorstack.dev", "tensorstack.dev", "kubeflow.org"), ("*",), ("get", "patch")),
        Right(("apps",), ("deployments", "statefulsets", "replicasets"), ("get", "patch")),
        Right(("batch",), ("jobs",), ("get", "patch")),
    ),
)
