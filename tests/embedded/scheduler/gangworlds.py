"""Worlds with gangs and lanes, on a clock that only moves when told; a decision is carried out at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from danlu.client.informer import ADDED, DELETED
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.eventhandlers import EventHandlers
from danlu.embedded.scheduler.gangs import GangRefusal
from danlu.embedded.scheduler.gangscheduling import GangScheduling
from danlu.embedded.scheduler.placement import FoundNode, Placer
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.policy import Listener
from danlu.embedded.scheduler.schedulingqueue import SchedulingQueue
from danlu.meta.kind import Object

from .worlds import NoVolumes, node, pod

GPU = "nvidia.com/gpu"
NAME = "gang-scheduler"


@dataclass(frozen=True)
class Gang:
    key: str
    name: str
    min_member: int
    lane: str = "default"
    priority: int = 0
    roles: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Lane:
    priority: int = 0
    preemptible: bool = True
    quota: Mapping[str, int] = field(default_factory=dict)
    node_requirements: Sequence[Object] = ()


class Rules:
    """A policy from two dicts: gangs by their label, lanes by name."""

    names = (NAME,)

    def __init__(self, gangs: Iterable[Gang] = (), lanes: Mapping[str, Lane] | None = None) -> None:
        self.gangs = {gang.name: gang for gang in gangs}
        self.lanes = dict(lanes or {"default": Lane()})
        self.gang_changed: Listener = lambda key: None
        self.lane_changed: Listener = lambda name: None
        self.closed: set[str] = set()

    def gang(self, pod: Object) -> Gang:
        labels = pod["metadata"].get("labels") or {}
        name = labels.get("gang", "")
        if name in self.gangs:
            return self.gangs[name]
        return Gang(f"pod/{pod['metadata']['name']}", "", 1, labels.get("lane", "default"))

    def role(self, pod: Object) -> str:
        return str((pod["metadata"].get("labels") or {}).get("role", ""))

    def lane(self, name: str) -> Lane | None:
        return self.lanes.get(name)

    def objection(self, pod: Object, started: bool) -> str:
        name = self.gang(pod).lane
        if name not in self.lanes:
            return f"queue {name} does not exist"
        return f"queue {name} is closed" if name in self.closed and not started else ""

    def listen(self, gang_changed: Listener, lane_changed: Listener) -> None:
        self.gang_changed, self.lane_changed = gang_changed, lane_changed


class GangWorld:
    def __init__(
        self, nodes: Iterable[Object], gangs: Iterable[Gang] = (), lanes: Mapping[str, Lane] | None = None
    ) -> None:
        self.now = 1000.0
        self.cache = Cache()
        self.rules = Rules(gangs, lanes)
        self.placer = Placer(self.cache, NoVolumes())
        self.queue = SchedulingQueue(lambda: self.now, lambda lane: self.work.lane_order(lane))
        self.work = GangScheduling(self.cache, self.queue, self.placer, self)
        self.work.use(self.rules)
        self.handlers = EventHandlers(self.cache, self.queue, self.work, (NAME,))
        self.said: dict[str, str] = {}  # pod → why not
        self.placed: list[str] = []  # in order
        self.victims: list[str] = []
        self.evictions: list[str] = []
        self.pods: dict[str, Object] = {}
        self._serial = 0
        for made in nodes:
            self.cache.set_node(made)

    # -- consequences

    def bind(self, pod: PodInfo, found: FoundNode) -> None:
        self.queue.remove(pod.uid)
        self.placed.append(pod.name)
        self.said.pop(pod.name, None)

    def tell(self, key: str, pods: Iterable[PodInfo], refusal: GangRefusal) -> None:
        self.said.update({pod.name: refusal.message for pod in pods})

    def evict(self, by: str, why: str, victims: Sequence[PodInfo]) -> None:
        self.evictions.append(why)
        self.victims += [victim.name for victim in victims]
        for victim in victims:
            victim.deleting = True
            self.work.leaves(victim.uid)

    # -- what happens

    def add(self, gang: str, *names: str, **more: Any) -> None:
        """Pods of a gang; `gpus` each."""
        gpus, role = more.pop("gpus", 1), more.pop("role", "")
        for name in names:
            self._serial += 1
            labels = {"gang": gang, **({"role": role} if role else {}), **more.get("labels", {})}
            made = pod(name, labels=labels, requests={GPU: str(gpus)} if gpus else {}, schedulerName=NAME)
            made["metadata"]["creationTimestamp"] = f"2026-01-01T00:{self._serial // 60:02}:{self._serial % 60:02}Z"
            made["metadata"]["uid"] = f"uid-{name}-{self._serial}"
            self.pods[name] = made
            info = self.work.info(made)
            self.queue.add(info, self.work.priority(info))

    def gone(self, *names: str) -> None:
        """Deleted, ended or killed: the pod is no more."""
        for name in names:
            self.handlers.pod_changed(DELETED, self.pods.pop(name), None)

    def add_node(self, made: Object) -> None:
        self.handlers.node_changed(ADDED, made, None)

    def run(self, steps: int = 10_000) -> None:
        """Until there is nothing to decide."""
        while (entry := self.queue.pop()) is not None:
            self.work.try_gang(entry, self.rules)
            steps -= 1
            assert steps, "the scheduler never comes to rest"

    def on_node(self, name: str) -> str:
        return next((where for info, where in self.cache.pods.values() if info.name == name), "")


def gpu_nodes(*counts: int, **more: Any) -> list[Object]:
    return [node(f"n{i}", cpu="64", memory="256Gi", extended={GPU: str(n)}, **more) for i, n in enumerate(counts)]


def check(world: GangWorld, minimum: Callable[[str], int]) -> None:
    """What must hold after every step: no node is overfull, no gang below its minimum, no lane above its quota."""
    for info in world.cache.real.values():
        assert all(used <= info.allocatable.get(name, 0) for name, used in info.requested.items())
    for key in {info.gang for info, _ in world.cache.pods.values() if not info.deleting}:
        assert world.work.members(key) >= minimum(key)
    for name, lane in world.rules.lanes.items():
        assert all(world.cache.used_by(name).get(what, 0) <= limit for what, limit in lane.quota.items())
