"""apps/v1 ReplicaSet: as many pods of one template as asked for, no more and no fewer.

ReplicationController is the same thing from the time before label selectors: one controller serves both kinds.
"""

from __future__ import annotations

from collections import Counter

from danlu import errors
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.podcontrol import PodControl
from danlu.meta import conditions, objects, owners
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.labels import from_map
from danlu.meta.wellknown import REPLICA_SET, REPLICATION_CONTROLLER
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status


def make(manager: Manager) -> Controller:
    return _make(manager, REPLICA_SET, "replicaset")


def make_old(manager: Manager) -> Controller:
    return _make(manager, REPLICATION_CONTROLLER, "replication")


def _make(manager: Manager, kind: Kind, name: str) -> Controller:
    sets = ReplicaSetController(manager, kind, f"{name}-controller")
    controller = Controller(name, sets.reconcile)
    controller.watches(sets.replica_sets)
    sets.control.wakes(controller, sets.replica_sets)
    return controller


class ReplicaSetController:
    def __init__(self, manager: Manager, kind: Kind, component: str) -> None:
        self.kind = kind
        self.client = manager.client
        self.clock = manager.clock
        self.control = PodControl(manager, kind, component)
        self.replica_sets = states.index_by_owner(manager.informer(kind))

    async def reconcile(self, request: Request) -> Outcome | None:
        replica_set = self.replica_sets.get(request.namespace, request.name)
        if replica_set is None:
            return None
        selector = states.selector_of(replica_set)
        pods = await self.control.claim(replica_set, selector)
        failure: BaseException | None = None
        if not objects.is_deleting(replica_set):
            failure = await self._manage(replica_set, [pod for pod in pods if states.is_active(pod)])
            # What was just written is already in the cache.
            owned = self.control.informer.by_index(states.BY_CONTROLLER, replica_set["metadata"]["uid"])
            pods = [pod for pod in owned if selector.matches(objects.labels_of(pod))]
        status = self._status(replica_set, pods, failure)
        await write_status(self.client, self.kind, replica_set, status)
        if failure is not None and not (isinstance(failure, errors.ApiError) and states.is_namespace_ending(failure)):
            raise failure
        waits = states.next_availability(pods, replica_set["spec"].get("minReadySeconds") or 0, self.clock())
        return Outcome(requeue_after=waits)

    async def _manage(self, replica_set: Object, active: list[Object]) -> BaseException | None:
        surplus = len(active) - replica_set["spec"]["replicas"]
        if surplus < 0:
            template = replica_set["spec"]["template"]

            async def one(_: int) -> None:
                await self.control.create(replica_set, states.from_template(template, replica_set, self.kind))

            _, failure = await states.slow_start(min(-surplus, states.room_for(active)), one)
            return failure
        if surplus > 0:
            if surplus < len(active):
                active = states.ranked_deletion_order(active, self._crowds(replica_set), self.clock())
            try:
                await self.control.delete_all(replica_set, active[: min(surplus, states.MOST_PODS_PER_SYNC)])
            except errors.ApiError as error:
                return error
        return None

    def _crowds(self, replica_set: Object) -> Counter[str]:
        """Active pods on each node, of all replica sets of the same deployment."""
        owner = owners.controller_of(replica_set)
        related = self.replica_sets.by_index(states.BY_CONTROLLER, owner["uid"]) if owner else [replica_set]
        crowds: Counter[str] = Counter()
        for one in related:
            for pod in self.control.informer.by_index(states.BY_CONTROLLER, one["metadata"]["uid"]):
                if states.is_active(pod):
                    crowds[pod["spec"].get("nodeName") or ""] += 1
        return crowds

    def _status(self, replica_set: Object, pods: list[Object], failure: BaseException | None) -> Object:
        now = self.clock()
        spec, meta = replica_set["spec"], replica_set["metadata"]
        active = [pod for pod in pods if states.is_active(pod)]
        whole = from_map((spec["template"].get("metadata") or {}).get("labels") or {})
        min_ready = spec.get("minReadySeconds") or 0
        status: Object = {
            "replicas": len(active),
            **states.nonzero(
                fullyLabeledReplicas=sum(whole.matches(objects.labels_of(pod)) for pod in active),
                readyReplicas=sum(map(states.is_ready, active)),
                availableReplicas=sum(states.is_available(pod, min_ready, now) for pod in active),
                observedGeneration=meta.get("generation", 0),
            ),
        }
        if self.kind is REPLICA_SET:
            status["terminatingReplicas"] = sum(map(states.is_terminating, pods))
        held = objects.copy((replica_set.get("status") or {}).get("conditions") or [])
        if failure is None:
            conditions.remove(held, "ReplicaFailure")
        elif conditions.get(held, "ReplicaFailure") is None:
            reason = "FailedCreate" if len(active) < spec["replicas"] else "FailedDelete"
            conditions.set(held, "ReplicaFailure", "True", reason, str(failure), rfc3339(now))
        if held:
            status["conditions"] = held
        return status
