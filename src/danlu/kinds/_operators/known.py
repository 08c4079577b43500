"""Operators that look after kinds of ours elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from danlu.meta.kind import Object


@dataclass(frozen=True, slots=True)
class KnownOperator:
    name: str  # as people call it
    manager: str  # what stands in a job's spec.runPolicy.managedBy
    group: str  # of the kinds
    images: tuple[str, ...]  # parts of the names of its images
    webhook_suffix: str  # with which the names of its webhooks end

    def is_workload(self, deployment: Object) -> bool:
        template: Any = (deployment.get("spec") or {}).get("template") or {}
        containers = (template.get("spec") or {}).get("containers") or ()
        return any(part in str(container.get("image")) for container in containers for part in self.images)


TRAINING_OPERATOR = KnownOperator(
    name="Kubeflow's training-operator",
    manager="kubeflow.org/training-operator",
    group="kubeflow.org",
    images=("training-operator", "kubeflow/training"),
    webhook_suffix=".training-operator.kubeflow.org",
)
KNOWN: Sequence[KnownOperator] = (TRAINING_OPERATOR,)
