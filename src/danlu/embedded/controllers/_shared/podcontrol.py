"""What every controller of pods does alike: find its pods, adopt and release, create, delete, and rank for deletion.

Cost is that of the owner's own pods: they are found by an index on the controlling owner's uid, and the few pods that
nobody controls by an index of their own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from danlu import errors
from danlu.client.client import Client
from danlu.client.indexer import controller_uid
from danlu.client.informer import DELETED, Informer
from danlu.meta import conditions, names, objects, owners
from danlu.meta.clock import parse_time
from danlu.meta.integers import decimal
from danlu.meta.kind import Kind, Object
from danlu.meta.labels import Selector, from_label_selector, from_map
from danlu.meta.wellknown import POD, REPLICATION_CONTROLLER
from danlu.runtime import Controller, EventRecorder, Manager, Request

BY_CONTROLLER = "controller"
ORPHANS = "orphans"
LARGEST_GENERATED_PREFIX = 58  # 63 less the five random characters


def orphan_namespace(obj: Object) -> list[Hashable]:
    """Index function: the namespace of an object that nobody controls."""
    return [] if controller_uid(obj) else [obj["metadata"].get("namespace") or ""]


def index_by_owner(informer: Informer) -> Informer:
    informer.add_index(BY_CONTROLLER, controller_uid)
    informer.add_index(ORPHANS, orphan_namespace)
    return informer


# -- states of a pod


def phase(pod: Object) -> str:
    return (pod.get("status") or {}).get("phase") or "Pending"


def is_finished(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    return not is_finished(pod) and not objects.is_deleting(pod)


def is_terminating(pod: Object) -> bool:
    return not is_finished(pod) and objects.is_deleting(pod)


def is_ready(pod: Object) -> bool:
    return conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready")


def ready_since(pod: Object) -> datetime | None:
    ready = conditions.get((pod.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready.get("status") != "True" or not ready.get("lastTransitionTime"):
        return None
    return parse_time(ready["lastTransitionTime"])


def is_available(pod: Object, min_ready_s: int, now: datetime) -> bool:
    """Ready, and for long enough."""
    if not is_ready(pod):
        return False
    since = ready_since(pod)
    return min_ready_s == 0 or (since is not None and (now - since).total_seconds() >= min_ready_s)


def next_availability(pods: Iterable[Object], min_ready_s: int, now: datetime) -> float | None:
    """Seconds until the next ready pod has been so for long enough."""
    waits = []
    if min_ready_s > 0:
        for pod in pods:
            since = ready_since(pod)
            if since is not None:
                waits.append(min_ready_s - (now - since).total_seconds())
    return min((wait for wait in waits if wait > 0), default=None)


# -- which to delete first

_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def _restarts(pod: Object) -> tuple[int, int]:
    status = pod.get("status") or {}
    sidecars = {c["name"] for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"}
    regular = max((c.get("restartCount", 0) for c in status.get("containerStatuses") or ()), default=0)
    sidecar = max(
        (c.get("restartCount", 0) for c in status.get("initContainerStatuses") or () if c["name"] in sidecars),
        default=0,
    )
    return regular, sidecar


def deletion_order(pods: Iterable[Object]) -> list[Object]:
    """The pod that is missed least comes first: unassigned, pending, not ready, ready since yesterday …"""
    return sorted(pods, key=_deletion_key)


def _deletion_key(pod: Object) -> tuple[Any, ...]:
    since = ready_since(pod)
    regular, sidecar = _restarts(pod)
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASE_RANK.get(phase(pod), 0),
        is_ready(pod),
        -since.timestamp() if since else -math.inf,
        -regular,
        -sidecar,
        -_created(pod),
    )


def ranked_deletion_order(pods: Sequence[Object], colocated: dict[str, int], now: datetime) -> list[Object]:
    """As `deletion_order`, with the owner's wish (pod-deletion-cost) and crowding on a node taken into account.

    `colocated`: how many ready pods of the same owner are on each node. Ages are compared by their order of magnitude,
    so that of pods of like age not always the newest goes.
    """

    def key(pod: Object) -> tuple[Any, ...]:
        since = ready_since(pod)
        regular, sidecar = _restarts(pod)
        return (
            bool(pod["spec"].get("nodeName")),
            _PHASE_RANK.get(phase(pod), 0),
            is_ready(pod),
            _deletion_cost(pod),
            -colocated.get(pod["spec"].get("nodeName") or "", 0),
            _magnitude(now.timestamp() - since.timestamp()) if since else -2,
            -regular,
            -sidecar,
            _magnitude(now.timestamp() - _created(pod)),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=key)


def _magnitude(seconds: float) -> int:
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def _created(pod: Object) -> float:
    return parse_time(pod["metadata"]["creationTimestamp"]).timestamp()


def _deletion_cost(pod: Object) -> int:
    try:
        return decimal(objects.annotations_of(pod).get("controller.kubernetes.io/pod-deletion-cost", "0"))
    except ValueError:
        return 0


# -- from template to pod


def from_template(template: Object, owner: Object, kind: Kind) -> Object:
    """A new pod of the template's own making, controlled by `owner`; its name is left to the server."""
    inherited = template.get("metadata") or {}
    meta: Object = {
        "generateName": name_prefix(owner["metadata"]["name"]),
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(inherited.get("labels") or {}),
        "ownerReferences": [owners.reference(owner, kind)],
    }
    if inherited.get("annotations"):
        meta["annotations"] = dict(inherited["annotations"])
    if inherited.get("finalizers"):
        meta["finalizers"] = list(inherited["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": objects.copy(template.get("spec") or {})}


def name_prefix(owner: str) -> str:
    prefix = f"{owner}-"
    return owner if names.as_dns_subdomain(prefix, True) else prefix


def is_namespace_ending(error: errors.ApiError) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ())


class PodControl:
    """The pods of one kind of owner."""

    def __init__(self, manager: Manager, kind: Kind, component: str) -> None:
        self.client = manager.client
        self.kind = kind
        self.recorder: EventRecorder = manager.recorder(component)
        self.informer = index_by_owner(manager.informer(POD))
        self._claims = ChildClaims(self.client, self.informer, kind)

    async def claim(self, owner: Object, selector: Selector, finalizers: Sequence[str] = ()) -> list[Object]:
        return await claim(self._claims, owner, selector, finalizers)

    async def create(self, owner: Object, pod: Object) -> Object:
        """Creates, and says so; a failure is said too, unless the namespace is going away anyway."""
        try:
            made = await self.client.create(POD, pod, owner["metadata"]["namespace"])
        except errors.ApiError as error:
            if not is_namespace_ending(error):
                self.recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            raise
        self.recorder.normal(owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made

    async def delete(self, owner: Object, pod: Object) -> None:
        """Deletes this very pod; one that is gone already is fine."""
        meta = pod["metadata"]
        try:
            await self.client.delete(POD, meta["name"], meta["namespace"], uid=meta["uid"])
        except (errors.NotFound, errors.Conflict):
            return
        except errors.ApiError as error:
            self.recorder.warning(owner, "FailedDelete", f"Error deleting: {error}")
            raise
        self.recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {meta['name']}")

    async def delete_all(self, owner: Object, pods: Iterable[Object]) -> None:
        await at_once(self.delete(owner, pod) for pod in pods)

    def wakes(self, controller: Controller, owning: Informer, delay_s: float = 0.0) -> None:
        wake_owners(controller, self.informer, owning, delay_s)


def wake_owners(controller: Controller, children: Informer, owning: Informer, delay_s: float = 0.0) -> None:
    """A child's change wakes the owner that controls it; a child that is nobody's wakes all who could adopt it."""
    kind = owning.kind

    def wake(namespace: str, name: str) -> None:
        controller.queue.add_after(Request(namespace, name), delay_s)

    def is_ours(reference: Object) -> bool:
        return bool(reference["kind"] == kind.kind and reference["apiVersion"].rpartition("/")[0] == kind.group)

    def changed(event: str, child: Object, old: Object | None) -> None:
        namespace = child["metadata"]["namespace"]
        now, before = owners.controller_of(child), owners.controller_of(old) if old is not None else None
        for reference in (now, before if before != now else None):
            if reference is not None and is_ours(reference):
                wake(namespace, reference["name"])
        if now is not None or event == DELETED or objects.is_deleting(child):
            return
        if old is not None and before is None and objects.labels_of(old) == objects.labels_of(child):
            return
        for owner in owning.list(namespace):
            if selector_of(owner).matches(objects.labels_of(child)):
                wake(namespace, owner["metadata"]["name"])

    children.add_handler(changed)


def selector_of(owner: Object) -> Selector:
    if owner.get("kind") == REPLICATION_CONTROLLER.kind:  # older than label selectors: just labels
        return from_map(owner["spec"].get("selector") or {})
    return from_label_selector(owner["spec"].get("selector"))


@dataclass(frozen=True, slots=True)
class ChildClaims:
    """How owners of one kind come by their children. `children` must be indexed (`index_by_owner`)."""

    client: Client
    children: Informer
    owner_kind: Kind


async def claim(
    claims: ChildClaims,
    owner: Object,
    selector: Selector,
    finalizers: Sequence[str] = (),
    can_adopt: Callable[[Object], bool] = lambda _: True,
) -> list[Object]:
    """What `owner` controls, after adopting what matches and is nobody's and releasing what matches no longer.

    Adopted children get `finalizers` too.
    """
    client, children, owner_kind = claims.client, claims.children, claims.owner_kind
    claimed = []
    deleting = objects.is_deleting(owner)
    for child in children.by_index(BY_CONTROLLER, owner["metadata"]["uid"]):
        if selector.matches(objects.labels_of(child)):
            claimed.append(child)
        elif not deleting:
            await release(client, children.kind, owner, child, finalizers)
    if deleting:
        return claimed
    strays = [
        child
        for child in children.by_index(ORPHANS, owner["metadata"]["namespace"])
        if not objects.is_deleting(child) and selector.matches(objects.labels_of(child)) and can_adopt(child)
    ]
    if strays:
        await still_the_same(client, owner_kind, owner)
    for child in strays:
        adopted = await adopt(client, children.kind, owner_kind, owner, child, finalizers)
        if adopted is not None:
            claimed.append(adopted)
    return claimed


async def still_the_same(client: Client, kind: Kind, owner: Object) -> None:
    """Adoption is decided on a cache; before the first one the owner is asked for in person."""
    meta = owner["metadata"]
    live = await client.get(kind, meta["name"], meta["namespace"])
    if live["metadata"]["uid"] != meta["uid"] or objects.is_deleting(live):
        raise errors.Conflict(f"{kind.kind} {meta['namespace']}/{meta['name']} is gone: nothing is adopted")


async def adopt(
    client: Client, child_kind: Kind, owner_kind: Kind, owner: Object, child: Object, finalizers: Sequence[str] = ()
) -> Object | None:
    meta = child["metadata"]
    patch: Object = {"uid": meta["uid"], "ownerReferences": [owners.reference(owner, owner_kind)]}
    if finalizers:
        patch["finalizers"] = list(finalizers)
    try:
        return await client.patch(child_kind, meta["name"], meta["namespace"], {"metadata": patch}, type="strategic")
    except errors.NotFound:
        return None


async def release(
    client: Client, child_kind: Kind, owner: Object, child: Object, finalizers: Sequence[str] = ()
) -> None:
    meta = child["metadata"]
    patch: Object = {
        "uid": meta["uid"],
        "ownerReferences": [{"$patch": "delete", "uid": owner["metadata"]["uid"]}],
    }
    if finalizers:
        patch["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    try:
        await client.patch(child_kind, meta["name"], meta["namespace"], {"metadata": patch}, type="strategic")
    except (errors.NotFound, errors.Invalid):
        return  # gone, or another pod of that name


async def at_once(work: Iterable[Awaitable[Any]]) -> None:
    """All of it, side by side; then the first failure is raised, if any."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def slow_start(count: int, one: Callable[[int], Awaitable[Any]]) -> tuple[int, BaseException | None]:
    """Calls `one(0)` … `one(count - 1)` in batches of 1, 2, 4 …, and stops after a batch with a failure: what is
    refused once (a quota, say) is not asked for a hundred times. Returns how many succeeded and the first failure."""
    done, batch, succeeded = 0, 1, 0
    while done < count:
        size = min(batch, count - done)
        results = await asyncio.gather(*(one(n) for n in range(done, done + size)), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        succeeded += size - len(failures)
        if failures:
            return succeeded, failures[0]
        done += size
        batch *= 2
    return succeeded, None


MOST_PODS_PER_SYNC = 500  # as many as Kubernetes creates at one look
MOST_UNPLACED = 500  # pods of one owner that wait for a node at the same time


def room_for(pods: Iterable[Object]) -> int:
    """How many pods an owner with these active ones may have created now. What the scheduler cannot place helps nobody:
    more are made when some have got a node, so an owner that asks for a billion has a few hundred."""
    unplaced = sum(not pod["spec"].get("nodeName") for pod in pods)
    return max(0, min(MOST_PODS_PER_SYNC, MOST_UNPLACED - unplaced))


def nonzero(**counts: int) -> Object:
    """As Kubernetes writes most counts: those that are 0 are left out."""
    return {name: count for name, count in counts.items() if count}


def share(value: int | str | None, total: int, *, round_up: bool) -> int:
    """An int-or-percent field in numbers."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = decimal(value.rstrip("%"))
    return -(-total * percent // 100) if round_up else total * percent // 100
