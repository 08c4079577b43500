"""Small worlds to schedule in: nodes and pods made in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.placement import Diagnosis, FoundNode, Placer
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.preemption import PreemptionPlan, plan
from danlu.meta.kind import Object


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> Object:
    extended = more.pop("extended", {})
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **extended}},
    }


def pod(name: str, *, labels: dict[str, str] | None = None, namespace: str = "default", **spec: Any) -> Object:
    requests = spec.pop("requests", {})
    container: Object = {"name": "main", "image": "x", "resources": {"requests": requests, "limits": {}}}
    extended = {key: value for key, value in requests.items() if "/" in key}
    container["resources"]["limits"] = extended
    container.update(spec.pop("container", {}))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


class NoVolumes:
    def claim(self, namespace: str, name: str) -> Object | None:
        return None

    def volume(self, name: str) -> Object | None:
        return None

    def storage_class(self, name: str) -> Object | None:
        return None

    def free_volume_for(self, claim: Object, suits: Callable[[Object], bool]) -> Object | None:
        return None


class World:
    def __init__(self, *nodes: Object) -> None:
        self.cache = Cache()
        self.view = NoVolumes()
        for made in nodes:
            self.cache.set_node(made)
        self.placer = Placer(self.cache, self.view)

    def put(self, made: Object, on: str) -> PodInfo:
        info = PodInfo(made)
        self.cache.set_pod(info, on)
        return info

    def place(self, made: Object) -> str:
        """The node, assumed; or the message."""
        info = PodInfo(made)
        found = self.placer.place(info)
        if isinstance(found, FoundNode):
            self.cache.assume(info, found.node)
            return found.node
        return found.message()

    def refused(self, made: Object) -> str:
        info = PodInfo(made)
        found = self.placer.place(info)
        assert isinstance(found, Diagnosis)
        words = plan(info, self.cache, self.view, found)
        assert isinstance(words, str)
        found.preemption = words
        return found.message()

    def preempt(self, made: Object) -> PreemptionPlan | str:
        info = PodInfo(made)
        found = self.placer.place(info)
        assert isinstance(found, Diagnosis)
        return plan(info, self.cache, self.view, found)
