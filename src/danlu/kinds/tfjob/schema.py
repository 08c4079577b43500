"""The fields of a TFJob."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.kinds._training.job import MOST_TENSORFLOW_REPLICAS
from danlu.kinds._training.kubeflow.schema import COLUMNS, JobStatus, ReplicaSpec, RunPolicy, rules
from danlu.kinds.platform import Rule

__all__ = ["COLUMNS", "RULES", "JobStatus", "TFJobSpec"]


class TFJobSpec(msgspec.Struct, omit_defaults=True):
    """A distributed training with TensorFlow."""

    tfReplicaSpecs: Annotated[
        dict[str, ReplicaSpec], Meta(max_length=5, description="Chief or Master, Worker, PS, Evaluator.")
    ]
    runPolicy: RunPolicy | None = None
    successPolicy: (
        Annotated[
            Literal["", "AllWorkers"],
            Meta(
                description="Without a chief the first worker's success is the job's; with AllWorkers every worker "
                "must succeed."
            ),
        ]
        | None
    ) = None
    enableDynamicWorker: (
        Annotated[bool, Meta(description="Workers may come, go and fail: each is told only of itself and of PS.")]
        | None
    ) = None


ROLES = "spec.tfReplicaSpecs"
KNOWN = "['ps', 'worker', 'chief', 'master', 'evaluator']"
UNKNOWN = f"self.filter(role, !(role.lowerAscii() in {KNOWN}))[0]"
CHIEFS = "self.filter(role, role.lowerAscii() in ['chief', 'master'])"
RULES = (
    *rules("tfReplicaSpecs", "tensorflow", MOST_TENSORFLOW_REPLICAS),
    Rule(
        f"self.all(role, role.lowerAscii() in {KNOWN})",
        message_expression=f"'spec.tfReplicaSpecs[' + {UNKNOWN} + ']: Unsupported value: \"' + {UNKNOWN} + '\": "
        'supported values: "PS", "Worker", "Chief", "Master", "Evaluator"\'',
        at=ROLES,
    ),
    Rule(
        "self.all(role, self.exists_one(other, other.lowerAscii() == role.lowerAscii()))",
        "must name each role once, in whatever letter case",
        at=ROLES,
    ),
    Rule(
        f"{CHIEFS}.size() <= 1", "must not have more than 1 Chief or Master role",
        at=ROLES, reason="FieldValueForbidden",
    ),
    Rule(
        f"{CHIEFS}.all(role, self[role].?replicas.orValue(1) == 1)",
        "must not have more or less than 1 replica of Chief or Master",
        at=ROLES, reason="FieldValueForbidden",
    ),
    Rule(
        "self.exists(role, role.lowerAscii() in ['worker', 'chief', 'master'])",
        "must have Worker, Chief or Master: PS and Evaluator never end by themselves",
        at=ROLES, reason="FieldValueRequired",
    ),
)  # fmt: skip
