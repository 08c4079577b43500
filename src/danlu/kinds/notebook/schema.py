"""Notebook's spec and status as they are written, and what its CRD refuses."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from danlu.diagnose import stated
from danlu.kinds._served.schedulerspec import Scheduler
from danlu.kinds.crd import Condition, PodTemplate, stored_default
from danlu.kinds.platform import PrinterColumn, Rule
from danlu.meta.kind import Kind

NOTEBOOK = Kind("tensorstack.dev", "v1beta1", "Notebook", "notebooks", True, ("nb",), ("danlu",))


class Ssh(msgspec.Struct, rename="camel"):
    enabled: Annotated[bool, Meta(description="Whether an SSH server runs beside the notebook.")] = False
    service_type: Annotated[
        Literal["ClusterIP", "NodePort", "LoadBalancer"], Meta(description="Type of the SSH server's Service.")
    ] = "ClusterIP"
    authorized_keys: Annotated[
        list[str], Meta(description="Names of Secrets; each of their values is a file of public keys that may log in.")
    ] = msgspec.field(default_factory=list, name="authorized_keys")


class NotebookSpec(msgspec.Struct, rename="camel"):
    template: Annotated[
        PodTemplate,
        Meta(description="The pod. Its container `notebook` (else the first) runs the notebook server."),
    ]
    type: Annotated[
        Literal["jupyter", "rstudio"], Meta(description="Which program serves the notebook."), stored_default("jupyter")
    ] = "jupyter"
    scheduler: Scheduler | None = None
    ssh: Ssh | None = None
    suspend: Annotated[bool, Meta(description="True stops the pod and keeps everything on its volumes.")] = False
    run_mode: Annotated[
        Literal["running", "paused"] | None, Meta(description="The older spelling of `suspend`: `paused`.")
    ] = None


class PodReference(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""


class PodState(msgspec.Struct, rename="camel"):
    phase: str = ""
    reference: PodReference | None = None


class SshState(msgspec.Struct, rename="camel"):
    service_name: str = ""
    port: int = 0
    cluster_ip: str = ""
    node_port: int = 0
    protocol: str = "TCP"
    last_ssh_client_activity: str | None = None


class NotebookStatus(msgspec.Struct, rename="camel"):
    phase: Annotated[str, Meta(description="Initializing, Running or Suspended.")] = ""
    conditions: list[Condition] = []
    pod: PodState | None = None
    ssh: SshState | None = None
    url: Annotated[str, Meta(description="Where the notebook is reached.")] = ""
    token_secret: Annotated[str, Meta(description="The Secret whose key `token` opens the notebook.")] = ""
    last_activity: Annotated[str | None, Meta(description="When somebody last used it, as far as is known.")] = None


COLUMNS = (
    PrinterColumn("Type", ".spec.type"),
    PrinterColumn("Phase", ".status.phase"),
    PrinterColumn("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    PrinterColumn("Idle", ".status.conditions[?(@.type=='Idle')].status"),
    PrinterColumn("Image", ".spec.template.spec.containers[0].image", priority=1),
    PrinterColumn("URL", ".status.url", priority=1),
    PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
)
RULES = (
    Rule(
        "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        stated("DL-NAME-ADDRESS", what="Notebook"),
        at="",
    ),
    Rule(
        "has(self.template.spec)",
        stated("DL-NO-POD-SPEC"),
    ),
    Rule(
        "!has(self.template.spec) || self.template.spec.containers.size() > 0",
        stated("DL-NO-CONTAINER"),
    ),
    Rule(
        "!has(self.ssh) || !has(self.ssh.enabled) || !self.ssh.enabled || "
        "(has(self.ssh.authorized_keys) && self.ssh.authorized_keys.size() > 0)",
        stated("DL-NO-SSH-KEYS"),
    ),
)
