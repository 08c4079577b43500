"""Limits that the kernel keeps: a control group for each container, where groups are to be had.

Version 1 is root's; version 2 also that of an ordinary account to which a part of the tree is delegated (a systemd user
session). Groups lie below the one that we are in (version 1) or beside it (version 2, where a group that has groups
below it may hold no processes itself), so that whatever limits us limits the containers, too.

    DATA  .../danlu/<container id>   one for each controller (version 1), one for all (version 2)

The shim makes its container's group and takes each process in before its program begins; it stays outside itself, or it
would be among those that the kernel ends. Standard library only: it runs in forks of a small process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypedDict

OURS = "danlu"
CONTROLLERS = ("cpu", "memory", "pids")
PERIOD_US = 100_000  # of the processor's accounts; Kubernetes' own
LEAST_QUOTA_US = 1000  # the kernel takes no less
MOST_PIDS = 32768
REMOVE_TRIES, REMOVE_WAIT_S = 50, 0.01  # the kernel lets go of a process a moment after it has ended


class GroupSpec(TypedDict):
    """A part of the container's spec.json: where its group is to be made, and what it may use."""

    version: int
    folders: dict[str, str]  # controller -> the folder of the group
    cpu: int  # thousandths of a core; 0: no limit
    memory: int  # bytes; 0: no limit
    pids: int


class CgroupTree(NamedTuple):
    """Where this process may make groups."""

    version: int  # 0: nowhere
    parents: Mapping[str, str]  # controller -> folder
    problem: str = ""

    def spec(self, container_id: str, cpu: int, memory: int) -> GroupSpec | None:
        if not self.parents:
            return None
        folders = {controller: f"{parent}/{container_id}" for controller, parent in self.parents.items()}
        return {"version": self.version, "folders": folders, "cpu": cpu, "memory": memory, "pids": pids_limit()}


def pids_limit() -> int:
    """A quarter of what the machine has, so that one pod's bomb leaves room for everybody else."""
    found = [MOST_PIDS * 4]
    for path in ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found) // 4


# -- finding them


def find(proc: Path = Path("/proc/self"), enters: Callable[[str], bool] | None = None) -> CgroupTree:
    """Tries it out. `enters`: whether a process of ours may be moved into this group."""
    if enters is None:
        enters = _may_enter if os.geteuid() else lambda _group: True
    try:
        mounts = [*_mounts(proc)]
        own = _own(proc)
    except OSError as error:
        return CgroupTree(0, {}, f"{proc}: {error.strerror}")
    tried = []
    for find_version in (_version_1, _version_2):
        found = find_version(mounts, own, enters)
        if found.parents:
            return found
        tried.append(found.problem)
    return CgroupTree(0, {}, "; ".join(filter(None, tried)) or "no control groups are mounted")


class _Mount(NamedTuple):
    point: str
    root: str  # which group of the tree is there
    controllers: frozenset[str]  # empty: version 2

    def folder(self, group: str) -> str:
        inside = os.path.relpath(group, self.root)
        return self.point if inside == "." or inside.startswith("..") else f"{self.point}/{inside}"


def _mounts(proc: Path) -> list[_Mount]:
    found = []
    for line in (proc / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ")[:3]
        root, point = before.split(" ")[3:5]
        if kind in ("cgroup", "cgroup2"):
            found.append(_Mount(point, root, frozenset(options.split(",")) if kind == "cgroup" else frozenset()))
    return found


def _own(proc: Path) -> dict[str, str]:
    """Controller -> our group; "" is version 2's."""
    found: dict[str, str] = {}
    for line in (proc / "cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), group)
    return found


def _version_1(mounts: list[_Mount], own: Mapping[str, str], enters: Callable[[str], bool]) -> CgroupTree:
    parents, problem = {}, ""
    for controller in CONTROLLERS:
        parent = _parent(mounts, own, controller)
        if not parent:
            continue
        if not (problem := _try(parent, KNOBS[1, controller], enters)):
            parents[controller] = parent
    return CgroupTree(1, parents, problem)


def _parent(mounts: list[_Mount], own: Mapping[str, str], controller: str) -> str:
    mount = next((one for one in mounts if controller in one.controllers), None)
    return f"{mount.folder(own[controller])}/{OURS}" if mount is not None and controller in own else ""


def hierarchy(controller: str, proc: Path = Path("/proc/self")) -> str:
    """The folder of our containers' groups for a controller of version 1; "" where it is not mounted. Not tried."""
    return _parent(_mounts(proc), _own(proc), controller)


def _version_2(mounts: list[_Mount], own: Mapping[str, str], enters: Callable[[str], bool]) -> CgroupTree:
    mount = next((one for one in mounts if not one.controllers), None)
    if mount is None or "" not in own:
        return CgroupTree(2, {})
    problem = "no control group above this process hands its controllers on"
    folder = mount.folder(own[""])
    while len(folder) >= len(mount.point):
        handed_on = _words(f"{folder}/cgroup.subtree_control") & {*CONTROLLERS}
        if handed_on:
            parent = f"{folder}/{OURS}"
            parents = {}
            problem = _hand_on(parent, handed_on)
            for controller in CONTROLLERS:
                if not problem and controller in handed_on and not _try(parent, KNOBS[2, controller], enters):
                    parents[controller] = parent
            if parents:
                return CgroupTree(2, parents)
        folder = os.path.dirname(folder)
    return CgroupTree(2, {}, problem)


def _hand_on(parent: str, controllers: set[str]) -> str:
    try:
        _make(parent)
        _write(f"{parent}/cgroup.subtree_control", " ".join(f"+{controller}" for controller in sorted(controllers)))
    except OSError as error:
        return f"{parent}: {error.strerror}"
    return ""


def _try(parent: str, knob: str, enters: Callable[[str], bool]) -> str:
    """ "" when a group can be made there and entered, else why not. What was left there long ago goes."""
    group = f"{parent}/probe-{os.getpid()}"
    try:
        _make(group)
        try:
            if not os.path.exists(f"{group}/{knob}"):
                return f"{group} has no {knob}"
            return "" if enters(group) else f"{group} cannot be entered"
        finally:
            _remove(group)
            _tidy(parent)
    except OSError as error:
        return f"{parent}: {error.strerror}"


def _may_enter(group: str) -> bool:
    import subprocess  # not a fork of ours: `danlu up` has threads

    script = 'echo 0 > "$0/cgroup.procs"'
    return subprocess.run(["/bin/sh", "-c", script, group], stderr=subprocess.DEVNULL, check=False).returncode == 0


def _tidy(parent: str) -> None:
    """Groups whose shim was killed; one that has processes in it stays, the kernel sees to that."""
    long_ago = time.time() - 600
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            with contextlib.suppress(OSError):
                if entry.is_dir() and entry.stat().st_mtime < long_ago:
                    os.rmdir(entry.path)


# -- one of them

KNOBS = {
    (1, "cpu"): "cpu.cfs_quota_us",
    (1, "memory"): "memory.limit_in_bytes",
    (1, "pids"): "pids.max",
    (2, "cpu"): "cpu.max",
    (2, "memory"): "memory.max",
    (2, "pids"): "pids.max",
}
WEIGHTS = {1: ("cpu.shares", 1024, 262144), 2: ("cpu.weight", 100, 10000)}  # that of one process, and the most


class ControlGroup:
    """One container's."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._made = False

    @cached_property
    def _folders(self) -> list[str]:
        return [*dict.fromkeys(self._spec["folders"].values())]

    @property
    def limits_memory(self) -> bool:
        return self._made and "memory" in self._spec["folders"]

    def make(self) -> None:
        """Raises OSError; the container then runs without."""
        spec = self._spec
        for folder in self._folders:
            _make_parent(folder, spec)
            os.mkdir(folder)
        self._made = True
        if "pids" in spec["folders"]:
            self._set("pids", str(spec["pids"]))
        self.limit(spec["cpu"], spec["memory"])

    def limit(self, cpu: int, memory: int) -> None:
        """From now on; 0 for none."""
        version, folders = self._spec["version"], self._spec["folders"]
        if not self._made:
            return
        quota = max(LEAST_QUOTA_US, cpu * PERIOD_US // 1000)
        if "cpu" in folders:
            self._set("cpu", str(quota if cpu else -1) if version == 1 else f"{quota if cpu else 'max'} {PERIOD_US}")
        if "memory" in folders:
            # Where there is swap, what is beyond the limit would go there instead of ending the container.
            extra = "memory.memsw.limit_in_bytes" if version == 1 else "memory.swap.max"
            swap = str(memory or -1) if version == 1 else "0" if memory else "max"
            with contextlib.suppress(OSError):
                _write(f"{folders['memory']}/{extra}", "-1" if version == 1 else swap)
            with contextlib.suppress(OSError):  # below what is used: the kernel frees what it can, and says no
                self._set("memory", str(memory or (-1 if version == 1 else "max")))
            with contextlib.suppress(OSError):
                _write(f"{folders['memory']}/{extra}", swap)
            with contextlib.suppress(OSError):  # version 2: all of a container end together
                _write(f"{folders['memory']}/memory.oom.group", "1")

    def _set(self, controller: str, value: str) -> None:
        folder = self._spec["folders"][controller]
        _write(f"{folder}/{KNOBS[self._spec['version'], controller]}", value)

    def take_in(self, pid: int) -> None:
        """This process and those that it will make. Raises OSError."""
        if self._made:
            for folder in self._folders:
                _write(f"{folder}/cgroup.procs", str(pid))

    def shortage(self) -> int:
        """A descriptor to be read when there is no memory left; -1 where version 2 ends all processes together."""
        if not self.limits_memory or self._spec["version"] == 2 or not hasattr(os, "eventfd"):
            return -1
        folder = self._spec["folders"]["memory"]
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            control = os.open(f"{folder}/memory.oom_control", os.O_RDONLY | os.O_CLOEXEC)
            try:
                _write(f"{folder}/cgroup.event_control", f"{event} {control}")
            finally:
                os.close(control)
        except OSError:
            os.close(event)
            return -1
        return event

    def kills(self) -> int:
        """Processes that the kernel has ended for want of memory."""
        if not self.limits_memory:
            return 0
        folder = self._spec["folders"]["memory"]
        name = "memory.oom_control" if self._spec["version"] == 1 else "memory.events"
        with contextlib.suppress(OSError, ValueError):
            for line in Path(folder, name).read_text().splitlines():
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count)
        return 0

    def remove(self) -> None:
        """When nothing runs in it any more."""
        for folder in self._folders:
            _remove(folder)


def clear(spec: GroupSpec) -> None:
    """Ends what is left of a container whose shim is gone, wherever it has hidden among processes. Blocks a moment."""
    for folder in {*spec["folders"].values()}:
        for pid in _words(f"{folder}/cgroup.procs"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(pid), signal.SIGKILL)
    ControlGroup(spec).remove()


def _make_parent(folder: str, spec: GroupSpec) -> None:
    """It went with the last container; version 2's has to hand on its controllers again.

    To the scheduler a group is as one process. So ours weighs as much as a busy process on each core, which is what
    kubelet gives the group of all pods: else all pods of a machine together would get what one other program gets.
    """
    parent = os.path.dirname(folder)
    if not os.path.isdir(parent):
        os.makedirs(parent, exist_ok=True)
        if spec["version"] == 2:
            _write(f"{parent}/cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(spec["folders"])))
    if folder == spec["folders"].get("cpu"):
        knob, each, most = WEIGHTS[spec["version"]]
        _write(f"{parent}/{knob}", str(min(each * (os.cpu_count() or 1), most)))


def _remove(folder: str) -> None:
    for _ in range(REMOVE_TRIES):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno != errno.EBUSY:
                return
            time.sleep(REMOVE_WAIT_S)
            continue
        with contextlib.suppress(OSError):  # others are in it
            os.rmdir(os.path.dirname(folder))
        return


def _make(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _words(path: str) -> set[str]:
    try:
        return {*Path(path).read_text().split()}
    except OSError:
        return set()
