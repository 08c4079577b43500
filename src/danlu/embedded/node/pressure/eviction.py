"""Eviction: when the machine runs short of memory or disk, the pods that use more than they asked for go first.

Signals, order and messages are kubelet's; thresholds are in the settings. One pod is ended at a time, and what it had
is gone before the next look, which then sees what that has brought. Who has nothing to give back is left alone. Beyond
the node's own need, pods that outgrow their emptyDir or ephemeral-storage limits are ended, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from danlu.embedded.node import machine
from danlu.embedded.node.pods.podworker import PodWorker
from danlu.embedded.node.sandbox.procfs import descendants, resident
from danlu.embedded.node.settings import NodeSettings
from danlu.meta import resourcesums
from danlu.meta.kind import Object
from danlu.meta.quantity import parse

MEMORY_PRESSURE, DISK_PRESSURE = "MemoryPressure", "DiskPressure"
REASON = "Evicted"
GRACE_S = 1.0  # kubelet's: who is evicted takes more as long as it lives
LEAST_GAIN = 1 << 20  # bytes on the disk; to end a pod that holds less would help nobody


@dataclass(frozen=True, slots=True)
class Shortage:
    pressure: str  # the condition
    resource: str  # as the message names it
    threshold: str
    available: str


def shortages(settings: NodeSettings, memory_available: int, disk: machine.Disk) -> list[Shortage]:
    found = []
    if memory_available < settings.evict_memory_below:
        found.append(
            Shortage(MEMORY_PRESSURE, "memory", binary(settings.evict_memory_below), f"{memory_available // 1024}Ki")
        )
    least = min(int(disk.total * settings.evict_disk_below), settings.evict_disk_at_most)
    if disk.total and disk.free < least:
        found.append(Shortage(DISK_PRESSURE, "ephemeral-storage", str(least), f"{disk.free // 1024}Ki"))
    elif disk.inodes and disk.inodes_free < disk.inodes * settings.evict_inodes_below:
        least = int(disk.inodes * settings.evict_inodes_below)
        found.append(Shortage(DISK_PRESSURE, "inodes", str(least), str(disk.inodes_free)))
    return found


def choose(workers: Iterable[PodWorker], used: Mapping[str, int], resource: str) -> PodWorker | None:
    """Who goes: first those above their request, then the lower priority, then the larger excess.

    None: nobody whose end would free anything.
    """

    def rank(worker: PodWorker) -> tuple[bool, int, int]:
        excess = used[worker.uid] - request(worker.pod, resource)
        return excess > 0, -int(worker.pod["spec"].get("priority") or 0), excess

    candidates = [
        worker for worker in workers if not is_critical(worker.pod) and used[worker.uid] >= least_gain(resource)
    ]
    return max(candidates, key=rank, default=None)


def least_gain(resource: str) -> int:
    return LEAST_GAIN if resource == "ephemeral-storage" else 0  # files may be empty and many; a process always counts


def is_critical(pod: Object) -> bool:
    return int(pod["spec"].get("priority") or 0) >= 2_000_000_000


def request(pod: Object, resource: str) -> int:
    found = resourcesums.pod_requests(pod).get(resource)
    return int(found.value()) if found is not None else 0


def message(shortage: Shortage, worker: PodWorker, amount: int) -> str:
    text = (
        f"The node was low on resource: {shortage.resource}. "
        f"Threshold quantity: {shortage.threshold}, available: {shortage.available}. "
    )
    asked = request(worker.pod, shortage.resource)
    if amount > asked:
        names = [container["name"] for container in worker.pod["spec"]["containers"]]
        shown = f"{asked // 1024}Ki" if asked else "0"
        text += (
            f"Container {names[0]} was using {amount // 1024}Ki, request is {shown}, "
            f"has larger consumption of {shortage.resource}. "
        )
    return text


def memory_of(worker: PodWorker) -> int:
    """Of its processes, and what lies in its volumes in memory: those end with the pod, not with a process."""
    prepared = worker.volumes
    total = sum(size_of(entry.path) for entry in (prepared.empty_dirs if prepared else ()) if entry.in_memory)
    for container in worker.running:
        total += sum(map(resident, [container.pid, *descendants(container.pid)]))
    return total


def size_of(folder: str | Path) -> int:
    """Bytes on disk below a folder; what vanishes meanwhile does not count."""
    total = 0
    waiting = [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
    return total


def outgrown(worker: PodWorker) -> str:
    """ "" or why the pod has to go: an emptyDir or a container's storage passed its limit. Reads the disk: slow."""
    prepared = worker.volumes
    for entry in prepared.empty_dirs if prepared is not None else ():
        if entry.size_limit and size_of(entry.path) > parse(entry.size_limit).value():
            return f'Usage of EmptyDir volume "{entry.name}" exceeds the limit "{entry.size_limit}". '
    for container in worker.running:
        spec: Object = next((c for c in worker.pod["spec"]["containers"] if c["name"] == container.name), {})
        limit = ((spec.get("resources") or {}).get("limits") or {}).get("ephemeral-storage")
        if limit and size_of(container.root) + size_of(Path(container.spec["log"]).parent) > parse(limit).value():
            return f'Container {container.name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def has_storage_limits(pod: Object) -> bool:
    if any((volume.get("emptyDir") or {}).get("sizeLimit") for volume in pod["spec"].get("volumes") or ()):
        return True
    return any(
        ((container.get("resources") or {}).get("limits") or {}).get("ephemeral-storage")
        for container in pod["spec"]["containers"]
    )


def binary(amount: int) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)
