"""TensorBoard's kind and spec: what a TensorBoard says itself, and a job in its `tensorboardSpec`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._served.schedulerspec import Scheduler
from danlu.kinds.crd import ResourceRequirements
from danlu.kinds.platform import Rule
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
    scheduler: Scheduler | None = None
    suspend: Annotated[bool, Meta(description="True stops the pod.")] = False
    run_mode: Annotated[
        Literal["running", "paused"] | None, Meta(description="The older spelling of `suspend`: `paused`.")
    ] = None
    training_log_filesets: Annotated[
        list[Fileset], Meta(description="Where the logs lie (older spelling of logDir).")
    ] = []
    log_dir: Annotated[LogDir | None, Meta(description="Where the logs lie.")] = None


def rules(at: str) -> tuple[Rule, ...]:
    """What holds of the spec wherever it stands."""
    return (
        Rule(
            "(has(self.trainingLogFilesets) && self.trainingLogFilesets.size() > 0) || has(self.logDir)",
            stated("DL-LOGS-NONE"),
            at=at,
        ),
        Rule(
            "!(has(self.trainingLogFilesets) && self.trainingLogFilesets.size() > 0 && has(self.logDir))",
            stated("DL-LOGS-TWICE"),
            at=at,
        ),
        Rule(
            "!has(self.logDir) || (has(self.logDir.pvc) && self.logDir.pvc.size() > 0) || has(self.logDir.s3) || "
            "has(self.logDir.http)",
            stated("DL-LOGS-EMPTY"),
            at=at,
        ),
    )
