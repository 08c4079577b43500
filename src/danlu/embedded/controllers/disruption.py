"""policy/v1 PodDisruptionBudget: counts the healthy pods of each, and how many of them may be evicted.

`pods/NAME/eviction` takes from that number and writes down whom it evicted (`status.disruptedPods`); such a pod counts
as gone, even before it is, for two minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from danlu import errors
from danlu.client.client import Client
from danlu.embedded import disruptions
from danlu.embedded.controllers._shared import discovery
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.podcontrol import share
from danlu.meta import objects, owners
from danlu.meta.clock import later, parse_time, rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.labels import from_label_selector
from danlu.meta.wellknown import (
    DEPLOYMENT,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status

GONE_WITHIN_S = 120.0  # an evicted pod that is still there has not been evicted after all
_SCALED = {kind.kind: kind for kind in (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)}
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class Uncountable(Exception):
    """How many pods there should be cannot be found out; the text is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Expected:
    pods: int
    healthy: int  # at least so many
    unmanaged: bool = False  # some belong to nobody who would say how many there should be


def make(manager: Manager) -> Controller:
    budgets = DisruptionController(manager)
    controller = Controller("disruption", budgets.reconcile)
    controller.watches(budgets.budgets)

    def selecting(pod: Object) -> list[Request]:
        found = budgets.budgets.list(objects.namespace(pod))
        return [Request(objects.namespace(one), objects.name(one)) for one in found if _selects(one, pod)]

    controller.watches(budgets.pods, selecting)
    return controller


def _selects(budget: Object, pod: Object) -> bool:
    return from_label_selector((budget.get("spec") or {}).get("selector")).matches(objects.labels_of(pod))


class DisruptionController:
    def __init__(self, manager: Manager) -> None:
        self.client, self.clock = manager.client, manager.clock
        self.recorder = manager.recorder("controllermanager")
        self.budgets = manager.informer(POD_DISRUPTION_BUDGET)
        self.pods = manager.informer(POD)
        self._owners = {kind: manager.informer(kind) for kind in (DEPLOYMENT, *_SCALED.values())}

    async def reconcile(self, request: Request) -> Outcome | None:
        budget = self.budgets.get(request.namespace, request.name)
        if budget is None or objects.is_deleting(budget):
            return None
        pods = [pod for pod in self.pods.list(request.namespace) if _selects(budget, pod)]
        if not pods:
            self.recorder.normal(budget, "NoPods", "No matching pods found")
        now = self.clock()
        try:
            expected = await self._expected(budget, pods)
        except Uncountable as why:
            text = f"Failed to calculate the number of expected pods: {why}"
            self.recorder.warning(budget, "CalculateExpectedPodCountFailed", text)
            await write_status(self.client, POD_DISRUPTION_BUDGET, budget, _unknown(budget, str(why), now))
            raise
        if expected.unmanaged:
            selector = from_label_selector(budget["spec"].get("selector"))
            self.recorder.warning(budget, "UnmanagedPods", _UNMANAGED.format(selector))
        disrupted, wait = self._disrupted(budget, pods, now)
        await write_status(self.client, POD_DISRUPTION_BUDGET, budget, _status(budget, pods, expected, disrupted, now))
        return Outcome(requeue_after=wait)

    async def _expected(self, budget: Object, pods: list[Object]) -> Expected:
        least, most = budget["spec"].get("minAvailable"), budget["spec"].get("maxUnavailable")
        if most is None and not isinstance(least, str):
            return Expected(len(pods) if least is not None else 0, least or 0)
        total, unmanaged = await self._scale(pods)
        if most is None:
            return Expected(total, share(least, total, round_up=True), unmanaged)
        return Expected(total, max(0, total - share(most, total, round_up=True)), unmanaged)

    async def _scale(self, pods: list[Object]) -> tuple[int, bool]:
        """How many pods their controllers want in all, and whether some have none."""
        found = {owner["uid"]: (owner, objects.namespace(pod)) for pod in pods if (owner := owners.controller_of(pod))}
        wanted: dict[str, int] = {}  # by whom it is said: the deployment, of several replica sets
        for owner, namespace in found.values():
            kind = _SCALED.get(owner["kind"])
            if kind is None or kind.api_version != owner["apiVersion"]:
                wanted[owner["uid"]] = await _custom_scale(self.client, owner, namespace)
            elif (scaled := self._scaled(kind, owner["name"], namespace)) is not None:
                wanted[objects.uid(scaled)] = int(objects.get(scaled, "spec.replicas", 1))
        return sum(wanted.values()), any(owners.controller_of(pod) is None for pod in pods)

    def _scaled(self, kind: Kind, name: str, namespace: str) -> Object | None:
        """Who says how many there are; None: it is being deleted, and so are its pods."""
        found = self._owners[kind].get(namespace, name)
        above = owners.controller_of(found) if found is not None and kind is REPLICA_SET else None
        if above is not None and above["kind"] == DEPLOYMENT.kind:
            return self._owners[DEPLOYMENT].get(namespace, above["name"])
        return found

    def _disrupted(self, budget: Object, pods: list[Object], now: datetime) -> tuple[dict[str, str], float | None]:
        """Who was evicted and is still there, and when to look again."""
        listed: dict[str, str] = objects.get(budget, "status.disruptedPods", {})
        found, waits = {}, []
        for pod in pods:
            name = objects.name(pod)
            if name not in listed or objects.is_deleting(pod):
                continue
            left = (later(parse_time(listed[name]), GONE_WITHIN_S) - now).total_seconds()
            if left <= 0:
                where = f"{objects.namespace(budget)}/{objects.name(budget)}"
                text = f"Pod was expected by PDB {where} to be deleted but it wasn't"
                self.recorder.warning(pod, "NotDeleted", text)
                continue
            found[name] = listed[name]
            waits.append(left)
        return found, min(waits, default=None)


async def _custom_scale(client: Client, owner: Object, namespace: str) -> int:
    group = owner["apiVersion"].rpartition("/")[0]
    for one in await discovery.resources(client):
        if one.kind.group == group and one.kind.kind == owner["kind"]:
            if not one.scalable:
                raise Uncountable(f"{one.kind.resource} does not implement the scale subresource")
            try:
                scale = await client.get_subresource(one.kind, owner["name"], namespace, "scale")
            except errors.NotFound:
                return 0
            return int(objects.get(scale, "spec.replicas", 0))
    raise Uncountable(f"found no controller of kind {owner['kind']}")


def _status(budget: Object, pods: list[Object], expected: Expected, disrupted: dict[str, str], now: datetime) -> Object:
    there = [pod for pod in pods if not objects.is_deleting(pod) and objects.name(pod) not in disrupted]
    healthy = sum(map(states.is_ready, there))
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    status: Object = objects.copy(budget.get("status") or {})
    status.pop("disruptedPods", None)
    status |= {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "expectedPods": expected.pods,
        "observedGeneration": budget["metadata"].get("generation", 0),
        **({"disruptedPods": disrupted} if disrupted else {}),
    }
    disruptions.say(budget, status, disruptions.ENOUGH if allowed else disruptions.TOO_FEW, rfc3339(now))
    return status


def _unknown(budget: Object, why: str, now: datetime) -> Object:
    """Nobody may be evicted while nobody knows how many there should be."""
    status: Object = objects.copy(budget.get("status") or {})
    status["disruptionsAllowed"] = 0
    disruptions.say(budget, status, disruptions.UNKNOWN, rfc3339(now), why)
    return status
