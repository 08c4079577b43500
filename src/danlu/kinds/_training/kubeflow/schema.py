"""Fields that all jobs of kubeflow.org/v1 have, and the rules that hold for all of them.

Where upstream's admission webhook has a text, the rule says the same; where upstream accepts what can only be a
mistake, the text is ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.diagnose.contract import SUBSTITUTED
from danlu.kinds._training.job import MOST_REPLICAS
from danlu.kinds.crd import LARGEST_INT32, FreeForm, PodTemplate, Quantities, stored_default
from danlu.kinds.platform import PrinterColumn, Rule

RestartPolicy = Literal["Always", "OnFailure", "Never", "ExitCode"]


class ReplicaSpec(msgspec.Struct, omit_defaults=True):
    """Replicas of one role: the same pod, numbered from 0."""

    replicas: Annotated[int, Meta(ge=0, le=MOST_REPLICAS, description="How many; 1 if not given.")] | None = None
    template: Annotated[PodTemplate, Meta(description="The pod of each replica.")] | None = None
    restartPolicy: (
        Annotated[
            RestartPolicy,
            Meta(
                description="What happens to a replica that ends. Always, OnFailure: its container is restarted in "
                "place. Never: its failure fails the job. ExitCode: codes from 128 on (ended by a signal) make a new "
                "pod, codes from 1 to 127 fail the job."
            ),
        ]
        | None
    ) = None


class SchedulingPolicy(msgspec.Struct, omit_defaults=True):
    """How the pods are placed together, for a gang scheduler."""

    minAvailable: (
        Annotated[int, Meta(ge=0, le=MOST_REPLICAS, description="Pods that must fit at once; all if not given.")] | None
    ) = None
    queue: Annotated[str, Meta(description="The scheduler's queue. Cannot be changed.")] | None = None
    minResources: Annotated[Quantities, Meta(description="What must be free; else the sum of requests.")] | None = None
    priorityClass: Annotated[str, Meta(description="Name of a PriorityClass.")] | None = None
    scheduleTimeoutSeconds: (
        Annotated[int, Meta(ge=0, le=LARGEST_INT32, description="How long the group may wait.")] | None
    ) = None


class RunPolicy(msgspec.Struct, omit_defaults=True):
    """When the job stops, and what is left of it."""

    cleanPodPolicy: (
        Annotated[
            Literal["None", "Running", "All"],
            Meta(description="Pods that go when the job has ended: None (the default), Running (unfinished), All."),
        ]
        | None
    ) = None
    ttlSecondsAfterFinished: (
        Annotated[int, Meta(ge=0, le=LARGEST_INT32, description="The job itself is deleted so long after its end.")]
        | None
    ) = None
    activeDeadlineSeconds: (
        Annotated[
            int, Meta(ge=1, le=LARGEST_INT32, description="A job that runs longer has failed, and its pods are ended.")
        ]
        | None
    ) = None
    backoffLimit: (
        Annotated[
            int,
            Meta(ge=0, le=LARGEST_INT32, description="Restarts of all replicas together before the job has failed."),
        ]
        | None
    ) = None
    schedulingPolicy: SchedulingPolicy | None = None
    suspend: (
        Annotated[bool, stored_default(False), Meta(description="Ends the pods and waits until it is false.")] | None
    ) = None
    managedBy: (
        Annotated[
            Literal["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"],
            Meta(description="Who looks after the job. Cannot be changed."),
        ]
        | None
    ) = None


class JobCondition(msgspec.Struct, omit_defaults=True):
    type: Annotated[str, Meta(description="Created, Running, Restarting, Suspended, Succeeded, Failed or Blocked.")]
    status: Annotated[str, Meta(description="True, False or Unknown.")]
    reason: str | None = None
    message: str | None = None
    lastUpdateTime: str | None = None
    lastTransitionTime: str | None = None
    causes: (
        Annotated[list[FreeForm], Meta(description="The message for programs: each with code and params.")] | None
    ) = None


class ReplicaStatus(msgspec.Struct, omit_defaults=True):
    active: Annotated[int, Meta(description="Pods that run.")] | None = None
    succeeded: int | None = None
    failed: int | None = None
    selector: Annotated[str, Meta(description="Labels that find the pods of this role.")] | None = None


class JobStatus(msgspec.Struct, omit_defaults=True):
    conditions: Annotated[list[JobCondition], Meta(description="The last one is the job's state.")] | None = None
    replicaStatuses: Annotated[dict[str, ReplicaStatus], Meta(description="Counts of pods by role.")] | None = None
    startTime: Annotated[str, Meta(description="When it was started, or resumed.")] | None = None
    completionTime: str | None = None
    lastReconcileTime: str | None = None


COLUMNS = (
    PrinterColumn("State", ".status.conditions[-1:].type"),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    PrinterColumn("Note", f".status.conditions[?(@.type=='{SUBSTITUTED}')].message", priority=1),
)

DNS_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)

ALWAYS_FITS = 40  # a name of so many characters, whatever its roles and numbers: few rules are as dear as that one


def rules(field: str, container: str, most: int = MOST_REPLICAS) -> tuple[Rule, ...]:
    """What holds whatever the roles are. `field` is the map of replicas, `container` the name that one must have,
    `most` the number of replicas that all roles may have together."""
    each = f"spec.{field}.*"
    # Every write of a status evaluates all rules, and in a kube-apiserver a look at a field costs as much as the type
    # around it has fields. So rules stand as deep as they can, and look at few fields of pods and containers.
    containers = f"{each}.template.spec.containers"
    name = "self.metadata.name"
    invalid = f"'metadata.name: Invalid value: \"' + {name} + '\":"
    return (
        Rule(
            f"{name}.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message_expression=f"{invalid} should match: ' + {_quoted(DNS_1035)}",
            at="",
        ),
        Rule(
            f"{name}.size() <= {ALWAYS_FITS} || self.spec.{field}.all(role, {name}.size() + role.size() + 2 + string("
            f"self.spec.{field}[role].?replicas.orValue(1)).size() <= 63)",
            message_expression=f"{invalid} must be no more than 63 characters, "
            "together with the role and the number that follow it in the names of pods and services'",
            at="",
        ),
        Rule("self.size() > 0", "must name at least one role", at=f"spec.{field}", reason="FieldValueRequired"),
        Rule(
            f"self.map(role, self[role].?replicas.orValue(1)).sum() <= {most}",
            stated("DL-TOO-MANY-REPLICAS", most=most),
            at=f"spec.{field}",
        ),
        Rule(
            "has(self.template) && has(self.template.spec)", "must be specified",
            at=each, reason="FieldValueRequired", field_path=".template.spec",
        ),
        Rule("self.size() > 0", "must be specified", at=containers, reason="FieldValueRequired"),
        Rule(
            f"self.exists(container, container.name == '{container}')",
            f"must have at least one container with name {container}",
            at=containers, reason="FieldValueRequired",
        ),
        Rule(
            "self.?image.orValue('') != ''", "must be required",
            at=f"{containers}.[]", reason="FieldValueRequired", field_path=".image",
        ),
        Rule(
            "self == oldSelf", "spec.runPolicy.schedulingPolicy.queue is immutable",
            at="spec.runPolicy.schedulingPolicy.queue",
        ),
        Rule("self == oldSelf", "field is immutable", at="spec.runPolicy.managedBy"),
    )  # fmt: skip


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
