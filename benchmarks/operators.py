"""Operators on a real API server with fake nodes: Danlu's beside Kubeflow's, and pods alone as the floor for both.

Every measurement gets a control plane of its own, all from the same binaries with the same flags, in turns.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fakecluster import FakeCluster, OperatorProcess, danlu, kubeflow
from figures import Figures, say
from servers import ROOT

from danlu.client.client import Client
from danlu.kinds.pytorchjob.reconcile import PYTORCHJOB
from danlu.meta import conditions
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD

NODES, JOBS, REPLICAS = 50, 200, 4
IN_FLIGHT = 16
LONGEST_S = 900.0
NAMESPACE = "default"

Start = Callable[[FakeCluster], AbstractContextManager[OperatorProcess]]


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    start: Start
    agent: str  # how its requests are known in the audit log


KUBEFLOW = Contender("Kubeflow 1.9.3 tuned", kubeflow, "training-operator")
DANLU = Contender("danlu operator", danlu, "danlu-operator")
CONTENDERS = (KUBEFLOW, DANLU)


def container() -> Object:
    return {"name": "pytorch", "image": "busybox", "command": ["true"]}


def pod(name: str) -> Object:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container()]},
    }  # fmt: skip


def job(name: str, replicas: int = REPLICAS, *, ends: bool = False) -> Object:
    template: Object = {"spec": {"containers": [container()]}}
    if ends:
        template["metadata"] = {"labels": {"benchmark/ends": "true"}}
    roles = {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template}}
    if replicas > 1:
        roles["Worker"] = {"replicas": replicas - 1, "restartPolicy": "OnFailure", "template": template}
    return {
        "apiVersion": PYTORCHJOB.api_version, "kind": PYTORCHJOB.kind,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"pytorchReplicaSpecs": roles},
    }  # fmt: skip


# -- seeing


def is_running(obj: Object) -> bool:
    return (obj.get("status") or {}).get("phase") == "Running"


def has_condition(*types: str) -> Callable[[Object], bool]:
    def check(obj: Object) -> bool:
        found = (obj.get("status") or {}).get("conditions")
        return any(conditions.is_true(found, type) for type in types)

    return check


async def seen(client: Client, kind: Kind, count: int, wanted: Callable[[Object], bool], fields: str = "") -> float:
    """The moment at which `count` objects have been as wanted; begun before they are made."""
    since = (await client.list(kind, NAMESPACE, fields="metadata.name=none")).resource_version
    names: set[str] = set()
    while True:
        stream = client.watch(kind, NAMESPACE, since=since, fields=fields)
        async with aclosing(cast(Any, stream)) as events:
            async for event in cast(AsyncIterator[Any], events):
                since = event.object["metadata"]["resourceVersion"]
                if event.type in ("ADDED", "MODIFIED") and wanted(event.object):
                    names.add(event.object["metadata"]["name"])
                    if len(names) == count:
                        return time.monotonic()


async def create_all(client: Client, kind: Kind, objects: Sequence[Object]) -> None:
    waiting = iter(objects)

    async def work() -> None:
        for obj in waiting:
            await client.create(kind, obj, NAMESPACE)

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def timed(make: Coroutine[Any, Any, None], *watchers: Coroutine[Any, Any, float]) -> list[float]:
    """Seconds from the first request to what each watcher waits for."""
    tasks = [asyncio.create_task(watcher) for watcher in watchers]
    await asyncio.sleep(1.0)  # their watches are open
    begun = time.monotonic()
    await make
    async with asyncio.timeout(LONGEST_S):
        return [await task - begun for task in tasks]


# -- measuring


class Operators:
    def __init__(self, folder: Path, rounds: int, contenders: Sequence[Contender] = CONTENDERS) -> None:
        self.folder = folder
        self.rounds = rounds
        self.contenders = contenders
        script = ROOT / "scripts/real-kubernetes"
        parts = ["control-plane", "kubectl", "kwok", "kubeflow"]
        built = subprocess.run([script, *parts], stdout=subprocess.PIPE, text=True, check=True)
        self.path = os.pathsep.join([*built.stdout.split(), os.environ["PATH"]])
        self.floor = Figures()
        self.figures = {one.name: Figures() for one in CONTENDERS}
        self._clusters = 0

    def speed(self) -> None:
        """The floor, and 200 jobs of four; then, on the same cluster, single jobs."""
        for number in range(self.rounds):
            say(f"operators, round {number + 1} of {self.rounds}: pods alone")
            with self._cluster() as cluster:
                before = cluster.cpu()
                self.floor.add("all_running_s", asyncio.run(self._pods(cluster)))
                self.floor.add("cluster_cpu_s", cluster.cpu() - before)
            for one in self.contenders:
                say(f"operators, round {number + 1} of {self.rounds}: {one.name}")
                figures = self.figures[one.name]
                with self._cluster() as cluster, one.start(cluster) as operator:
                    for _ in range(5):
                        figures.add("one_running_s", asyncio.run(self._one(cluster)))
                    before, cluster_before = operator.cpu(), cluster.cpu()
                    figures.add("all_running_s", asyncio.run(self._jobs(cluster, JOBS, REPLICAS)))
                    figures.add("operator_cpu_s", operator.cpu() - before)
                    figures.add("cluster_cpu_s", cluster.cpu() - cluster_before)
                    figures.add("all_running_mb", operator.memory() / 1e6)

    def requests(self, jobs: int = 20) -> None:
        for one in self.contenders:
            say(f"operators: requests of {one.name}")
            with self._cluster(audit=True) as cluster, one.start(cluster):
                asyncio.run(self._finish(cluster, 1, "warm"))
                time.sleep(3)
                before = cluster.requests(one.agent)
                asyncio.run(self._finish(cluster, jobs, "job"))
                time.sleep(5)  # what comes after the end belongs to it
                found = cluster.requests(one.agent) - before
                self.figures[one.name].add("requests_per_job", found.total() / jobs)
                for what, count in found.most_common():
                    print(f"    {count / jobs:6.2f}  {what}", flush=True)

    def memory(self, finished: int = 2000, running: int = 200) -> None:
        for one in self.contenders:
            say(f"operators: memory of {one.name} with {finished:,} finished and {running} running jobs")
            with self._cluster() as cluster, one.start(cluster) as operator:
                asyncio.run(self._finish(cluster, finished, "done"))
                asyncio.run(self._jobs(cluster, running, REPLICAS))
                time.sleep(3)
                self.figures[one.name].add("memory_mb", operator.memory() / 1e6)

    def large(self, sizes: Sequence[int] = (1000, 5000)) -> None:
        for one in self.contenders:
            for jobs in sizes:
                say(f"operators: {jobs:,} jobs of two on 500 nodes, {one.name}")
                figures = self.figures[one.name]
                with self._cluster(nodes=500) as cluster, one.start(cluster) as operator:
                    try:
                        taken = asyncio.run(self._jobs(cluster, jobs, 2))
                    except TimeoutError:
                        say(f"{one.name} did not finish {jobs:,} jobs within {LONGEST_S:.0f} s")
                        taken = float("inf")
                    figures.add(f"large_{jobs}_s", taken)
                    figures.add(f"large_{jobs}_mb", operator.memory() / 1e6)

    def _cluster(self, nodes: int = NODES, *, audit: bool = False) -> _Running:
        self._clusters += 1
        return _Running(FakeCluster(self.folder / f"cluster-{self._clusters}", self.path, nodes, audit=audit))

    async def _pods(self, cluster: FakeCluster) -> float:
        async with cluster.client() as client:
            wanted = [pod(f"pod-{number}") for number in range(JOBS * REPLICAS)]
            running = seen(client, POD, len(wanted), is_running, "status.phase=Running")
            return (await timed(create_all(client, POD, wanted), running))[0]

    async def _jobs(self, cluster: FakeCluster, jobs: int, replicas: int) -> float:
        """Until every pod runs, and every job says so."""
        async with cluster.client() as client:
            wanted = [job(f"job-{number}", replicas) for number in range(jobs)]
            return max(
                await timed(
                    create_all(client, PYTORCHJOB, wanted),
                    seen(client, POD, jobs * replicas, is_running, "status.phase=Running"),
                    seen(client, PYTORCHJOB, jobs, has_condition("Running")),
                )
            )

    async def _one(self, cluster: FakeCluster) -> float:
        async with cluster.client() as client:
            name = f"single-{time.monotonic_ns()}"
            return max(
                await timed(
                    create_all(client, PYTORCHJOB, [job(name)]),
                    seen(client, POD, REPLICAS, is_running, "status.phase=Running"),
                    seen(client, PYTORCHJOB, 1, has_condition("Running")),
                )
            )

    async def _finish(self, cluster: FakeCluster, jobs: int, prefix: str) -> None:
        async with cluster.client() as client:
            wanted = [job(f"{prefix}-{number}", ends=True) for number in range(jobs)]
            await timed(
                create_all(client, PYTORCHJOB, wanted),
                seen(client, PYTORCHJOB, jobs, has_condition("Succeeded")),
            )


class _Running(ExitStack):
    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__()
        self._cluster = cluster

    def __enter__(self) -> FakeCluster:  # type: ignore[override]
        self.callback(self._cluster.stop)
        self._cluster.start()
        return self._cluster
