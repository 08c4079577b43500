"""What can be set about a node; unit, default and reason beside each."""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER_DOMAIN = "cluster.local"  # Kubernetes' own default; names in many manifests end in it


@dataclass(slots=True)
class NodeSettings:
    pods: int = 110  # of each node; Kubernetes' own default

    shared: bool = False  # for several people: processes of others are not shown to a pod

    heartbeat_s: float = 10.0  # the lease; four missed ones make a node NotReady
    status_s: float = 60.0  # conditions are looked at and written at least this often

    evict_memory_below: int = 100 << 20  # bytes of free memory; kubelet's default
    evict_disk_below: float = 0.10  # share of the file system under the data directory; kubelet's default for nodefs
    evict_disk_at_most: int = 2 << 30  # bytes; a laptop's disk that is nine tenths full is no emergency
    evict_inodes_below: float = 0.05  # share of inodes; likewise
    eviction_period_s: float = 10.0
    pressure_hold_s: float = 300.0  # a condition stays this long after the pressure has gone, so that it does not flap

    log_file_bytes: int = 10 << 20  # of one file of a container's log; kubelet's containerLogMaxSize
    log_files: int = 100  # of one run of a container, beyond them the oldest go; kubelet keeps 5, long runs say more
    logs_in_all: int = 5 << 30  # bytes of all logs, at most a tenth of the disk; one run may have a fifth of it

    first_backoff_s: float = 10.0  # before the second restart of a container; the first is at once
    longest_backoff_s: float = 300.0
    backoff_reset_s: float = 600.0  # a run this long is forgiven what was before
    retry_s: float = 2.0  # after a container could not be made (a ConfigMap is missing); doubles up to ten seconds

    service_network: str = "127.96.0.0/12"  # cluster IPs; pods may bind none of them
    pod_network: str = "127.64.0.0/11"  # each pod has an address of its own; loopback, so nothing has to be set up
