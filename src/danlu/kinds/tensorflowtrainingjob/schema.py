"""The fields of a TensorFlowTrainingJob."""

from __future__ import annotations

from danlu.diagnose import stated
from danlu.kinds._training.job import MOST_TENSORFLOW_REPLICAS
from danlu.kinds._training.tensorstack import schema
from danlu.kinds._training.tensorstack.schema import COLUMNS, EACH, TrainingJobSpec, TrainingJobStatus
from danlu.kinds.platform import Rule
from danlu.meta.kind import Kind

__all__ = [
    "COLUMNS",
    "RULES",
    "TENSORFLOWJOB",
    "TENSORFLOWTRAININGJOB",
    "TensorFlowTrainingJobSpec",
    "TrainingJobStatus",
]

GROUP = "batch.tensorstack.dev"
TENSORFLOWTRAININGJOB = Kind(
    GROUP, "v1beta1", "TensorFlowTrainingJob", "tensorflowtrainingjobs", True, ("tj",), ("danlu",)
)
# One tutorial writes this name; people have manifests with it.
TENSORFLOWJOB = Kind(GROUP, "v1beta1", "TensorFlowJob", "tensorflowjobs", True, (), ("danlu",))

TYPES = ("chief", "worker", "ps", "evaluator")


class TensorFlowTrainingJobSpec(TrainingJobSpec, omit_defaults=True):
    """A training with TensorFlow. The chief, or worker 0 where there is none, speaks for the job."""


RULES = (
    *schema.RULES,
    schema.total_rule(MOST_TENSORFLOW_REPLICAS),
    Rule(
        f"self.type.lowerAscii() in {[*TYPES]}",
        message_expression="'type \"' + self.type + '\" is not known: chief, worker, ps or evaluator'",
        at=EACH,
    ),
    Rule(
        "self.replicaSpecs.exists(r, r.type.lowerAscii() in ['chief', 'worker'])",
        stated("DL-NOBODY-TRAINS"),
    ),
    Rule(
        "!self.replicaSpecs.exists(r, r.type.lowerAscii() in ['chief', 'evaluator'] && r.?replicas.orValue(1) > 1)",
        stated("DL-ONE-CHIEF"),
    ),
    Rule(
        "!has(self.template.spec) || self.template.spec.containers.exists(c, c.name == 'tensorflow')",
        "must have a container with name tensorflow",
        at=EACH, reason="FieldValueRequired", field_path=".template.spec.containers",
    ),
)  # fmt: skip
