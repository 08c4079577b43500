"""Pods, nodes and events as short as they can be."""

from __future__ import annotations

from typing import Any

from danlu.meta.kind import Object


def pod(name: str = "p", *, spec: Object | None = None, **status: Any) -> Object:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "demo", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "main", "image": "nope:1"}], **(spec or {})},
        "status": {"phase": "Pending", **status},
    }


def unplaced(message: str, name: str = "p", **spec: Any) -> Object:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod(name, spec=spec, conditions=[told])


def asking(**requests: str) -> Object:
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def ended(exit_code: int, reason: str = "Error", message: str = "", name: str = "p", **spec: Any) -> Object:
    terminated = {"exitCode": exit_code, "reason": reason, "message": message}
    statuses = [{"name": "main", "state": {"terminated": terminated}}]
    return pod(name, spec=spec, phase="Failed", containerStatuses=statuses)


def waiting(reason: str, message: str = "", name: str = "p", **more: Any) -> Object:
    statuses = [
        {"name": "main", "image": "nope:1", "state": {"waiting": {"reason": reason, "message": message}}, **more}
    ]
    return pod(name, containerStatuses=statuses)


def running(name: str) -> Object:
    return pod(name, phase="Running", containerStatuses=[{"name": "main", "state": {"running": {}}}])


def node(name: str = "n", **allocatable: str) -> Object:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def event(about: Object, reason: str, message: str, type: str = "Warning", **metadata: Any) -> Object:
    return {
        "metadata": {"name": "e", **metadata},
        "type": type,
        "reason": reason,
        "message": message,
        "involvedObject": {"uid": about["metadata"]["uid"]},
    }
