"""The fields of a PyTorchJob."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._training.job import MOST_REPLICAS
from danlu.kinds._training.kubeflow.schema import COLUMNS, JobStatus, ReplicaSpec, RunPolicy, rules
from danlu.kinds.crd import LARGEST_INT32, FreeForm
from danlu.kinds.platform import Rule

__all__ = ["COLUMNS", "RULES", "SCALE", "JobStatus", "PyTorchJobSpec"]


class RendezvousOption(msgspec.Struct, omit_defaults=True):
    key: str | None = None
    value: str | None = None


class ElasticPolicy(msgspec.Struct, omit_defaults=True):
    """Workers may come and go while torchrun trains on."""

    minReplicas: (
        Annotated[int, Meta(ge=1, le=MOST_REPLICAS, description="Fewer workers than this do not train.")] | None
    ) = None
    maxReplicas: (
        Annotated[int, Meta(ge=1, le=MOST_REPLICAS, description="More workers than this are not made.")] | None
    ) = None
    rdzvBackend: Annotated[Literal["c10d", "etcd", "etcd-v2"], Meta(description="c10d if not given.")] | None = None
    rdzvPort: Annotated[int, Meta(ge=1, le=65535, description="Port of the meeting point.")] | None = None
    rdzvHost: Annotated[str, Meta(description="Where workers meet; the first worker if not given.")] | None = None
    rdzvId: Annotated[str, Meta(description="Name of the meeting; workers of one job say the same.")] | None = None
    rdzvConf: Annotated[list[RendezvousOption], Meta(description="Further options of the backend.")] | None = None
    standalone: Annotated[bool, Meta(description="One node that meets nobody.")] | None = None
    nProcPerNode: (
        Annotated[int, Meta(ge=1, le=LARGEST_INT32, description="Deprecated: use spec.nprocPerNode.")] | None
    ) = None
    maxRestarts: (
        Annotated[int, Meta(ge=0, le=LARGEST_INT32, description="Times torchrun starts its processes again.")] | None
    ) = None
    metrics: (
        Annotated[list[FreeForm], Meta(description="Metrics (autoscaling/v2) by which workers are added.")] | None
    ) = None


class PyTorchJobSpec(msgspec.Struct, omit_defaults=True):
    """A data-parallel training with torch."""

    pytorchReplicaSpecs: Annotated[
        dict[str, ReplicaSpec], Meta(max_length=2, description="Master (at most one) and Worker.")
    ]
    runPolicy: RunPolicy | None = None
    elasticPolicy: ElasticPolicy | None = None
    nprocPerNode: (
        Annotated[
            str,
            Meta(
                pattern="^(auto|cpu|gpu|[1-9][0-9]{0,8})$",
                description="Processes that torchrun starts in each pod: auto (the default), cpu, gpu, or a number.",
            ),
        ]
        | None
    ) = None


SCALE = {
    "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
    "statusReplicasPath": ".status.replicaStatuses.Worker.active",
    "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
}

ROLES = "spec.pytorchReplicaSpecs"
RULES = (
    *rules("pytorchReplicaSpecs", "pytorch"),
    Rule(
        "self.all(role, role in ['Master', 'Worker'])",
        message_expression="'spec.pytorchReplicaSpecs[' + self.filter(role, !(role in ['Master', 'Worker']))[0] + ']: "
        "Unsupported value: \"' + self.filter(role, !(role in ['Master', 'Worker']))[0] + '\": "
        'supported values: "Master", "Worker"\'',
        at=ROLES,
    ),
    Rule(
        "!('Master' in self.pytorchReplicaSpecs) || self.pytorchReplicaSpecs['Master'].?replicas.orValue(0) == 1",
        "must be 1",
        reason="FieldValueForbidden", field_path=".pytorchReplicaSpecs['Master'].replicas",
    ),
    Rule(
        "!('Worker' in self.pytorchReplicaSpecs) || self.pytorchReplicaSpecs['Worker'].?replicas.orValue(1) >= 1",
        "must be at least 1",
        reason="FieldValueForbidden", field_path=".pytorchReplicaSpecs['Worker'].replicas",
    ),
    Rule(
        "!has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode) || !has(self.nprocPerNode)",
        "must not be used with spec.nprocPerNode",
        reason="FieldValueForbidden", field_path=".elasticPolicy.nProcPerNode",
    ),
    Rule(
        "!has(self.elasticPolicy) || 'Worker' in self.pytorchReplicaSpecs",
        "must be configured if elastic policy is used",
        reason="FieldValueRequired", field_path=".pytorchReplicaSpecs['Worker']",
    ),
    Rule(
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        stated("DL-ELASTIC-RANGE"), at="spec.elasticPolicy",
    ),
)  # fmt: skip
