"""What a cluster leaves on the machine, and its removal: processes, mounts, links, cgroups, sockets.

Nothing here asks the cluster: it works on one that is half started, half dead or was killed. Everything belongs to a
cluster by its name, which is in folders, in cgroups and in command lines.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.cluster.place import Place

WEIGHT = 8192  # of all containers together, where one process beside them has 1024: else tests starve what they test
CGROUPS = Path("/sys/fs/cgroup")
SHARED = (Path("/run/containerd"), Path("/var/lib/cni"), Path("/var/log/containers"))
"""Folders outside the cluster's own that its programs write into, whatever they are told."""
PROGRAMS = {
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "containerd",
    "containerd-shim-runc-v2", "coredns", "local-path-provisioner", "kwok",
}  # fmt: skip
ENDING_S = 20.0


def record(place: Place) -> None:
    """What was there before, so that an empty folder that was not can be taken away again."""
    there = [str(path) for path in SHARED if path.exists()]
    (place.folder / "before.json").write_text(json.dumps({"shared": there, "rules": rules()}))


def make_cgroups(place: Place) -> None:
    for root in cgroup_roots():
        (root / place.name).mkdir(exist_ok=True)
        if (shares := root / place.name / "cpu.shares").exists():
            shares.write_text(str(WEIGHT))
        if root.name == "cpuset" or (root / "cpuset.cpus").exists():  # a new cpuset has no processors until told
            for file in ("cpuset.cpus", "cpuset.mems"):
                with contextlib.suppress(OSError):
                    (root / place.name / file).write_text((root / file).read_text())


def cgroup_roots() -> list[Path]:
    """Version 1: one hierarchy for each controller; version 2: one."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in sorted(CGROUPS.iterdir()) if path.is_dir() and not path.is_symlink()]


def sweep(place: Place) -> None:
    _end_processes(place)
    _unmount(place)
    for root in cgroup_roots():
        for folder, _, _ in os.walk(root / place.name, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    for path in outside(place):
        path.unlink(missing_ok=True)
    _remove_empty_shared(place)


def left(place: Place) -> list[str]:
    """What is still there, in words; empty when nothing is. Removes the folder at last, if all else is gone."""
    found = [f"process {pid}: {words[:120]}" for pid, words in processes(place).items()]
    found += [f"mount {path}" for path in mounts(place)]
    found += [f"cgroup {root / place.name}" for root in cgroup_roots() if (root / place.name).exists()]
    if place.namespace_file.exists():
        found.append(f"network namespace {place.name}")
    more = [line for line in rules() if line not in _before(place)["rules"]]
    found += [f"iptables rule or link of this machine: {line}" for line in more]
    found += [f"file {path}" for path in outside(place)]
    if not found:
        shutil.rmtree(place.folder)
    return found


def outside(place: Place) -> list[Path]:
    """Files of this cluster outside its folder: results of network plugins, links to logs, sockets of shims."""
    ours = f"{place.folder}/"
    found = [path for path in Path("/var/lib/cni").rglob("*") if path.is_file() and ours in path.read_text()]
    links = Path("/var/log/containers")
    if links.is_dir():
        found += [path for path in links.iterdir() if path.is_symlink() and str(path.readlink()).startswith(ours)]
    return found + [path for path in _shim_sockets(place) if path.exists()]


def rules() -> list[str]:
    """Links and iptables rules of the machine's own network: the cluster must never touch them."""
    links = json.loads(subprocess.run(["ip", "-j", "link"], check=True, capture_output=True).stdout)
    found = [f"link {link['ifname']}" for link in links if not link["ifname"].startswith("veth")]
    for tool in ("iptables-save", "ip6tables-save"):
        said = subprocess.run([tool], capture_output=True, text=True)
        found += [f"{tool}: {line}" for line in said.stdout.splitlines() if line.startswith("-A")]
    return found


def processes(place: Place) -> dict[int, str]:
    """Everything that runs in the cluster's cgroups or in its network, and its programs wherever they are."""
    ours = os.getpid()
    network = place.namespace_file.stat().st_ino if place.namespace_file.exists() else -1
    family = _ancestors(ours)
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in family:
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if not words:
                continue  # a kernel thread or a zombie
            inside = (entry / "ns/net").stat().st_ino == network or place.name in (entry / "cgroup").read_text()
            if inside or (Path(words.split()[0]).name in PROGRAMS and f"{place.folder}/" in words):
                found[int(entry.name)] = words
    return found


def mounts(place: Place) -> list[str]:
    """Mount points in the cluster's folder, the deepest last."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].encode().decode("unicode_escape")
        if point.startswith(f"{place.folder}/"):
            found.append(point)
    return found


def _ancestors(pid: int) -> set[int]:
    found = set()
    while pid > 1:
        found.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def _end_processes(place: Place) -> None:
    ends = time.monotonic() + ENDING_S
    while (found := processes(place)) and time.monotonic() < ends:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _unmount(place: Place) -> None:
    for _ in range(5):  # a mount may hide another at the same point
        for point in reversed(mounts(place)):
            subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
        if not mounts(place):
            return


def _shim_sockets(place: Place) -> list[Path]:
    """Sockets of shims lie in a folder that containerd does not let one choose; their names are in its state."""
    found = []
    for file in (place.folder / "containerd-state").glob("io.containerd.runtime.v2.task/*/*/*"):
        if file.name in ("address", "bootstrap.json") and file.is_file():
            text = file.read_text()
            address = json.loads(text)["address"] if file.name == "bootstrap.json" else text.strip()
            found.append(Path(address.removeprefix("unix://")))
    return found


def _remove_empty_shared(place: Place) -> None:
    for path in SHARED:
        if str(path) not in _before(place)["shared"]:
            for folder, _, _ in os.walk(path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def _before(place: Place) -> dict[str, list[str]]:
    try:
        found: dict[str, list[str]] = json.loads((place.folder / "before.json").read_text())
    except OSError:  # it never began
        return {"shared": [str(path) for path in SHARED], "rules": rules()}
    return found
