"""How much processor and memory containers and the machine use, for metrics.k8s.io.

Nothing is measured while nobody asks: each answer is the difference to the measurement of the time before. Who asks
after a pause waits for a short window, because the mean over a pause says nothing about now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from danlu.embedded.node import machine
from danlu.embedded.node.sandbox import procfs
from danlu.embedded.node.sandbox.processes import Container, Containers

FIRST_WINDOW_S = 1.0  # clock ticks are 10 ms: a second makes that 1 % of a core
LONGEST_WINDOW_S = 60.0
SHORTEST_WINDOW_S = 1.0  # who asks again within it gets the same answer
MACHINE = ""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    cpu_nano: int  # nanocores: billionths of a core
    memory: int  # bytes
    window: float  # seconds that the processor's rate was taken over
    at: float  # seconds since 1970
    cpu_seconds: float = 0.0  # all that it has had so far


@dataclass(frozen=True, slots=True)
class _Sample:
    moment: float
    cpu: float
    memory: int
    usage: ProcessUsage | None = None


def container_sample(pid: int) -> tuple[float, int]:
    """(processor seconds so far, bytes) of a container: all below its shim, which also keeps the time of those gone."""
    shim = procfs.parent(pid)
    if not shim:
        return 0.0, 0
    tree = procfs.descendants(shim)
    cpu = procfs.cpu_seconds(shim, own=False) + sum(map(procfs.cpu_seconds, tree))
    return cpu, sum(map(procfs.proportional, tree))


def machine_sample() -> tuple[float, int]:
    return machine.cpu_seconds(), machine.memory_used()


class Sampler:
    """`MACHINE` and the ids of containers name what is measured."""

    def __init__(self, measure: Callable[[str], tuple[float, int]]) -> None:
        """`measure` may read files: it is called in a thread."""
        self._measure = measure
        self._last: dict[str, _Sample] = {}

    async def usage(self, names: Collection[str]) -> dict[str, ProcessUsage]:
        now = time.monotonic()
        fresh = [name for name in names if not self._is_recent(name, now, LONGEST_WINDOW_S)]
        if fresh:
            await asyncio.to_thread(self._take, fresh, first=True)
            await asyncio.sleep(FIRST_WINDOW_S)
        now = time.monotonic()
        due = [n for n in names if not self._is_recent(n, now, SHORTEST_WINDOW_S) or self._last[n].usage is None]
        if due:
            await asyncio.to_thread(self._take, due)
        return {name: usage for name in names if (usage := self._last[name].usage) is not None}

    def forget_all_but(self, names: Collection[str]) -> None:
        self._last = {name: sample for name, sample in self._last.items() if name in names}

    def _is_recent(self, name: str, now: float, seconds: float) -> bool:
        last = self._last.get(name)
        return last is not None and now - last.moment < seconds

    def _take(self, names: Sequence[str], *, first: bool = False) -> None:
        for name in names:
            cpu, memory = self._measure(name)
            moment, before = time.monotonic(), self._last.get(name)
            usage = None
            if before is not None and not first:
                window = max(moment - before.moment, 0.001)
                rate = max(0.0, cpu - before.cpu) / window  # a child that nobody waited for takes its time along
                usage = ProcessUsage(round(rate * 1e9), memory, window, time.time(), cpu)
            self._last[name] = _Sample(moment, cpu, memory, usage)


class Usages:
    """What the API server asks of this machine's nodes (its `NodeUsage`)."""

    def __init__(self, containers: Containers, nodes: int) -> None:
        self._containers = containers
        self._nodes = nodes
        self._running: dict[str, Container] = {}
        self._sampler = Sampler(self._measure)
        self._one_at_a_time = asyncio.Lock()  # two askers in one window would shorten it to nothing

    def _measure(self, name: str) -> tuple[float, int]:
        return machine_sample() if name == MACHINE else container_sample(self._running[name].pid)

    async def of_pods(self, uids: Collection[str]) -> dict[str, dict[str, ProcessUsage]]:
        """pod uid -> container -> usage, of containers that run."""
        async with self._one_at_a_time:
            self._running = {container.id: container for container in self._containers.running() if container.pid}
            self._sampler.forget_all_but({MACHINE, *self._running})
            asked = [container for container in self._running.values() if container.pod_uid in uids]
            found = await self._sampler.usage([container.id for container in asked])
        by_pod: dict[str, dict[str, ProcessUsage]] = {}
        for container in asked:
            if container.id in found and container.is_running:
                by_pod.setdefault(container.pod_uid, {})[container.name] = found[container.id]
        return by_pod

    async def of_nodes(self, pods: Mapping[str, Collection[str]]) -> dict[str, ProcessUsage]:
        """`pods`: node -> uids of its pods. A machine that is one node: all that is used on it; a part: by its pods."""
        if self._nodes == 1:
            async with self._one_at_a_time:
                used = (await self._sampler.usage([MACHINE]))[MACHINE]
            return dict.fromkeys(pods, used)
        by_pod = await self.of_pods({uid for uids in pods.values() for uid in uids})
        return {
            node: _sum([usage for uid in uids for usage in by_pod.get(uid, {}).values()]) for node, uids in pods.items()
        }


def _sum(used: Sequence[ProcessUsage]) -> ProcessUsage:
    window = min((usage.window for usage in used), default=SHORTEST_WINDOW_S)
    cpu, memory = sum(usage.cpu_nano for usage in used), sum(usage.memory for usage in used)
    return ProcessUsage(cpu, memory, window, time.time(), sum(usage.cpu_seconds for usage in used))
