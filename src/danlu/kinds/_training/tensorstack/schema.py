"""Fields that all jobs of batch.tensorstack.dev have, and the rules that hold for all of them.

Every spelling that was ever documented is taken: `enable` for `enabled`, clean-up policies in lower case.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.diagnose.contract import SUBSTITUTED
from danlu.kinds._served import tensorboardspec
from danlu.kinds._served.schedulerspec import Scheduler
from danlu.kinds._training.job import MOST_REPLICAS
from danlu.kinds.crd import LARGEST_INT32, Condition, FreeForm, PodTemplate
from danlu.kinds.platform import PrinterColumn, Rule

TYPE = "^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$"


class ReplicaSpec(msgspec.Struct, omit_defaults=True):
    """Replicas of one type: the same pod, numbered from 0."""

    type: Annotated[str, Meta(min_length=1, max_length=30, pattern=TYPE, description="Name of this sort of replica.")]
    template: Annotated[PodTemplate, Meta(description="The pod of each replica.")]
    replicas: Annotated[int, Meta(ge=1, le=MOST_REPLICAS, description="How many; 1 if not given.")] | None = None
    restartPolicy: (
        Annotated[
            Literal["Always", "OnFailure", "Never", "ExitCode"],
            Meta(
                description="What happens to a replica that ends. Never (the default): it is left as it is. OnFailure: "
                "a new pod after any code but 0. Always: a new pod. ExitCode: a new pod after 130, 137, 138 and 143."
            ),
        ]
        | None
    ) = None


class WeightedReplicaSpec(ReplicaSpec, omit_defaults=True):
    scalingWeight: (
        Annotated[int, Meta(ge=0, le=1000, description="This type's share of an elastic job's replicas.")] | None
    ) = None


class DebugReplica(msgspec.Struct, omit_defaults=True):
    type: str
    skipInitContainer: bool | None = None
    command: Annotated[list[str], Meta(description='What runs instead; ["sleep", "inf"] if not given.')] | None = None


class Debug(msgspec.Struct, omit_defaults=True):
    enabled: Annotated[bool, Meta(description="Pods are made, and wait for somebody to look around.")] | None = None
    enable: Annotated[bool, Meta(description="The older spelling of `enabled`.")] | None = None
    replicaSpecs: list[DebugReplica] | None = None


# Bounded, because a rule compares them: a server refuses rules that could take long to answer.
Word = Annotated[str, Meta(max_length=16384)]
MOST_WORDS = 64


class ResumeReplica(msgspec.Struct, omit_defaults=True):
    type: Annotated[str, Meta(max_length=30)]
    skipInitContainer: bool | None = None
    command: (
        Annotated[
            list[Word], Meta(max_length=MOST_WORDS, description="What runs after a pause; the template's if not given.")
        ]
        | None
    ) = None
    args: Annotated[list[Word], Meta(max_length=MOST_WORDS)] | None = None


class Pause(msgspec.Struct, omit_defaults=True):
    enabled: Annotated[bool, Meta(description="Ends the pods and waits until it is false.")] | None = None
    enable: Annotated[bool, Meta(description="The older spelling of `enabled`.")] | None = None
    resumeSpecs: Annotated[list[ResumeReplica], Meta(max_length=20)] | None = None


class RunMode(msgspec.Struct, omit_defaults=True):
    debug: Debug | None = None
    pause: Pause | None = None


class RunPolicy(msgspec.Struct, omit_defaults=True):
    activeDeadlineSeconds: (
        Annotated[int, Meta(ge=1, le=LARGEST_INT32, description="A job that runs longer has failed.")] | None
    ) = None
    backoffLimit: (
        Annotated[int, Meta(ge=0, le=LARGEST_INT32, description="Restarts of all replicas together; 3 if not given.")]
        | None
    ) = None
    cleanUpPolicy: (
        Annotated[
            str,
            Meta(
                max_length=20, description="Pods that go when the job has ended: None (the default), Unfinished, All."
            ),
        ]
        | None
    ) = None


class TrainingJobSpec(msgspec.Struct, omit_defaults=True):
    replicaSpecs: Annotated[list[ReplicaSpec], Meta(min_length=1, max_length=20, description="Types of replicas.")]
    runMode: Annotated[RunMode, Meta(description="Absent: the job runs at once.")] | None = None
    runPolicy: RunPolicy | None = None
    scheduler: Annotated[Scheduler, Meta(description="Absent: the cluster's default scheduler.")] | None = None
    tensorboardSpec: (
        Annotated[tensorboardspec.TensorBoardSpec, Meta(description="A TensorBoard that belongs to the job.")] | None
    ) = None


class Aggregate(msgspec.Struct):
    creating: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    deleted: int = 0


class ContainerStatus(msgspec.Struct, omit_defaults=True):
    name: str
    state: Annotated[str, Meta(description="Waiting, Running, Terminated or Unknown.")] | None = None
    exitCode: int | None = None


class ReplicaStatus(msgspec.Struct, omit_defaults=True):
    name: str
    uid: str | None = None
    phase: Annotated[str, Meta(description="Creating, a pod's phase, or Deleted.")] | None = None
    containers: list[ContainerStatus] | None = None


class TaskStatus(msgspec.Struct, omit_defaults=True):
    type: str
    restartCount: int | None = None
    replicas: list[ReplicaStatus] | None = None


class Dependent(msgspec.Struct, omit_defaults=True):
    apiVersion: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class DependentStatus(msgspec.Struct, omit_defaults=True):
    name: str | None = None
    dependent: Dependent | None = None
    ready: bool | None = None
    reason: str | None = None
    action: str | None = None
    note: str | None = None
    type: Annotated[str, Meta(description="Normal or Warning.")] | None = None
    causes: Annotated[list[FreeForm], Meta(description="The note for programs: each with code and params.")] | None = (
        None
    )


class TrainingJobStatus(msgspec.Struct, omit_defaults=True):
    phase: (
        Annotated[str, Meta(description="Pending, Running, Paused, Resuming, Succeeded, Failed or Unknown.")] | None
    ) = None
    conditions: list[Condition] | None = None
    aggregate: Annotated[Aggregate, Meta(description="Pods, by state.")] | None = None
    tasks: list[TaskStatus] | None = None
    backoffCount: Annotated[int, Meta(description="Restarts so far, of all replicas.")] | None = None
    tensorboard: DependentStatus | None = None
    startTime: Annotated[str, Meta(description="When it was started, or resumed.")] | None = None
    completionTime: str | None = None


COLUMNS = (
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Running", ".status.aggregate.running", "integer"),
    PrinterColumn("Succeeded", ".status.aggregate.succeeded", "integer", priority=1),
    PrinterColumn("Failed", ".status.aggregate.failed", "integer", priority=1),
    PrinterColumn("Restarts", ".status.backoffCount", "integer"),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    PrinterColumn("Note", f".status.conditions[?(@.type=='{SUBSTITUTED}')].message", priority=1),
)

EACH = "spec.replicaSpecs.[]"
NAME = "self.metadata.name"
RESUME_SPECS_ARE_FIXED = stated("DL-RESUME-FIXED")


def total_rule(most: int) -> Rule:
    return Rule(
        f"self.replicaSpecs.map(r, r.?replicas.orValue(1)).sum() <= {most}",
        stated("DL-TOO-MANY-REPLICAS", most=most),
    )


RULES = (
    Rule(
        f"{NAME}.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        stated("DL-NAME-HOST"),
        at="",
    ),
    Rule(
        f"self.spec.replicaSpecs.all(r, {NAME}.size() + r.type.size() + 8 + "
        "string(r.?replicas.orValue(1)).size() <= 63)",
        stated("DL-NAME-LONG"),
        at="",
    ),
    Rule(
        "self.replicaSpecs.all(a, self.replicaSpecs.exists_one(b, b.type == a.type))",
        stated("DL-TYPE-TWICE"),
    ),
    Rule(
        "has(self.template.spec)",
        "must be specified",
        at=EACH, reason="FieldValueRequired", field_path=".template.spec",
    ),
    Rule(
        "!has(self.template.spec) || self.template.spec.containers.size() > 0",
        "must have at least one container",
        at=EACH, reason="FieldValueRequired", field_path=".template.spec.containers",
    ),
    Rule(
        "has(self.image) && self.image != ''", "must be given",
        at=f"{EACH}.template.spec.containers.[]", reason="FieldValueRequired", field_path=".image",
    ),
    Rule(
        "self.lowerAscii() in ['none', 'unfinished', 'all']",
        "must be None, Unfinished or All",
        at="spec.runPolicy.cleanUpPolicy",
    ),
    Rule(
        "has(self.resumeSpecs) == has(oldSelf.resumeSpecs)", RESUME_SPECS_ARE_FIXED,
        at="spec.runMode.pause",
    ),
    Rule("self == oldSelf", RESUME_SPECS_ARE_FIXED, at="spec.runMode.pause.resumeSpecs"),
    *tensorboardspec.rules("spec.tensorboardSpec"),
)  # fmt: skip
