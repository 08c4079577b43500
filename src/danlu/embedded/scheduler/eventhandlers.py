"""`EventHandlers`: what the informers tell, brought into cache, queue and gangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from danlu.client.informer import DELETED
from danlu.embedded.scheduler import filters
from danlu.embedded.scheduler.binder import DEFAULT_NAME
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.gangscheduling import GangScheduling
from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.schedulingqueue import SchedulingQueue
from danlu.meta.kind import Object

FINISHED = ("Succeeded", "Failed")


class EventHandlers:
    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        work: GangScheduling,
        names: Iterable[str] = (DEFAULT_NAME,),
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`names`: pods with another schedulerName only take room; `wake`: there may be something to decide."""
        self.names = frozenset(names)
        self._cache = cache
        self._queue = queue
        self._work = work
        self._wake = wake

    def happened(self, event: str) -> None:
        self._work.something_happened()
        if self._queue.wake(event):
            self._wake()

    def node_changed(self, event: str, node: Object, old: Object | None) -> None:
        if event == DELETED:
            self._cache.remove_node(node["metadata"]["name"])
        elif old is None or _placement_facts(old) != _placement_facts(node):
            self._cache.set_node(node)
        else:
            return  # a heartbeat
        self.happened(filters.NODE_CHANGED)

    def namespace_changed(self, event: str, namespace: Object, _old: Object | None) -> None:
        labels = None if event == DELETED else namespace["metadata"].get("labels") or {}
        self._cache.set_namespace(namespace["metadata"]["name"], labels)

    def volume_changed(self, _event: str, _obj: Object, _old: Object | None) -> None:
        self._cache.generation += 1  # where a pod can go may be another answer now
        self.happened(filters.VOLUME_CHANGED)

    def pod_changed(self, event: str, pod: Object, old: Object | None) -> None:
        uid = pod["metadata"].get("uid") or ""
        if event == DELETED:
            self._work.leaves(uid)
            self.pod_gone(uid)
        elif (pod.get("status") or {}).get("phase") in FINISHED:
            self._member_seen(pod)
            self.pod_gone(uid)
        elif (pod.get("spec") or {}).get("nodeName"):
            self._pod_has_node(pod, old)
        else:
            self._pod_waits(pod, old)

    def pod_gone(self, uid: str) -> None:
        self._queue.remove(uid)
        self._cache.clear_nomination(uid)
        self._work.room_made_by(uid)
        if self._cache.remove_pod(uid):
            self.happened(filters.POD_GONE)

    def _pod_has_node(self, pod: Object, old: Object | None) -> None:
        uid = pod["metadata"]["uid"]
        known = self._cache.pods.get(uid)
        if known is not None and old is not None and not self._cache.is_assumed(uid) and _same_pod(pod, old):
            known[0].pod = pod
            return
        self._queue.remove(uid)
        info = self._work.info(pod)
        if self._cache.set_pod(info, pod["spec"]["nodeName"]):
            self.happened(filters.POD_PLACED)
        self._member_seen(pod, info)

    def _member_seen(self, pod: Object, info: PodInfo | None = None) -> None:
        """A pod with a node: it counts in its gang until it is being deleted."""
        if self._work.policy(pod) is None:
            return
        if pod["metadata"].get("deletionTimestamp") or not (pod.get("spec") or {}).get("nodeName"):
            self._work.leaves(pod["metadata"]["uid"])
        else:
            self._work.joins(info or self._work.info(pod))

    def _pod_waits(self, pod: Object, old: Object | None) -> None:
        meta, spec = pod["metadata"], pod.get("spec") or {}
        uid = meta["uid"]
        if (spec.get("schedulerName") or DEFAULT_NAME) not in self.names:
            return
        if meta.get("deletionTimestamp") or spec.get("schedulingGates"):
            self._queue.remove(uid)
            self._cache.clear_nomination(uid)
            return
        if self._cache.is_assumed(uid):
            return  # being bound: an older picture of it
        info = self._work.info(pod)
        if uid in self._queue and old is not None and _same_pod(pod, old):
            self._queue.refresh(info)
            return
        if info.nominated:
            self._cache.nominate(info, info.nominated)
        self._queue.add(info, self._work.priority(info))
        self._wake()

    def gang_changed(self, key: str) -> None:
        for entry in self._queue.gang(key):
            nominated = entry.pod.nominated
            entry.pod = self._work.info(entry.pod.pod)
            entry.pod.nominated = nominated
            entry.gang_priority = self._work.priority(entry.pod)
        if self._queue.wake_gang(key):
            self._wake()

    def lane_changed(self, lane: str) -> None:
        self._work.refresh_lane(lane)
        if self._queue.wake_lane(lane):
            self._wake()


def _placement_facts(node: Object) -> tuple[Any, ...]:
    status = node.get("status") or {}
    return node["metadata"].get("labels"), node.get("spec"), status.get("allocatable"), status.get("capacity")


def _same_pod(pod: Object, old: Object) -> bool:
    """No difference that the scheduler looks at; status changes come far more often than any of these."""
    new_meta, old_meta = pod["metadata"], old["metadata"]
    return (
        new_meta.get("labels") == old_meta.get("labels")
        and new_meta.get("deletionTimestamp") == old_meta.get("deletionTimestamp")
        and new_meta.get("annotations") == old_meta.get("annotations")
        and pod.get("spec") == old.get("spec")
    )
