"""Operators on a real API server with fake nodes: Danlu's beside Kubeflow's, and the same objects straight to the API.

Every measurement gets a fresh control plane, all from the same binaries with the same flags, in turns: pods alone, pods
with services, Danlu, Kubeflow, and round again. A turn is measured until all pods and jobs run, and until all that
a job is given is there, its services too.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
from fakecluster import FakeCluster, OperatorProcess, danlu, kubeflow
from figures import Figures, say
from servers import search_path

from danlu import errors
from danlu.client.client import Client
from danlu.kinds._training.observation import Observed
from danlu.kinds.pytorchjob.reconcile import PYTORCHJOB, reconcile
from danlu.meta import conditions
from danlu.meta.clock import utc_now
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD, SERVICE

NODES, JOBS, REPLICAS = 50, 200, 4
FINISHED, FINISHED_REPLICAS, STILL_RUNNING = 2000, 2, 200
LARGE_NODES, LARGE_REPLICAS = 500, 2
LARGE = (1250, 2500, 5000)  # jobs that are there after each step
IN_FLIGHT = 16
LONGEST_S = 900.0
LARGE_STEP_S = 120.0  # an operator that takes longer for one step is not asked for the next
NAMESPACE = "default"

Task = asyncio.Task[list[float]]
Start = Callable[[FakeCluster], AbstractContextManager[OperatorProcess]]


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    start: Start
    agent: str  # how its requests are known in the audit log


KUBEFLOW = Contender("Kubeflow 1.9.3 tuned", kubeflow, "training-operator")
DANLU = Contender("danlu operator", danlu, "danlu-operator")
CONTENDERS = (DANLU, KUBEFLOW)


def container() -> Object:
    return {"name": "pytorch", "image": "busybox", "command": ["true"]}


def pod(name: str) -> Object:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container()]},
    }  # fmt: skip


def pods_of(name: str) -> list[Object]:
    """The pods that a job of this name is given: labels, ports, environment and all, but owned by nobody."""
    obj = job(name)
    obj["metadata"]["uid"] = name
    made = [creation.obj for creation in reconcile(obj, Observed(), utc_now()).create]
    for one in made:
        del one["metadata"]["ownerReferences"]
    return made


def service(pod: Object) -> Object:
    labels = pod["metadata"]["labels"]
    selector = {name: value for name, value in labels.items() if name.startswith("training.kubeflow.org/replica-")}
    selector["job-name"] = labels["job-name"]
    return {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": pod["metadata"]["name"], "namespace": NAMESPACE, "labels": labels},
        "spec": {"clusterIP": "None", "selector": selector, "ports": [{"port": 23456}]},
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


def is_there(_obj: Object) -> bool:
    return True


async def moments(
    client: Client, kind: Kind, count: int, wanted: Callable[[Object], bool], fields: str = "", prefix: str = ""
) -> list[float]:
    """When each of `count` objects came to be as wanted; begun before they are made. `prefix`: of their names."""
    names: dict[str, float] = {}
    since, begun = "", False

    def note(obj: Object) -> bool:
        name = obj["metadata"].get("name") or ""  # a bookmark has none
        if name.startswith(prefix) and wanted(obj):
            names.setdefault(name, time.monotonic())
        return len(names) == count

    while True:
        try:
            if not since:
                found = await client.list(kind, NAMESPACE, fields=fields if begun else "metadata.name=none")
                since, begun = found.resource_version, True
                if any(note(obj) for obj in found.items):
                    return sorted(names.values())
            stream = client.watch(kind, NAMESPACE, since=since, fields=fields)
            async with aclosing(cast(Any, stream)) as events:
                async for event in cast(AsyncIterator[Any], events):
                    since = event.object["metadata"]["resourceVersion"]
                    if event.type in ("ADDED", "MODIFIED") and note(event.object):
                        return sorted(names.values())
        except errors.Expired:
            since = ""  # we were too slow: what is there tells
        except (errors.TooManyRequests, errors.ServiceUnavailable, errors.Timeout):
            await asyncio.sleep(0.2)  # a server that is just beginning to serve this kind


async def seen(
    client: Client, kind: Kind, count: int, wanted: Callable[[Object], bool], fields: str = "", prefix: str = ""
) -> float:
    return (await moments(client, kind, count, wanted, fields, prefix))[-1]


async def create_all(client: Client, kind: Kind, objects: Sequence[Object]) -> None:
    """By plain requests, as any client sends them: what ours asks of a server to be quicker is the operator's."""
    waiting = iter(objects)

    async def work() -> None:
        for obj in waiting:
            await client.request("POST", kind.path(NAMESPACE), body=orjson.dumps(obj))

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def timed(make: Coroutine[Any, Any, None], *watchers: Coroutine[Any, Any, float]) -> list[float]:
    """Seconds from the first request to what each watcher waits for."""
    tasks = [asyncio.create_task(watcher) for watcher in watchers]
    await asyncio.sleep(1.0)  # their watches are open
    begun = time.monotonic()
    await make
    async with asyncio.timeout(LONGEST_S):
        return [await task - begun for task in tasks]


@dataclass(slots=True)
class Turn:
    """What one turn took: until all pods and jobs run, and until everything is there."""

    running_s: float
    complete_s: float
    named: int  # services that were there when all pods and jobs ran
    running_cpu: float  # of the control plane and the fake nodes
    complete_cpu: float
    api_cpu: float  # of kube-apiserver alone, until everything is there

    def add_to(self, figures: Figures) -> None:
        figures.add("all_running_s", self.running_s)
        figures.add("complete_s", self.complete_s)
        figures.add("services_when_running", self.named)
        figures.add("running_cpu_s", self.running_cpu)
        figures.add("complete_cpu_s", self.complete_cpu)
        figures.add("api_cpu_s", self.api_cpu)


async def take_turn(
    cluster: FakeCluster,
    make: Callable[[Client], Coroutine[Any, Any, None]],
    prefix: str,
    *,
    pods: int,
    jobs: int,
    services: int,
) -> Turn:
    """`prefix`: of the names of all that is made."""
    async with cluster.client() as client:

        def begin(kind: Kind, count: int, wanted: Callable[[Object], bool], fields: str = "") -> Task:
            return asyncio.create_task(moments(client, kind, count, wanted, fields, prefix))

        running = [begin(POD, pods, is_running, "status.phase=Running")]
        if jobs:
            running.append(begin(PYTORCHJOB, jobs, has_condition("Running")))
        named = begin(SERVICE, services, is_there) if services else None
        await asyncio.sleep(1.0)  # the watches are open
        before, api_before, begun = cluster.cpu(), cluster.api_cpu(), time.monotonic()
        await make(client)
        async with asyncio.timeout(LONGEST_S):
            ran = max([(await task)[-1] for task in running])
            running_cpu = cluster.cpu() - before
            found = await named if named is not None else [ran]
        at_once = sum(1 for moment in found if moment <= ran) if named is not None else 0
        complete = max(ran, found[-1])
        spent, api_spent = cluster.cpu() - before, cluster.api_cpu() - api_before
        return Turn(ran - begun, complete - begun, at_once, running_cpu, spent, api_spent)


# -- measuring


class Operators:
    def __init__(self, folder: Path, rounds: int, contenders: Sequence[Contender] = CONTENDERS) -> None:
        self.folder = folder
        self.rounds = rounds
        self.contenders = contenders
        self.path = search_path(["control-plane", "kubectl", "kwok", "kubeflow"])
        self.bare_floor = Figures()  # pods of a container and nothing else
        self.floor = Figures()  # the pods that the jobs are given
        self.named_floor = Figures()  # their services, too
        self.figures = {one.name: Figures() for one in CONTENDERS}
        self._clusters = 0

    def speed(self, *, equal: bool = False) -> None:
        """The floors, and 200 jobs of four; before that, on the same cluster, single jobs.

        `equal`: no program yields to the API server.
        """
        yielding = not equal
        for number in range(self.rounds):
            turn = f"operators, round {number + 1} of {self.rounds}"
            bare = [pod(f"job-{number}") for number in range(JOBS * REPLICAS)]
            pods = [one for number in range(JOBS) for one in pods_of(f"job-{number}")]
            services = [service(one) for one in pods]
            floors: list[tuple[str, Figures, list[Object], list[Object]]] = [
                ("bare pods alone", self.bare_floor, bare, []),
                ("the jobs' pods alone", self.floor, pods, []),
                ("their pods and services alone", self.named_floor, pods, services),
            ]
            for name, figures, straight, with_them in floors:
                say(f"{turn}: {name}")
                with self._cluster(crowded=yielding) as cluster:
                    asyncio.run(self._straight(cluster, straight, with_them)).add_to(figures)
            for one in self.contenders:
                say(f"{turn}: {one.name}")
                figures = self.figures[one.name]
                with self._cluster(crowded=yielding) as cluster, one.start(cluster) as operator:
                    for _ in range(5):
                        figures.add("one_running_s", asyncio.run(self._one(cluster)))
                    before = operator.cpu()
                    asyncio.run(self._jobs(cluster, "job-", JOBS, REPLICAS)).add_to(figures)
                    figures.add("operator_cpu_s", operator.cpu() - before)
                    figures.add("all_running_mb", operator.memory() / 1e6)

    def requests(self, jobs: int = 20) -> None:
        """In every round: how many events Kubeflow's operator tells of a job differs from run to run by a fifth."""
        for turn, one in itertools.product(range(self.rounds), self.contenders):
            say(f"operators, round {turn + 1} of {self.rounds}: requests of {one.name}")
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

    def memory(self, finished: int = FINISHED, running: int = STILL_RUNNING) -> None:
        for one in self.contenders:
            say(f"operators: memory of {one.name} with {finished:,} finished and {running} running jobs")
            figures = self.figures[one.name]
            with self._cluster() as cluster, one.start(cluster) as operator:
                figures.add("empty_mb", operator.memory() / 1e6)
                asyncio.run(self._finish(cluster, finished, "done", FINISHED_REPLICAS))
                asyncio.run(self._jobs(cluster, "job-", running, REPLICAS))
                time.sleep(3)
                figures.add("memory_mb", operator.memory() / 1e6)

    def large(self, sizes: Sequence[int] = LARGE) -> None:
        """Jobs come in steps to the same cluster, and stay. After each step a single job shows the latency."""
        for one in self.contenders:
            figures = self.figures[one.name]
            with self._cluster(nodes=LARGE_NODES) as cluster, one.start(cluster) as operator:
                there = 0
                for size in sizes:
                    say(f"operators: {there:,} to {size:,} jobs of two on {LARGE_NODES} nodes, {one.name}")
                    begun, before = time.monotonic(), operator.cpu()
                    try:
                        turn = asyncio.run(self._jobs(cluster, f"to-{size}-", size - there, LARGE_REPLICAS))
                    except TimeoutError:
                        say(f"{one.name} did not finish {size:,} jobs within {LONGEST_S:.0f} s more")
                        break
                    figures.add(f"large_{size}_ms_per_job", turn.complete_s / (size - there) * 1e3)
                    figures.add(f"large_{size}_operator_ms_per_job", (operator.cpu() - before) / (size - there) * 1e3)
                    figures.add(f"large_{size}_mb", operator.memory() / 1e6)
                    figures.add(f"large_{size}_one_s", *[asyncio.run(self._one(cluster)) for _ in range(5)])
                    there = size
                    if time.monotonic() - begun > LARGE_STEP_S and one is not DANLU:
                        say(f"{one.name} took longer than {LARGE_STEP_S:.0f} s for one step and is asked for no more")
                        break

    def _cluster(self, nodes: int = NODES, **how: bool) -> _Running:
        self._clusters += 1
        return _Running(FakeCluster(self.folder / f"cluster-{self._clusters}", self.path, nodes, **how))

    async def _straight(self, cluster: FakeCluster, pods: list[Object], services: list[Object]) -> Turn:
        async def make(client: Client) -> None:
            await asyncio.gather(create_all(client, POD, pods), create_all(client, SERVICE, services))

        return await take_turn(cluster, make, "job-", pods=len(pods), jobs=0, services=len(services))

    async def _jobs(self, cluster: FakeCluster, prefix: str, jobs: int, replicas: int) -> Turn:
        async def make(client: Client) -> None:
            await create_all(client, PYTORCHJOB, [job(f"{prefix}{number}", replicas) for number in range(jobs)])

        children = jobs * replicas
        return await take_turn(cluster, make, prefix, pods=children, jobs=jobs, services=children)

    async def _one(self, cluster: FakeCluster) -> float:
        async with cluster.client() as client:
            name = f"single-{time.monotonic_ns()}"
            return max(
                await timed(
                    create_all(client, PYTORCHJOB, [job(name)]),
                    seen(client, POD, REPLICAS, is_running, "status.phase=Running", name),
                    seen(client, PYTORCHJOB, 1, has_condition("Running"), prefix=name),
                )
            )

    async def _finish(self, cluster: FakeCluster, jobs: int, prefix: str, replicas: int = REPLICAS) -> None:
        async with cluster.client() as client:
            wanted = [job(f"{prefix}-{number}", replicas, ends=True) for number in range(jobs)]
            await timed(
                create_all(client, PYTORCHJOB, wanted),
                seen(client, PYTORCHJOB, jobs, has_condition("Succeeded"), prefix=f"{prefix}-"),
            )


class _Running(ExitStack):
    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__()
        self._cluster = cluster

    def __enter__(self) -> FakeCluster:  # type: ignore[override]
        self.callback(self._cluster.stop)
        try:
            self._cluster.start()
        except BaseException:
            self.close()
            raise
        return self._cluster
