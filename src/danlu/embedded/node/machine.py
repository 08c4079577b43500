"""Facts about this machine: cores, memory, disk, system. Linux tells by /proc, others by the standard library."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

# version 2 and version 1: bytes used, where the statistics are, and what of it is only idle file cache
_CGROUP_USAGE = (
    ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"),
    ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"),
)


@dataclass(frozen=True, slots=True)
class Disk:
    total: int
    free: int
    inodes: int
    inodes_free: int


def cores() -> int:
    """Those that this process may use: fewer than the machine's inside a container or under taskset."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_total() -> int:
    total = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limit = _cgroup_limit()
    return min(total, limit) if limit else total


def memory_available() -> int:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return memory_total()


def memory_used() -> int:
    """What could not be given back at once: of the machine, or of the cgroup that this process is confined to."""
    limit, total = _cgroup_limit(), int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if limit and limit < total:
        for usage, statistics, field in _CGROUP_USAGE:
            used = next(iter(_lines(usage)), "")
            if used.isdigit():
                idle = (line.split()[1] for line in _lines(statistics) if line.startswith(f"{field} "))
                return max(0, int(used) - int(next(idle, "0")))
    return total - memory_available()


def cpu_seconds() -> float:
    """Processor time spent so far on the cores that this process may use."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    ticks = 0
    for line in _lines("/proc/stat"):
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in allowed:
            user, nice, system, _idle, _waiting, interrupts, soft, *_ = map(int, fields)
            ticks += user + nice + system + interrupts + soft
    return ticks / os.sysconf("SC_CLK_TCK")


def disk(path: Path) -> Disk:
    try:
        found = os.statvfs(path)
    except OSError:
        usage = shutil.disk_usage("/")
        return Disk(usage.total, usage.free, 0, 0)
    unit = found.f_frsize
    return Disk(found.f_blocks * unit, found.f_bavail * unit, found.f_files, found.f_favail)


def architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def operating_system() -> str:
    return "linux" if sys.platform.startswith("linux") else sys.platform


def os_image() -> str:
    for line in _lines("/etc/os-release"):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.platform()


def machine_id() -> str:
    return next(iter(_lines("/etc/machine-id")), "") or uuid.UUID(int=uuid.getnode()).hex


def boot_id() -> str:
    return next(iter(_lines("/proc/sys/kernel/random/boot_id")), "")


def _cgroup_limit() -> int:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        for line in _lines(path):
            if line.isdigit() and int(line) < 1 << 60:
                return int(line)
    return 0


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
