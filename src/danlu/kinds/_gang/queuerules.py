"""What a Queue says, in plain terms. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from danlu.diagnose import stated
from danlu.meta import labels
from danlu.meta.kind import Object
from danlu.meta.quantity import parse

STATED = ("cpu", "memory")  # what a quota names of these, every container must state


@dataclass(frozen=True, slots=True)
class QueueRules:
    priority: int = 0
    preemptible: bool = True
    quota: Mapping[str, int] = field(default_factory=dict)  # cpu in thousandths, all else in whole units
    node_requirements: Sequence[Object] = ()
    closed: bool = False
    namespaces: labels.Selector | None = None  # None: no namespace may use it


def quota_of(spec: Object) -> Mapping[str, str | int]:
    """`spec.requests` is how queues were written before 2023."""
    found: Mapping[str, str | int] = (spec.get("quota") or {}).get("requests") or spec.get("requests") or {}
    return found


def rules_of(queue: Object) -> QueueRules:
    spec = queue.get("spec") or {}
    selector = spec.get("namespaceSelector")
    quota = {name: parse(amount) for name, amount in quota_of(spec).items()}
    return QueueRules(
        priority=spec.get("priority") or 0,
        preemptible=spec.get("preemptible") is not False,
        quota={name: q.milli() if name == "cpu" else q.value() for name, q in quota.items()},
        node_requirements=_node_requirements(spec.get("nodeSelector")),
        closed=bool(spec.get("closed")),
        namespaces=None if selector is None else labels.from_label_selector(selector),
    )


def _node_requirements(selector: Object | None) -> Sequence[Object]:
    if not selector:
        return ()
    by_label = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted((selector.get("matchLabels") or {}).items())
    ]
    return [*by_label, *(selector.get("matchExpressions") or ())]


def unstated(pod: Object, queue: str, rules: QueueRules) -> str:
    """A request that the quota counts and a container does not state; "" if there is none."""
    for name in STATED:
        if name not in rules.quota:
            continue
        for container in (pod.get("spec") or {}).get("containers") or ():
            if name not in ((container.get("resources") or {}).get("requests") or {}):
                told = {"queue": queue, "resource": name, "pod": pod["metadata"]["name"]}
                return stated("DL-QUEUE-UNSTATED", **told, container=container.get("name"))
    return ""
