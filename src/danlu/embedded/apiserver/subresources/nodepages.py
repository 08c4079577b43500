"""`nodes/NAME/proxy/PATH`: those of kubelet's own pages that have a meaning here, under kubelet's names.

Dashboards, autoscalers and metrics-server read stats/summary, metrics/resource and metrics/cadvisor. Only what is
measured is told: an absent series is a question, a made-up one an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.nodeusage import Usage
from danlu.embedded.apiserver.request import Call, Response, StreamResponse
from danlu.errors import NotFound, ServiceUnavailable
from danlu.meta import clock, objects, quantity
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class NodeReading:
    """One node at one moment: its object, what it uses, and its pods that run with what their containers use."""

    node: Object
    usage: Usage | None
    pods: list[tuple[Object, Mapping[str, Usage]]]


async def answer(call: Call, path: str) -> Response | StreamResponse:
    name = call.name.partition(":")[0]
    stored = call.server.store.get("nodes", "", name)
    if stored is None:
        raise NotFound.of("nodes", name)
    if name not in call.server.node_streams:
        raise ServiceUnavailable(f'error trying to reach service: node "{name}" is not running')
    match path.strip("/"):
        case "healthz":
            return Response.text("ok")
        case "metrics":
            return await call.server.pages["/metrics"](call)  # node and server are one process
        case "pods" | "runningpods":
            return Response.json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": _pods(call, name)})
        case "stats/summary":
            return Response.json(summary(await _read(call, stored.obj)))
        case "metrics/resource":
            return Response(200, _text(resource_metrics(await _read(call, stored.obj))), TEXT)
        case "metrics/cadvisor":
            return Response(200, _text(cadvisor_metrics(await _read(call, stored.obj))), TEXT)
    return Response.text("404 page not found\n", 404)


def _pods(call: Call, node: str) -> list[Object]:
    return [stored.obj for stored in call.server.store.scan("pods") if stored.obj["spec"].get("nodeName") == node]


async def _read(call: Call, node: Object) -> NodeReading:
    pods = {objects.uid(pod): pod for pod in _pods(call, objects.name(node))}
    source = call.server.node_usage
    if source is None:
        return NodeReading(node, None, [])
    used = await source.of_pods(pods.keys()) if pods else {}
    of_node = await source.of_nodes({objects.name(node): pods.keys()})
    running = [(pod, used[uid]) for uid, pod in pods.items() if used.get(uid)]
    return NodeReading(node, of_node.get(objects.name(node)), running)


# -- stats/summary


def summary(reading: NodeReading) -> Object:
    capacity = quantity.parse(objects.get(reading.node, "status.capacity.memory", "0")).value()
    node: Object = {"nodeName": objects.name(reading.node), "startTime": _created(reading.node)}
    if reading.usage is not None:
        node |= _stats(reading.usage)
        node["memory"]["availableBytes"] = max(0, capacity - reading.usage.memory)
    return {"node": node, "pods": [_pod_summary(pod, used) for pod, used in reading.pods]}


def _pod_summary(pod: Object, used: Mapping[str, Usage]) -> Object:
    started = _starts(pod)
    containers = [
        {"name": name, "startTime": started.get(name) or _created(pod), **_stats(usage)} for name, usage in used.items()
    ]
    latest = max(used.values(), key=lambda usage: usage.at)
    return {
        "podRef": {"name": objects.name(pod), "namespace": objects.namespace(pod), "uid": objects.uid(pod)},
        "startTime": objects.get(pod, "status.startTime") or _created(pod),
        "containers": containers,
        "cpu": {
            "time": clock.rfc3339(latest.at),
            "usageNanoCores": sum(usage.cpu_nano for usage in used.values()),
            "usageCoreNanoSeconds": sum(_nanoseconds(usage) for usage in used.values()),
        },
        "memory": _memory(latest.at, sum(usage.memory for usage in used.values())),
    }


def _stats(usage: Usage) -> Object:
    stamp = clock.rfc3339(usage.at)
    cpu = {"time": stamp, "usageNanoCores": usage.cpu_nano, "usageCoreNanoSeconds": _nanoseconds(usage)}
    return {"cpu": cpu, "memory": _memory(usage.at, usage.memory)}


def _memory(at: float, used: int) -> Object:
    """No cgroup counts page caches here: all of it is resident and working."""
    return {"time": clock.rfc3339(at), "usageBytes": used, "workingSetBytes": used, "rssBytes": used}


def _nanoseconds(usage: Usage) -> int:
    return round(usage.cpu_seconds * 1e9)


def _created(obj: Object) -> str:
    return str(objects.get(obj, "metadata.creationTimestamp", ""))


def _starts(pod: Object) -> dict[str, str]:
    """When the containers that run were started."""
    lists = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    statuses = [one for name in lists for one in objects.get(pod, f"status.{name}") or ()]
    found = {one["name"]: objects.get(one, "state.running.startedAt", "") for one in statuses}
    return {name: stamp for name, stamp in found.items() if stamp}


# -- Prometheus' text


def resource_metrics(reading: NodeReading) -> Iterator[Metric]:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    labels = ["container", "namespace", "pod"]
    cpu = CounterMetricFamily("container_cpu_usage_seconds", "CPU time of the container.", labels=labels)
    memory = GaugeMetricFamily("container_memory_working_set_bytes", "Memory of the container.", labels=labels)
    start = GaugeMetricFamily("container_start_time_seconds", "When it started, since 1970.", labels=labels)
    pod_cpu = CounterMetricFamily("pod_cpu_usage_seconds", "CPU time of the pod.", labels=labels[1:])
    pod_memory = GaugeMetricFamily("pod_memory_working_set_bytes", "Memory of the pod.", labels=labels[1:])
    for pod, used in reading.pods:
        where, started = [objects.namespace(pod), objects.name(pod)], _starts(pod)
        for name, usage in used.items():
            cpu.add_metric([name, *where], usage.cpu_seconds, timestamp=usage.at)
            memory.add_metric([name, *where], usage.memory, timestamp=usage.at)
            if name in started:
                start.add_metric([name, *where], clock.parse_time(started[name]).timestamp())
        pod_cpu.add_metric(where, sum(usage.cpu_seconds for usage in used.values()))
        pod_memory.add_metric(where, sum(usage.memory for usage in used.values()))
    if reading.usage is not None:
        yield CounterMetricFamily("node_cpu_usage_seconds", "CPU time of the node.", value=reading.usage.cpu_seconds)
        yield GaugeMetricFamily("node_memory_working_set_bytes", "Memory of the node.", value=reading.usage.memory)
    yield from (cpu, memory, start, pod_cpu, pod_memory)
    yield GaugeMetricFamily("resource_scrape_error", "1 if the page could not be made whole.", value=0)


def cadvisor_metrics(reading: NodeReading) -> Iterator[Metric]:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    labels = ["container", "id", "image", "name", "namespace", "pod"]
    cpu = CounterMetricFamily("container_cpu_usage_seconds", "CPU time of the container.", labels=[*labels, "cpu"])
    working = GaugeMetricFamily("container_memory_working_set_bytes", "Memory of the container.", labels=labels)
    resident = GaugeMetricFamily("container_memory_rss", "Resident memory of the container.", labels=labels)
    start = GaugeMetricFamily("container_start_time_seconds", "When it started, since 1970.", labels=labels)
    for pod, used in reading.pods:
        started, images = _starts(pod), {one["name"]: one.get("image") or "" for one in pod["spec"]["containers"]}
        for name, usage in used.items():
            place = f"/kubepods/pod{objects.uid(pod)}/{name}"
            values = [name, place, images.get(name, ""), name, objects.namespace(pod), objects.name(pod)]
            cpu.add_metric([*values, "total"], usage.cpu_seconds, timestamp=usage.at)
            working.add_metric(values, usage.memory, timestamp=usage.at)
            resident.add_metric(values, usage.memory, timestamp=usage.at)
            if name in started:
                start.add_metric(values, clock.parse_time(started[name]).timestamp())
    yield from (cpu, working, resident, start)
    capacity = objects.get(reading.node, "status.capacity") or {}
    cores, memory = (quantity.parse(capacity.get(name, "0")).value() for name in ("cpu", "memory"))
    yield GaugeMetricFamily("machine_cpu_cores", "Cores of the node.", value=cores)
    yield GaugeMetricFamily("machine_memory_bytes", "Memory of the node.", value=memory)


def _text(metrics: Iterator[Metric]) -> bytes:
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page([*metrics]))
    return generate_latest(registry)


class _Page:
    """What a registry asks for metrics: those that were made for this answer."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics
