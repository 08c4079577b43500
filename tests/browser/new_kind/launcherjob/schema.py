"""LauncherJob's spec as it is written; its status is that of all jobs of this dialect."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from danlu.kinds._training.kubeflow.schema import COLUMNS, JobStatus, ReplicaSpec, RunPolicy, rules
from danlu.kinds.platform import Rule
from danlu.meta.kind import Kind

__all__ = ["COLUMNS", "LAUNCHERJOB", "RULES", "JobStatus", "LauncherJobSpec"]

LAUNCHERJOB = Kind("throwaway.example.org", "v1", "LauncherJob", "launcherjobs", True, (), ("danlu",))


class LauncherJobSpec(msgspec.Struct, omit_defaults=True):
    """A launcher, and the workers that it starts programs on."""

    launcherReplicaSpecs: Annotated[dict[str, ReplicaSpec], Meta(max_length=2, description="Launcher and Worker.")]
    runPolicy: RunPolicy | None = None


RULES = (
    *rules("launcherReplicaSpecs", "main"),
    Rule("'Launcher' in self", "must have a Launcher", at="spec.launcherReplicaSpecs", reason="FieldValueRequired"),
)
