from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from danlu.embedded.node import machine
from danlu.embedded.node.pressure import usage
from danlu.embedded.node.pressure.usage import Sampler
from danlu.embedded.node.sandbox import procfs

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
BURN = "import time\nwhile time.process_time() < 0.3: pass"


class Machine:
    """Measurements that a test decides, with a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu: dict[str, float] = {}
        self.memory = 1 << 20
        self.taken: list[str] = []
        self.now = 1000.0
        self.slept: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.pass_time(seconds, cores=0.5)

    def pass_time(self, seconds: float, cores: float) -> None:
        self.now += seconds
        for name in self.cpu:
            self.cpu[name] += seconds * cores

    def measure(self, name: str) -> tuple[float, int]:
        self.taken.append(name)
        return self.cpu[name], self.memory


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


async def test_the_first_question_waits_for_a_window_and_the_next_takes_the_time_between(made: Machine) -> None:
    sampler = Sampler(made.measure)
    made.cpu["a"] = 100.0  # what it used before anybody asked does not count
    first = (await sampler.usage(["a"]))["a"]
    assert made.slept == [usage.FIRST_WINDOW_S]
    assert (first.cpu_nano, first.memory) == (500_000_000, 1 << 20)
    made.pass_time(10, cores=2)
    second = (await sampler.usage(["a"]))["a"]
    assert (second.cpu_nano, second.window) == (2_000_000_000, 10)
    assert len(made.slept) == 1


async def test_who_asks_again_at_once_gets_the_same_answer_without_a_measurement(made: Machine) -> None:
    sampler = Sampler(made.measure)
    made.cpu["a"] = 0.0
    first = await sampler.usage(["a"])
    taken = len(made.taken)
    made.pass_time(usage.SHORTEST_WINDOW_S / 2, cores=8)
    assert await sampler.usage(["a"]) == first
    assert len(made.taken) == taken


async def test_after_a_pause_the_mean_over_the_pause_is_not_told(made: Machine) -> None:
    sampler = Sampler(made.measure)
    made.cpu["a"] = 0.0
    await sampler.usage(["a"])
    made.pass_time(usage.LONGEST_WINDOW_S * 10, cores=8)
    assert (await sampler.usage(["a"]))["a"].cpu_nano == 500_000_000
    assert len(made.slept) == 2


async def test_time_that_vanished_with_a_child_is_not_negative(made: Machine) -> None:
    sampler = Sampler(made.measure)
    made.cpu["a"] = 50.0
    await sampler.usage(["a"])
    made.pass_time(5, cores=0)
    made.cpu["a"] = 10.0
    assert (await sampler.usage(["a"]))["a"].cpu_nano == 0


async def test_what_is_gone_is_forgotten(made: Machine) -> None:
    sampler = Sampler(made.measure)
    made.cpu |= {"a": 0.0, "b": 0.0}
    await sampler.usage(["a", "b"])
    sampler.forget_all_but({"b"})
    made.taken.clear()
    made.pass_time(5, cores=1)
    await sampler.usage(["b"])
    assert made.taken == ["b"]


@linux_only
def test_processor_time_of_children_that_ended_stays_counted() -> None:
    before = procfs.cpu_seconds(os.getpid(), own=False)
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert procfs.cpu_seconds(os.getpid(), own=False) - before >= 0.2
    assert procfs.cpu_seconds(os.getpid()) >= procfs.cpu_seconds(os.getpid(), own=False)


@linux_only
def test_a_container_is_all_that_its_shim_started() -> None:
    """This process stands for the shim, the child for the container, its child for what that started."""
    burning = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\nprint(1, flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", burning], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline()
        cpu, memory = usage.container_sample(child.pid)
        assert procfs.parent(child.pid) == os.getpid()
        assert cpu >= 0.2
        assert memory > 1 << 20
    finally:
        child.communicate(b"\n")
    assert usage.container_sample(child.pid) == (0.0, 0)


@linux_only
def test_the_machine_has_used_something() -> None:
    assert machine.cpu_seconds() > 0
    assert 0 < machine.memory_used() < machine.memory_total()
