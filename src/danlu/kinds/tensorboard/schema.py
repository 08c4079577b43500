"""TensorBoard's spec and status, and what its CRD refuses. Job kinds write the same spec in `tensorboardSpec`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.kinds.crd import Condition, FreeForm, ResourceRequirements
from danlu.kinds.platform import PrinterColumn, Rule
from danlu.meta.kind import Kind

TENSORBOARD = Kind("tensorstack.dev", "v1beta1", "TensorBoard", "tensorboards", True, ("tb",), ("danlu",))

Fileset = Annotated[
    str,
    Meta(
        pattern=r"^t9k://(pvc|minio)/.+$",
        description="t9k://pvc/<claim>/<path>, or t9k://minio/<secret>/<bucket>/<path>.",
    ),
]


class PvcLogs(msgspec.Struct, rename="camel"):
    name: Annotated[str, Meta(min_length=1, description="The PersistentVolumeClaim.")]
    sub_path: Annotated[list[str], Meta(description="Folders in it; none: the whole volume.")] = []


class SecretName(msgspec.Struct, rename="camel"):
    name: str


class S3Logs(msgspec.Struct, rename="camel"):
    secret_ref: SecretName | None = None
    uri: list[str] = []


class HttpLogs(msgspec.Struct, rename="camel"):
    url: list[str] = []


class LogDir(msgspec.Struct, rename="camel"):
    pvc: list[PvcLogs] = []
    s3: S3Logs | None = None
    http: HttpLogs | None = None


class TensorBoardSpec(msgspec.Struct, rename="camel"):
    image: Annotated[str, Meta(description="An image that has the program tensorboard.")] = ""
    resources: ResourceRequirements | None = None
    scheduler: FreeForm | None = None
    suspend: Annotated[bool, Meta(description="True stops the pod.")] = False
    run_mode: Annotated[
        Literal["running", "paused"] | None, Meta(description="The older spelling of `suspend`: `paused`.")
    ] = None
    training_log_filesets: Annotated[
        list[Fileset], Meta(description="Where the logs lie (older spelling of logDir).")
    ] = []
    log_dir: Annotated[LogDir | None, Meta(description="Where the logs lie.")] = None


class PodReference(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""


class PodState(msgspec.Struct, rename="camel"):
    phase: str = ""
    reference: PodReference | None = None


class TensorBoardStatus(msgspec.Struct, rename="camel"):
    phase: Annotated[str, Meta(description="Initializing, Running or Suspended.")] = ""
    conditions: list[Condition] = []
    pod: PodState | None = None
    url: Annotated[str, Meta(description="Where the TensorBoard is reached.")] = ""


COLUMNS = (
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    PrinterColumn("URL", ".status.url", priority=1),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)
RULES = (
    Rule(
        "self.metadata.name.size() <= 63",
        "a TensorBoard's name is part of its pods' labels: at most 63 characters",
        at="",
    ),
    Rule(
        "(has(self.trainingLogFilesets) && self.trainingLogFilesets.size() > 0) || has(self.logDir)",
        "a TensorBoard needs logs to show: set logDir, or trainingLogFilesets",
    ),
    Rule(
        "!(has(self.trainingLogFilesets) && self.trainingLogFilesets.size() > 0 && has(self.logDir))",
        "trainingLogFilesets and logDir say the same thing: set one of them",
    ),
    Rule(
        "!has(self.logDir) || (has(self.logDir.pvc) && self.logDir.pvc.size() > 0) || has(self.logDir.s3) || "
        "has(self.logDir.http)",
        "logDir names no logs: set pvc, s3 or http",
    ),
)
