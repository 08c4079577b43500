"""metrics.k8s.io: what pods and nodes use now, as metrics-server has it. `kubectl top` reads it.

The objects carry name and labels of what they are about, so that selectors choose as they do there. What does not run,
or runs on a node that is not this machine's, has no metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from danlu.embedded.apiserver.listselectors import matcher
from danlu.embedded.apiserver.nodeusage import Usage
from danlu.embedded.apiserver.request import Call
from danlu.embedded.apiserver.served import Column
from danlu.embedded.builtin._shared.hooks import name_of
from danlu.embedded.storage import Stored
from danlu.errors import NotFound
from danlu.meta import clock
from danlu.meta.kind import Object
from danlu.meta.wellknown import NODE, POD, POD_METRICS

_QUANTITIES: Object = {
    "type": "object",
    "additionalProperties": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    },
}
_CONTAINER: Object = {"type": "object", "properties": {"name": {"type": "string"}, "usage": _QUANTITIES}}
_TIMES: Object = {"timestamp": {"type": "string", "format": "date-time"}, "window": {"type": "string"}}
NODE_SCHEMA: Object = {"type": "object", "properties": {**_TIMES, "usage": _QUANTITIES}}
POD_SCHEMA: Object = {
    "type": "object",
    "properties": {**_TIMES, "containers": {"type": "array", "items": _CONTAINER}},
}


async def pods(call: Call) -> list[Object]:
    chosen = {stored.obj["metadata"]["uid"]: stored.obj for stored in _chosen(call, POD.resource, "pods")}
    source = call.server.node_usage
    used = await source.of_pods(chosen.keys()) if source is not None and chosen else {}
    found = [_pod_metrics(pod, used[uid]) for uid, pod in chosen.items() if used.get(uid)]
    return _named(call, found, "podmetrics", f"{call.namespace}/{call.name}")


async def nodes(call: Call) -> list[Object]:
    chosen = {stored.name: stored.obj for stored in _chosen(call, NODE.resource, "nodes")}
    present = {name: obj for name, obj in chosen.items() if name in call.server.node_streams}
    on_node: dict[str, list[str]] = {name: [] for name in present}
    for stored in call.server.store.scan(POD.resource, None):
        node = stored.obj["spec"].get("nodeName")
        if node in on_node:
            on_node[node].append(stored.obj["metadata"]["uid"])
    source = call.server.node_usage
    used = await source.of_nodes(on_node) if source is not None and on_node else {}
    found = [
        {**_head(obj, "NodeMetrics"), **_times(used[name]), "usage": _quantities(used[name])}
        for name, obj in present.items()
        if name in used
    ]
    return _named(call, found, "nodemetrics", call.name)


def _chosen(call: Call, key: str, plural: str) -> list[Stored]:
    served = call.served
    assert served is not None
    if call.verb == "get":
        stored = call.server.store.get(key, call.namespace, call.name)
        if stored is None:
            raise NotFound.of(plural, call.name)
        return [stored]
    matches = matcher(call, served)
    found = call.server.store.scan(key, call.namespace or None)
    return [stored for stored in found if matches is None or matches(stored)]


def _named(call: Call, found: list[Object], plural: str, shown: str) -> list[Object]:
    if call.verb == "get" and not found:
        raise NotFound.of(plural, shown, "metrics.k8s.io")
    return found


def _pod_metrics(pod: Object, used: Mapping[str, Usage]) -> Object:
    slowest = max(used.values(), key=lambda usage: usage.window)
    containers = [{"name": name, "usage": _quantities(usage)} for name, usage in used.items()]
    return {**_head(pod, "PodMetrics"), **_times(slowest), "containers": containers}


def _head(obj: Object, kind: str) -> Object:
    meta = {"name": obj["metadata"]["name"], "creationTimestamp": clock.now_rfc3339()}
    for field in ("namespace", "labels"):
        if obj["metadata"].get(field):
            meta[field] = obj["metadata"][field]
    return {"kind": kind, "apiVersion": POD_METRICS.api_version, "metadata": meta}


def _times(usage: Usage) -> Object:
    return {"timestamp": clock.rfc3339(usage.at), "window": f"{round(usage.window, 3):g}s"}


def _quantities(usage: Usage) -> Object:
    return {"cpu": f"{usage.cpu_nano}n" if usage.cpu_nano else "0", "memory": f"{usage.memory // 1024}Ki"}


def _total(obj: Object, resource: str) -> str:
    parts: Iterable[Object] = obj.get("containers", [obj])
    amounts = [str((part.get("usage") or {}).get(resource, "0")) for part in parts]
    unit = {"cpu": "n", "memory": "Ki"}[resource]
    total = sum(int(amount.removesuffix(unit)) for amount in amounts)
    return f"{total}{unit}" if total else "0"


COLUMNS = (
    Column("Name", name_of, format="name"),
    Column("cpu", lambda obj: _total(obj, "cpu"), format="quantity"),
    Column("memory", lambda obj: _total(obj, "memory"), format="quantity"),
    Column("Window", lambda obj: obj.get("window", ""), format="duration"),
)
