"""The Node object: what this machine offers, and how it is. Pure but for the facts it reads from `machine`."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from danlu import __version__
from danlu.diagnose import say
from danlu.embedded.node import machine
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION, written

KUBELET_VERSION = "v1.36.3"
HOST_ADDRESS = "127.0.0.1"

# type -> (reason and message when False, when True)
CONDITIONS = {
    "MemoryPressure": (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}

EMBEDDED = "danlu.io/embedded"  # annotation of nodes that this program runs itself


@dataclass(frozen=True, slots=True)
class Offer:
    """What one node has to give."""

    name: str
    cpu_milli: int
    memory: int  # bytes
    storage: int  # bytes
    pods: int
    extended: dict[str, int]
    labels: dict[str, str]

    def capacity(self) -> Object:
        cpu = f"{self.cpu_milli // 1000}" if self.cpu_milli % 1000 == 0 else f"{self.cpu_milli}m"
        found = {
            "cpu": cpu,
            "ephemeral-storage": f"{self.storage // 1024}Ki",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": f"{self.memory // 1024}Ki",
            "pods": str(self.pods),
        }
        return found | {name: str(count) for name, count in self.extended.items()}


def labels(offer: Offer) -> dict[str, str]:
    arch, system = machine.architecture(), machine.operating_system()
    return {
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": system,
        "kubernetes.io/arch": arch,
        "kubernetes.io/hostname": offer.name,
        "kubernetes.io/os": system,
        **offer.labels,
    }


def new(offer: Offer) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": offer.name, "labels": labels(offer), "annotations": {EMBEDDED: "true"}},
        "spec": {},
    }


def status(offer: Offer, old: Object, pressures: set[str], now: str, mode: str, port: int = 0) -> Object:
    """`mode` is the sandbox's: it says with what a container is kept apart here."""
    found: Object = {
        "capacity": offer.capacity(),
        "allocatable": offer.capacity(),
        "addresses": [{"type": "InternalIP", "address": HOST_ADDRESS}, {"type": "Hostname", "address": offer.name}],
        "conditions": _conditions(old.get("conditions") or [], pressures, now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": machine.architecture(),
            "bootID": machine.boot_id(),
            "containerRuntimeVersion": f"danlu://{__version__}",
            "kernelVersion": platform.release(),
            "kubeProxyVersion": "",
            "kubeletVersion": KUBELET_VERSION,
            "machineID": machine.machine_id(),
            "operatingSystem": machine.operating_system(),
            "osImage": machine.os_image(),
            "systemUUID": machine.machine_id(),
        },
        "runtimeHandlers": [{"name": "", "features": {"userNamespaces": mode == "user"}}],
    }
    return found


def _conditions(old: list[Object], pressures: set[str], now: str) -> list[Object]:
    found = [dict(condition) for condition in old]
    for kind, either in CONDITIONS.items():
        is_so = kind in pressures
        reason, message = either[is_so]
        conditions.set(found, kind, str(is_so), reason, message, now, lastHeartbeatTime=now)
    conditions.set(
        found, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now, lastHeartbeatTime=now
    )
    return found


def is_left_over(node: Object, own: set[str]) -> bool:
    """A node of an earlier start of this danlu that this one was not given."""
    return EMBEDDED in (node["metadata"].get("annotations") or {}) and node["metadata"]["name"] not in own


def absent(node: Object, now: str) -> Object:
    """A node that is not there: nothing new is placed on it, what it ran is kept to be looked at."""
    status: Object = dict(node.get("status") or {})
    found = [dict(condition) for condition in status.get("conditions") or ()]
    text = say("DL-NODE-ABSENT")
    # As text alone: a Node's conditions have no room for its cause, so the annotation has it.
    conditions.set(found, "Ready", "False", "NodeAbsent", str(text), now, lastHeartbeatTime=now)
    annotations = {**(node["metadata"].get("annotations") or {}), ANNOTATION: written(text)}
    metadata = {**node["metadata"], "annotations": annotations}
    return {**node, "metadata": metadata, "status": {**status, "conditions": found}}


def storage_of(data_dir: Path) -> int:
    return machine.disk(data_dir).total
