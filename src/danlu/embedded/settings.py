"""One dataclass per component; unit, default and reason beside every field.

Variables of the environment that are read: DANLU_HOME (the data directory), DANLU_SANDBOX=none (pods without
namespaces, to try out what locked-down machines have to live with), DANLU_PIDS=shared (without those of process numbers
alone), DANLU_TRACEBACK (an unexpected error of `danlu` shows where it happened), DANLU_ENCRYPTION_KEY_FILE (the keys of
encrypted secrets; default: in the data directory), XDG_CACHE_HOME (built
environments), DANLU_PULL=never (no images are pulled for pods), DANLU_IMAGE (what the console's own small pods run).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


def default_home() -> Path:
    return Path(os.environ.get("DANLU_HOME") or "~/.danlu").expanduser()


@dataclass(slots=True)
class NodeShare:
    """What one virtual node offers. None: an equal part of the machine."""

    name: str
    cpu: float | None = None  # cores
    memory: int | None = None  # bytes
    gpus: int | None = None


@dataclass(slots=True)
class SpaceSettings:
    """Room for the store on its disk; see `embedded/storage/space.py`. A small disk gives less."""

    # bytes kept for the store when the disk is full, at most a sixteenth of the disk, and as many in its files: some
    # thousand deletes, each a few pages in the write-ahead log (16 MiB between two checkpoints), then in the database
    reserve: int = 32 << 20
    least_free: int = 32 << 20  # bytes left on the disk, at most 1/32 of it: below, nothing is created any more
    quota: int = 2 << 30  # bytes of the store itself; etcd's own default (--quota-backend-bytes)


@dataclass(slots=True)
class PodSecuritySettings:
    """Pod Security admission where a namespace's labels say nothing, and who is not asked."""

    enforce: tuple[str, str] = ("privileged", "latest")  # level and version, as Kubernetes' own default
    audit: tuple[str, str] = ("privileged", "latest")
    warn: tuple[str, str] = ("privileged", "latest")
    exempt_users: tuple[str, ...] = ()
    exempt_namespaces: tuple[str, ...] = ()
    exempt_runtime_classes: tuple[str, ...] = ()


@dataclass(slots=True)
class RequestLimits:
    """Of requests from sockets: so that nobody's starve those of others (`apiserver/fairness.py`)."""

    seats: int = 600  # requests that are answered at a time; Kubernetes' own (400 that read and 200 that write)
    seats_per_user: int = 200  # a third, so that three are needed to take all, and a fourth still gets one
    waiting_per_user: int = 1000  # more are answered 429
    wait_seconds: float = 15.0  # then it is answered 429; Kubernetes' own, a quarter of a request's minute
    turn_seconds: float = 0.01  # of work between two looks at the sockets: what others wait, at the least
    streams_per_user: int = 500  # watches, followed logs, exec: an operator with 100 kinds has 100
    connections: int = 0  # to the API, then the one that has been idle longest goes; 0: an eighth of the descriptors


@dataclass(slots=True)
class AuditSettings:
    """The audit log, as kube-apiserver's flags of these names have it."""

    policy_file: Path | None = None  # None: nothing is recorded
    log_path: Path | None = None  # None: audit.log in the data directory; "-": the standard output
    log_maxsize: int = 100  # MiB of one file; Kubernetes' own
    log_maxbackup: int = 10  # older files that are kept; Kubernetes keeps all, and fills the disk


@dataclass(slots=True)
class IngressSettings:
    """Where Ingresses are served. Nothing listens before there is one."""

    host: str = "127.0.0.1"  # loopback, as for all that pods serve
    http_port: int = 8180  # 80 is for root; 8080 is the console's
    https_port: int = 8543  # 443 is for root, 8443 is many a program's


@dataclass(slots=True)
class ClusterSettings:
    data_dir: Path = field(default_factory=default_home)
    host: str = "127.0.0.1"  # loopback: what runs on this machine is the business of no other
    port: int = 6443  # Kubernetes' own; 0 takes any free one
    nodes: list[NodeShare] = field(default_factory=list)  # empty: one node, the whole machine
    shared: bool = False  # several people, who need not trust each other: see docs/en/security.md
    system_namespaces: tuple[str, ...] = ()  # the administrator's, beside Kubernetes' own: `shared` lets their pods be
    run_controllers: bool = True  # off in tests of the API alone
    run_node: bool = True  # off in tests that need no processes
    extra_names: tuple[str, ...] = ()  # further names and addresses in the server's certificate
    max_pods: int = (
        20_000  # in the cluster; each takes some 30 KB of the server's memory. Finished ones go from 12,500 on
    )
    max_pods_per_namespace: int = 10_000  # so that one project cannot use up what all have
    space: SpaceSettings = field(default_factory=SpaceSettings)
    pod_security: PodSecuritySettings = field(default_factory=PodSecuritySettings)
    fake_gpus: int = 0  # for trying out scheduling on a machine without GPUs
    request_limits: RequestLimits = field(default_factory=RequestLimits)
    audit: AuditSettings = field(default_factory=AuditSettings)
    ingress: IngressSettings = field(default_factory=IngressSettings)
