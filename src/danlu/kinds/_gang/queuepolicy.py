"""The T9k scheduler's rules, read from Queue and PodGroup objects, in the terms of a scheduler that places pods.

It answers from informers' caches and does nothing itself. A scheduler asks it which gang a pod belongs to, what its
queue allows, and why a pod may not be placed at all; and it is told when an answer may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from danlu.client.informer import Informer
from danlu.diagnose import stated
from danlu.kinds._gang import markers
from danlu.kinds._gang.queuerules import QueueRules, rules_of, unstated
from danlu.meta.kind import Object

Listener = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup; or a pod on its own, which is a group of one without a name."""

    key: str
    name: str
    min_member: int
    lane: str
    priority: int = 0
    roles: Mapping[str, int] = field(default_factory=dict)


class T9kPolicy:
    names = (markers.SCHEDULER,)

    def __init__(self, queues: Informer, groups: Informer, namespaces: Informer) -> None:
        self._queues, self._groups, self._namespaces = queues, groups, namespaces
        self._rules: dict[str, tuple[Object, QueueRules]] = {}  # name → (spec it was read from, rules)

    def gang(self, pod: Object) -> Group:
        namespace, name = pod["metadata"].get("namespace") or "", markers.group_of(pod)
        if not name:
            own = pod["metadata"]["name"]
            return Group(f"{namespace}/pod/{own}", "", 1, markers.queue_of(pod, None))
        found = self._groups.get(namespace, name)
        spec = (found or {}).get("spec") or {}
        return Group(
            key=f"{namespace}/{name}",
            name=name,
            min_member=1 if spec.get("minMember") is None else spec["minMember"],
            lane=markers.queue_of(pod, found),
            priority=spec.get("priority") or 0,
            roles={role["name"]: role.get("minMember") or 0 for role in spec.get("roles") or ()},
        )

    def role(self, pod: Object) -> str:
        return markers.role_of(pod)

    def lane(self, name: str) -> QueueRules | None:
        queue = self._queues.get(markers.SYSTEM_NAMESPACE, name)
        if queue is None:
            return None
        spec = queue.get("spec") or {}
        known = self._rules.get(name)
        if known is None or known[0] is not spec:
            known = self._rules[name] = (spec, rules_of(queue))
        return known[1]

    def objection(self, pod: Object, started: bool) -> str:
        """`started`: its group already runs; it may mend itself whatever became of the queue since."""
        gang = self.gang(pod)
        namespace = pod["metadata"].get("namespace") or ""
        if gang.name and self._groups.get(namespace, gang.name) is None:
            return stated("DL-GROUP-MISSING", group=gang.name, namespace=namespace)
        rules = self.lane(gang.lane)
        if rules is None:
            known = sorted(queue["metadata"]["name"] for queue in self._queues.list(markers.SYSTEM_NAMESPACE))
            return stated("DL-QUEUE-MISSING", queue=gang.lane, there=", ".join(known) or "none")
        if started:
            return ""
        if rules.closed:
            return stated("DL-QUEUE-CLOSED", queue=gang.lane)
        if rules.namespaces is None:
            why = stated("DL-QUEUE-NO-SELECTOR")
            return stated("DL-QUEUE-FORBIDDEN", namespace=namespace, queue=gang.lane, why=why)
        found = self._namespaces.get(None, namespace) or {"metadata": {}}
        if not rules.namespaces.matches(found["metadata"].get("labels") or {}):
            why = stated("DL-QUEUE-NOT-SELECTED")
            return stated("DL-QUEUE-FORBIDDEN", namespace=namespace, queue=gang.lane, why=why)
        return unstated(pod, gang.lane, rules)

    # -- changes

    def listen(self, gang_changed: Listener, lane_changed: Listener) -> None:
        def queue_event(event: str, queue: Object, old: Object | None) -> None:
            in_use = queue["metadata"].get("namespace") == markers.SYSTEM_NAMESPACE
            if in_use and (old is None or event == "DELETED" or old.get("spec") != queue.get("spec")):
                lane_changed(queue["metadata"]["name"])

        def group_event(event: str, group: Object, old: Object | None) -> None:
            if old is None or event == "DELETED" or old.get("spec") != group.get("spec"):
                gang_changed(f"{group['metadata'].get('namespace') or ''}/{group['metadata']['name']}")

        def namespace_event(_event: str, namespace: Object, old: Object | None) -> None:
            if old is None or old["metadata"].get("labels") != namespace["metadata"].get("labels"):
                for queue in self._queues.list(markers.SYSTEM_NAMESPACE):
                    lane_changed(queue["metadata"]["name"])

        self._queues.add_handler(queue_event)
        self._groups.add_handler(group_event)
        self._namespaces.add_handler(namespace_event)
