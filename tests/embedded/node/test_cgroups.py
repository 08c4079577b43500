"""Limits that the kernel keeps: real groups where this machine has them, and how they are found elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.node.test_processes import containers, ended, start
from tests.running import until

from danlu.embedded.node.sandbox import cgroups
from danlu.embedded.node.sandbox.cgroups import CgroupTree
from danlu.embedded.node.sandbox.processes import Containers

__all__ = ["containers"]  # the fixture

FORKS = """
import os, sys, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError as error:
    print("refused", error.strerror)
    sys.exit(3)
"""


@pytest.fixture
def groups() -> CgroupTree:
    tree = cgroups.find()
    missing = {*cgroups.CONTROLLERS} - {*tree.parents}
    if missing:
        pytest.skip(f"no control group for {', '.join(sorted(missing))} here: {tree.problem}")
    return tree


def limited(groups: CgroupTree, name: str, *, cpu: int = 0, memory: int = 0, **more: Any) -> dict[str, Any]:
    spec = groups.spec(name, cpu, memory)
    assert spec is not None
    return {"memory_limit": memory, "cgroup": {**spec, **more}}


def folder(groups: CgroupTree, controller: str, name: str) -> Path:
    return Path(groups.parents[controller]) / name


@pytest.mark.node
async def test_the_kernel_ends_who_takes_too_much_memory(containers: Containers, groups: CgroupTree) -> None:
    name = f"memory-{id(groups)}"
    limits = limited(groups, name, memory=50 << 20)
    container = await start(containers, ["python3", "-c", "b = bytearray(1 << 30)"], **limits)
    outcome = await ended(containers, container)
    assert (outcome["reason"], outcome["exit_code"]) == ("OOMKilled", 137)
    assert not folder(groups, "memory", name).exists(), "its group went with it"


@pytest.mark.node
async def test_all_of_a_container_ends_with_one_that_takes_too_much(containers: Containers, groups: CgroupTree) -> None:
    """The kernel ends one process; a parent that takes no notice must not make a success of it."""
    limits = limited(groups, f"child-{id(groups)}", memory=50 << 20)
    script = "python3 -c 'b = bytearray(1 << 30)'; sleep 600"
    outcome = await ended(containers, await start(containers, ["sh", "-c", script], **limits))
    assert (outcome["reason"], outcome["exit_code"]) == ("OOMKilled", 137)


@pytest.mark.node
async def test_a_processor_limit_slows_down(containers: Containers, groups: CgroupTree) -> None:
    name = f"cpu-{id(groups)}"
    container = await start(containers, ["sh", "-c", "while :; do :; done"], **limited(groups, name, cpu=100))
    statistics = folder(groups, "cpu", name) / "cpu.stat"

    def was_throttled() -> bool:
        counts = dict(line.split(" ", 1) for line in statistics.read_text().splitlines())
        return int(counts["nr_throttled"]) > 0

    weighed_by, of_one, most = cgroups.WEIGHTS[groups.version]
    weight = int((statistics.parent.parent / weighed_by).read_text())
    assert weight == min(of_one * (os.cpu_count() or 1), most), "all containers weigh as a process on each core"
    await asyncio.to_thread(until, "the kernel to hold it back", was_throttled)
    containers.limit(container, 0, 0)
    knob = statistics.with_name(cgroups.KNOBS[groups.version, "cpu"])
    await asyncio.to_thread(until, "the limit to go", lambda: knob.read_text().startswith(("-1", "max")))
    await containers.signal(container.id, signal.SIGKILL)
    await ended(containers, container)


@pytest.mark.node
async def test_a_fork_bomb_ends_in_its_container(containers: Containers, groups: CgroupTree) -> None:
    container = await start(containers, ["python3", "-c", FORKS], **limited(groups, f"bomb-{id(groups)}", pids=20))
    outcome = await ended(containers, container)
    assert (outcome["reason"], outcome["exit_code"]) == ("Error", 3)


@pytest.mark.node
async def test_a_command_in_a_container_is_limited_as_it_is(containers: Containers, groups: CgroupTree) -> None:
    name = f"exec-{id(groups)}"
    container = await start(containers, ["sleep", "600"], **limited(groups, name, pids=50))
    session = await containers.exec(container.id, ["sleep", "600"])
    inside = folder(groups, "pids", name) / "cgroup.procs"
    assert len(inside.read_text().split()) == 2
    session.close()
    session.close_fds()
    await containers.signal(container.id, signal.SIGKILL)
    await ended(containers, container)


@pytest.mark.node
async def test_nothing_outlives_a_shim_that_was_killed(containers: Containers, groups: CgroupTree) -> None:
    """Also what has left the container's process group."""
    name = f"lost-{id(groups)}"
    container = await start(containers, ["sh", "-c", "setsid sleep 600 & sleep 600"], **limited(groups, name))
    inside = folder(groups, "pids", name)
    await asyncio.to_thread(until, "its processes", lambda: len((inside / "cgroup.procs").read_text().split()) == 3)
    os.kill(container.shim_pid, signal.SIGKILL)
    await ended(containers, container)
    await asyncio.to_thread(until, "its end", lambda: not inside.exists())


# -- how they are found


class FakeKernel:
    """Version 2: a folder that is made has the files of the controllers that the one above it hands on."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self, name: str, handed_on: str = "") -> None:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(handed_on)

    def make_group(self, folder: str) -> None:
        made = Path(folder)
        made.mkdir(parents=True, exist_ok=True)
        handed_on = (made.parent / "cgroup.subtree_control").read_text().replace("+", "").split()
        (made / "cgroup.subtree_control").touch()
        for controller in handed_on:
            (made / cgroups.KNOBS[2, controller]).touch()


def proc(folder: Path, *, group: str, mount: Path) -> Path:
    folder.mkdir()
    (folder / "cgroup").write_text(f"0::{group}\n")
    (folder / "mountinfo").write_text(f"31 23 0:28 / {mount} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n")
    return folder


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    made = FakeKernel(tmp_path / "tree")
    monkeypatch.setattr(cgroups, "_make", made.make_group)
    return made


def test_a_users_session_has_groups_beside_the_shells(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.make("user", "cpu memory pids io")
    kernel.make("user/app", "memory pids")  # systemd hands on so much unless it is told otherwise
    kernel.make("user/app/shell.scope")
    found = cgroups.find(proc(tmp_path / "proc", group="/user/app/shell.scope", mount=kernel.root), lambda _: True)
    parent = str(kernel.root / "user/app/danlu")
    assert found == CgroupTree(2, {"memory": parent, "pids": parent})
    assert Path(parent, "cgroup.subtree_control").read_text() == "+memory +pids"


def test_groups_that_cannot_be_entered_are_none(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.make("app", "memory")
    kernel.make("app/shell")
    kernel.make("")
    found = cgroups.find(proc(tmp_path / "proc", group="/app/shell", mount=kernel.root), lambda _: False)
    assert not found.parents


def test_why_there_are_none_is_said(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.make("")
    found = cgroups.find(proc(tmp_path / "proc", group="/", mount=kernel.root), lambda _: True)
    assert found == CgroupTree(0, {}, "no control group above this process hands its controllers on")
