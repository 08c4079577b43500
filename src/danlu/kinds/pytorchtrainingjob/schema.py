"""The fields of a PyTorchTrainingJob."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._training.job import MOST_REPLICAS
from danlu.kinds._training.tensorstack import schema
from danlu.kinds._training.tensorstack.schema import COLUMNS, TrainingJobStatus, WeightedReplicaSpec
from danlu.kinds.crd import LARGEST_INT32
from danlu.kinds.platform import Rule
from danlu.meta.kind import Kind

__all__ = ["COLUMNS", "PYTORCHTRAININGJOB", "RULES", "PyTorchTrainingJobSpec", "TrainingJobStatus"]

PYTORCHTRAININGJOB = Kind(
    "batch.tensorstack.dev", "v1beta1", "PyTorchTrainingJob", "pytorchtrainingjobs", True, ("pj",), ("danlu",)
)


class TorchrunConfig(msgspec.Struct, omit_defaults=True):
    """The training container runs `torchrun <options> <its args>`; its command is ignored."""

    enabled: bool | None = None
    enable: Annotated[bool, Meta(description="The older spelling of `enabled`.")] | None = None
    maxRestarts: (
        Annotated[int, Meta(ge=0, le=LARGEST_INT32, description="Times torchrun starts its processes again.")] | None
    ) = None
    procPerNode: (
        Annotated[int | str, Meta(description="Processes in each pod: a number, gpu, cpu or auto; 1 if not given.")]
        | None
    ) = None
    rdzvBackend: Annotated[str, Meta(description="How replicas meet; c10d if not given.")] | None = None
    extraOptions: Annotated[list[str], Meta(description="Further options of torchrun.")] | None = None


class Elastic(msgspec.Struct, omit_defaults=True):
    enabled: bool | None = None
    enable: Annotated[bool, Meta(description="The older spelling of `enabled`.")] | None = None
    minReplicas: (
        Annotated[int, Meta(ge=1, le=MOST_REPLICAS, description="Fewer replicas than this do not train.")] | None
    ) = None
    maxReplicas: (
        Annotated[int, Meta(ge=1, le=MOST_REPLICAS, description="More replicas than this are not made.")] | None
    ) = None
    expectedReplicas: (
        Annotated[int, Meta(ge=1, le=MOST_REPLICAS, description="Replicas wanted now; may be changed.")] | None
    ) = None


class PyTorchTrainingJobSpec(schema.TrainingJobSpec, omit_defaults=True):
    """A data-parallel training with torch. Index 0 of the first type is the master, which speaks for the job."""

    replicaSpecs: Annotated[  # type: ignore[assignment]
        list[WeightedReplicaSpec], Meta(min_length=1, max_length=20, description="Types of replicas, in rank order.")
    ]
    torchrunConfig: TorchrunConfig | None = None
    elastic: Elastic | None = None


ENABLED = "({0}.?enabled.orValue({0}.?enable.orValue(false)))"
RULES = (
    *schema.RULES,
    schema.total_rule(MOST_REPLICAS),
    Rule(
        "!has(self.elastic) || !" + ENABLED.format("self.elastic") + " || (has(self.torchrunConfig) && "
        + ENABLED.format("self.torchrunConfig") + ")",
        stated("DL-ELASTIC-TORCHRUN"),
    ),
    Rule(
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        stated("DL-ELASTIC-RANGE"),
        at="spec.elastic",
    ),
    Rule(
        "!has(self.expectedReplicas) || (self.expectedReplicas >= self.?minReplicas.orValue(1) && "
        f"self.expectedReplicas <= self.?maxReplicas.orValue({MOST_REPLICAS}))",
        stated("DL-ELASTIC-EXPECTED"),
        at="spec.elastic",
    ),
    Rule(
        "self.?minReplicas.orValue(0) == oldSelf.?minReplicas.orValue(0) && "
        "self.?maxReplicas.orValue(0) == oldSelf.?maxReplicas.orValue(0)",
        stated("DL-ELASTIC-FIXED"),
        at="spec.elastic",
    ),
    Rule(
        "!(type(self) == string) || string(self).matches('^(gpu|cpu|auto|[1-9][0-9]*)$')",
        "must be a number, gpu, cpu or auto",
        at="spec.torchrunConfig.procPerNode",
    ),
)  # fmt: skip
