"""Node lifecycle: a node that falls silent is tainted, and pods that do not tolerate that are moved away.

A heartbeat counts from when *we* saw it, not from the time written in it: after a night's sleep of the whole machine
no node is late, and no pod is evicted for it.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Any

from danlu import errors
from danlu.meta import clock, conditions, nodeselection, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import LEASE, NODE, POD
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

GRACE_S = 40.0
STARTUP_GRACE_S = 60.0
LOOK_S = 5.0
LEASES = "kube-node-lease"
BY_NODE = "node"

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OURS = frozenset((NOT_READY, UNREACHABLE, UNSCHEDULABLE, *PRESSURES.values()))
HEARTBEATS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def make(manager: Manager) -> Controller:
    nodes = NodeController(manager)
    controller = Controller("nodes", nodes.reconcile, workers=4)
    controller.watches(nodes.nodes)

    def pod_changed(event: str, pod: Object, old: Object | None) -> None:
        node = pod["spec"].get("nodeName")
        known = nodes.nodes.get(None, node) if node else None
        arrived = event == "ADDED" or (old is not None and old["spec"].get("nodeName") != node)
        if arrived and known is not None and _evicting(known):
            controller.queue.add(Request("", node))

    nodes.pods.add_handler(pod_changed)
    return controller


def _evicting(node: Object) -> list[Object]:
    return [taint for taint in node["spec"].get("taints") or () if taint.get("effect") == "NoExecute"]


def taints_for(node: Object, now: str) -> list[Object]:
    """What the node's conditions ask for, besides the taints that others have put there."""
    found = (node.get("status") or {}).get("conditions")
    ready = conditions.get(found, "Ready")
    wanted: list[tuple[str, str]] = []
    if ready is not None and ready.get("status") != "True":
        key = NOT_READY if ready.get("status") == "False" else UNREACHABLE
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    wanted += [(key, "NoSchedule") for type, key in PRESSURES.items() if conditions.is_true(found, type)]
    if node["spec"].get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    have = {(taint["key"], taint["effect"]): taint for taint in node["spec"].get("taints") or ()}
    others = [taint for (key, _), taint in have.items() if key not in OURS]
    return others + [have.get(pair) or {"key": pair[0], "effect": pair[1], "timeAdded": now} for pair in wanted]


def eviction_delay(pod: Object, taints: list[Object], now: datetime) -> float | None:
    """Seconds until the pod must go; 0 or less: now; None: it may stay."""
    tolerations = pod["spec"].get("tolerations") or ()
    delays = []
    for taint in taints:
        matching = [t for t in tolerations if nodeselection.tolerates(t, taint)]
        if not matching:
            return 0.0
        limits = [t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None]
        if limits:
            since = clock.parse_time(taint["timeAdded"]) if taint.get("timeAdded") else now
            delays.append((clock.later(since, max(min(limits), 0)) - now).total_seconds())
    return min(delays) if delays else None


def _node_name(pod: Object) -> Iterable[Hashable]:
    name = pod["spec"].get("nodeName")
    return (name,) if name else ()


class NodeController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.nodes = manager.informer(NODE)
        self.leases = manager.informer(LEASE, namespace=LEASES)
        self.pods = manager.informer(POD)
        self.pods.add_index(BY_NODE, _node_name)
        self.events = manager.recorder("node-controller")
        self._heard: dict[str, tuple[Any, float]] = {}  # node → (its last sign of life, when we saw it)
        self._known: set[str] = set()

    async def reconcile(self, request: Request) -> Outcome | None:
        node = self.nodes.get(None, request.name)
        if node is None:
            self._heard.pop(request.name, None)
            return None
        if objects.uid(node) not in self._known:
            self._known.add(objects.uid(node))
            text = f"Node {request.name} event: Registered Node {request.name} in Controller"
            self.events.normal(node, "RegisteredNode", text)
        try:
            lost = self._lost_reason(node)
            if lost is not None:
                node = await self._declare_lost(node, lost)
            node = await self._taint(node)
        except errors.NotFound:
            return None
        after = await self._evict(node)
        return Outcome(requeue_after=min(LOOK_S, after) if after is not None else LOOK_S)

    def _lost_reason(self, node: Object) -> str | None:
        """Why the node counts as lost; None while it is heard of."""
        name = objects.name(node)
        ready = conditions.get((node.get("status") or {}).get("conditions"), "Ready")
        lease = self.leases.get(LEASES, name)
        sign = (
            ready.get("lastHeartbeatTime") if ready else None,
            (lease or {}).get("spec", {}).get("renewTime"),
        )
        now = time.monotonic()
        heard = self._heard.get(name)
        unknown = ready is not None and ready.get("status") == "Unknown"
        if heard is None or (heard[0] != sign and not (unknown and heard[0][1] == sign[1])):
            self._heard[name] = heard = (sign, now)
        posted = ready is not None and ready.get("reason") != "NodeStatusNeverUpdated"
        if now - heard[1] <= (GRACE_S if posted else STARTUP_GRACE_S):
            return None
        return "NodeStatusUnknown" if posted else "NodeStatusNeverUpdated"

    async def _declare_lost(self, node: Object, reason: str) -> Object:
        status = objects.copy(node.get("status") or {})
        found = status.setdefault("conditions", [])
        now = clock.now_rfc3339()
        changed = False
        was_ready = conditions.is_true(found, "Ready")
        for type in HEARTBEATS:
            known = conditions.get(found, type)
            if known is None:
                text = "Kubelet never posted node status."
                changed |= conditions.set(found, type, "Unknown", "NodeStatusNeverUpdated", text, now)
            elif known.get("status") != "Unknown":
                known.update(status="Unknown", reason=reason, message="Kubelet stopped posting node status.")
                known["lastTransitionTime"] = now
                changed = True
        if not changed:
            return node
        node = await self.client.update_status(NODE, {**node, "status": status})
        if was_ready:
            name = objects.name(node)
            self.events.normal(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            for pod in self.pods.by_index(BY_NODE, name):
                await self._mark_not_ready(pod)
        return node

    async def _mark_not_ready(self, pod: Object) -> None:
        if not conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready"):
            return
        body = {"type": "Ready", "status": "False", "lastTransitionTime": clock.now_rfc3339()}
        meta = pod["metadata"]
        try:
            patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [body]}}
            await self.client.patch(POD, meta["name"], meta["namespace"], patch, type="strategic", subresource="status")
        except (errors.NotFound, errors.Conflict):
            return
        self.events.warning(pod, "NodeNotReady", "Node is not ready")

    async def _taint(self, node: Object) -> Object:
        wanted = taints_for(node, clock.now_rfc3339())
        if wanted == (node["spec"].get("taints") or []):
            return node
        body = {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "spec": {"taints": wanted or None},
        }
        return await self.client.patch(NODE, objects.name(node), None, body)

    async def _evict(self, node: Object) -> float | None:
        """Seconds until the next pod has to go."""
        taints = _evicting(node)
        if not taints:
            return None
        now = self.clock()
        soonest: float | None = None
        for pod in self.pods.by_index(BY_NODE, objects.name(node)):
            if objects.is_deleting(pod):
                continue
            delay = eviction_delay(pod, taints, now)
            if delay is None:
                continue
            if delay <= 0:
                await self._evict_one(pod)
            else:
                soonest = delay if soonest is None else min(soonest, delay)
        return soonest

    async def _evict_one(self, pod: Object) -> None:
        meta = pod["metadata"]
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": clock.now_rfc3339(),
        }
        name = f"{meta['namespace']}/{meta['name']}"
        self.events.normal(pod, "TaintManagerEviction", f"Marking for deletion Pod {name}")
        try:
            patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [condition]}}
            await self.client.patch(POD, meta["name"], meta["namespace"], patch, type="strategic", subresource="status")
            await self.client.delete(POD, meta["name"], meta["namespace"], uid=meta["uid"])
        except (errors.NotFound, errors.Conflict):
            return
