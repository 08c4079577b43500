"""The autoscaler itself: reads scale and metrics, writes the scale, and says in its status what it saw and did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.controllers._shared import discovery
from danlu.embedded.controllers.autoscaling import pace, podusage
from danlu.embedded.controllers.autoscaling.podusage import Tolerance, Unmeasured, UsageTarget, Wish
from danlu.meta import conditions, objects, quantity
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.labels import Selector, SelectorError, parse_selector
from danlu.meta.quantity import Quantity
from danlu.meta.wellknown import (
    AUTOSCALER,
    DEPLOYMENT,
    POD,
    POD_METRICS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status

EVERY_S = 15.0
_SCALABLE = {(kind.group, kind.kind): kind for kind in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)}
_GOT_SCALE = "the HPA controller was able to get the target's current scale"
_NO_SCALE = "the HPA controller was unable to get the target's current scale: {}"
_DISABLED = "scaling is disabled since the replica count of the target is zero"
_NOT_SERVED = "no {0} metrics API ({0}.metrics.k8s.io) registered"
_REASONS = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}


class Unscalable(Exception):
    """The number of replicas can be neither read nor worked out; conditions and events have said so."""


def make(manager: Manager) -> Controller:
    autoscalers = AutoscalerController(manager)
    controller = Controller("horizontalpodautoscaler", autoscalers.reconcile)

    def only_status(_event: str, obj: Object, old: Object | None) -> bool:
        """Its own writes ask for nothing: it looks again when its time has come."""
        return old is not None and obj["spec"] == old["spec"] and not objects.is_deleting(obj)

    controller.watches(autoscalers.autoscalers, ignores=only_status)
    return controller


@dataclass(slots=True)
class Turn:
    """One look at one autoscaler."""

    autoscaler: Object
    now: datetime
    memory: pace.ScalingHistory
    conditions: list[Object] = field(default_factory=list)
    metrics: list[Object | None] = field(default_factory=list)

    @property
    def spec(self) -> Object:
        spec: Object = self.autoscaler["spec"]
        return spec

    def say(self, type: str, status: str, reason: str, message: str) -> None:
        conditions.set(self.conditions, type, status, reason, message, rfc3339(self.now))

    def tolerance(self) -> Tolerance:
        given = [objects.get(self.spec, f"behavior.{side}.tolerance") for side in ("scaleUp", "scaleDown")]
        return Tolerance(*(0.1 if one is None else float(quantity.parse(one)) for one in given))


class AutoscalerController:
    def __init__(self, manager: Manager) -> None:
        self.client, self.clock = manager.client, manager.clock
        self.recorder = manager.recorder("horizontal-pod-autoscaler")
        self.autoscalers = manager.informer(AUTOSCALER)
        self.pods = manager.informer(POD)
        self._memories: dict[Request, pace.ScalingHistory] = {}
        self._selectors: dict[Request, Selector] = {}

    async def reconcile(self, request: Request) -> Outcome | None:
        found = self.autoscalers.get(request.namespace, request.name)
        if found is None or objects.is_deleting(found):
            self._memories.pop(request, None)
            self._selectors.pop(request, None)
            return None
        memory = self._memories.setdefault(request, pace.ScalingHistory())
        held = objects.copy(objects.get(found, "status.conditions") or [])
        turn = Turn(found, self.clock(), memory, held)
        status = await self._look(request, turn)
        await write_status(self.client, AUTOSCALER, found, status)
        return Outcome(requeue_after=EVERY_S)

    async def _look(self, request: Request, turn: Turn) -> Object:
        before: Object = turn.autoscaler.get("status") or {}
        try:
            kind, scale = await self._scale(turn)
        except Unscalable:
            return {**before, "conditions": turn.conditions}
        current: int = objects.get(scale, "spec.replicas", 0)
        turn.memory.begin(current, turn.now)
        try:
            wanted, why = await self._wanted(request, turn, scale)
            if wanted != current:
                await self._rescale(turn, kind, scale, wanted, why)
        except Unscalable:
            return _status(turn, before, current, before.get("desiredReplicas", 0), scaled=False)
        return _status(turn, before, current, wanted, scaled=wanted != current)

    def _failed(self, turn: Turn, reason: str, why: object) -> None:
        self.recorder.warning(turn.autoscaler, reason, str(why))

    # -- what it scales

    async def _scale(self, turn: Turn) -> tuple[Kind, Object]:
        reference = turn.spec["scaleTargetRef"]
        try:
            kind = await scalable(self.client, reference)
            namespace = objects.namespace(turn.autoscaler)
            scale = await self.client.get_subresource(kind, reference["name"], namespace, "scale")
        except errors.ApiError as why:
            self._failed(turn, "FailedGetScale", why.message)
            turn.say("AbleToScale", "False", "FailedGetScale", _NO_SCALE.format(why.message))
            raise Unscalable from why
        turn.say("AbleToScale", "True", "SucceededGetScale", _GOT_SCALE)
        return kind, scale

    async def _rescale(self, turn: Turn, kind: Kind, scale: Object, wanted: int, why: str) -> None:
        current: int = objects.get(scale, "spec.replicas", 0)
        try:
            await self.client.update(kind, {**scale, "spec": {"replicas": wanted}}, subresource="scale")
        except errors.ApiError as error:
            text = f"New size: {wanted}; reason: {why}; error: {error.message}"
            self._failed(turn, "FailedRescale", text)
            text = f"the HPA controller was unable to update the target scale: {error.message}"
            turn.say("AbleToScale", "False", "FailedUpdateScale", text)
            raise Unscalable from error
        text = f"the HPA controller was able to update the target scale to {wanted}"
        turn.say("AbleToScale", "True", "SucceededRescale", text)
        self.recorder.normal(turn.autoscaler, "SuccessfulRescale", f"New size: {wanted}; reason: {why}")
        if turn.spec.get("behavior") is not None:
            turn.memory.scaled(current, wanted, turn.now)

    # -- how many there should be

    async def _wanted(self, request: Request, turn: Turn, scale: Object) -> tuple[int, str]:
        current: int = objects.get(scale, "spec.replicas", 0)
        least, most = turn.spec.get("minReplicas", 1), turn.spec["maxReplicas"]
        if current == 0:
            turn.say("ScalingActive", "False", "ScalingDisabled", _DISABLED)
            return 0, ""
        if current > most:
            return most, "Current number of replicas above Spec.MaxReplicas"
        if current < least:
            return least, "Current number of replicas below Spec.MinReplicas"
        selector = self._selector(request, turn, objects.get(scale, "status.selector") or "")
        wished, metric = await self._wished(turn, selector, current)
        why = f"{metric} above target" if wished > current else "All metrics below target" if wished < current else ""
        found = pace.paced(
            turn.spec.get("behavior"), wished, pace.ReplicaRange(current, least, most), turn.memory, turn.now
        )
        turn.say("AbleToScale", "True", *found.able)
        turn.say("ScalingLimited", *found.limited)
        return found.replicas, why

    def _selector(self, request: Request, turn: Turn, text: str) -> Selector:
        if not text:
            self._failed(turn, "SelectorRequired", "selector is required")
            turn.say("ScalingActive", "False", "InvalidSelector", "the HPA target's scale is missing a selector")
            raise Unscalable
        try:
            selector = parse_selector(text)
        except SelectorError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._refuse(turn, "InvalidSelector", why)
        self._selectors[request] = selector
        pods = [pod for pod in self.pods.list(request.namespace) if selector.matches(objects.labels_of(pod))]
        labels = [objects.labels_of(pod) for pod in pods]
        rivals = [
            other
            for other, theirs in self._selectors.items()
            if other.namespace == request.namespace and any(map(theirs.matches, labels))
        ]
        if len(rivals) > 1:
            shown = " ".join(sorted(f"{{{other.name} {other.namespace}}}" for other in rivals))
            self._refuse(
                turn, "AmbiguousSelector", f"pods by selector {text} are controlled by multiple HPAs: [{shown}]"
            )
        return selector

    def _refuse(self, turn: Turn, reason: str, why: str) -> Any:
        self._failed(turn, reason, why)
        turn.say("ScalingActive", "False", reason, why)
        raise Unscalable

    async def _wished(self, turn: Turn, selector: Selector, current: int) -> tuple[int, str]:
        """The most that a metric asks for. One that says nothing keeps others from taking pods away."""
        wishes: list[tuple[int, str]] = []
        silent: list[tuple[str, Unmeasured]] = []
        for metric in turn.spec["metrics"]:
            try:
                found, shown = await self._ask(turn, metric, selector, current)
                wishes.append((found, shown))
            except Unmeasured as why:
                reason = _REASONS[metric["type"]]
                self._failed(turn, reason, why)
                silent.append((reason, why))
                turn.metrics.append(None)
        most, name = max(wishes, key=lambda wish: wish[0], default=(0, ""))
        if silent and (not wishes or most < current):
            reason, first = silent[0]
            turn.say("ScalingActive", "False", reason, f"the HPA was unable to compute the replica count: {first}")
            text = f"invalid metrics ({len(silent)} invalid out of {len(turn.spec['metrics'])}), first error is: "
            self._failed(turn, "FailedComputeMetricsReplicas", f"{text}{first}")
            raise Unscalable
        text = f"the HPA was able to successfully calculate a replica count from {name}"
        turn.say("ScalingActive", "True", "ValidMetricFound", text)
        return most, name

    async def _ask(self, turn: Turn, metric: Object, selector: Selector, current: int) -> tuple[int, str]:
        sort = metric["type"]
        if sort not in ("Resource", "ContainerResource"):
            api = "external" if sort == "External" else "custom"
            name = objects.get(metric, f"{sort.lower()}.metric.name")
            why = f"unable to fetch metrics from {api} metrics API: {_NOT_SERVED.format(api)}"
            raise Unmeasured(f"unable to get metric {name}: {why}")
        source: Object = metric["resource"] if sort == "Resource" else metric["containerResource"]
        resource, container, target = source["name"], source.get("container") or "", source["target"]
        wish = await self._wish(turn, source, selector, current)
        now: Object = {"averageValue": str(_amount(resource, wish.milli))}
        if wish.percent is not None:
            now["averageUtilization"] = wish.percent
        kept = {"name": resource, **({"container": container} if container else {}), "current": now}
        turn.metrics.append({"type": sort, ("containerResource" if container else "resource"): kept})
        if target.get("averageValue") is not None:
            return wish.replicas, f"{resource} resource"
        of_container = "container " if container else ""
        return wish.replicas, f"{resource} {of_container}resource utilization (percentage of request)"

    async def _wish(self, turn: Turn, source: Object, selector: Selector, current: int) -> Wish:
        resource, container, target = source["name"], source.get("container") or "", source["target"]
        namespace = objects.namespace(turn.autoscaler)
        average = target.get("averageValue")
        what = "utilization" if average is None else "usage"
        try:
            known = await self._samples(resource, container, namespace, selector)
            pods = [pod for pod in self.pods.list(namespace) if selector.matches(objects.labels_of(pod))]
            asked = podusage.requests(pods, resource, container) if average is None else {}
            goal = (
                UsageTarget(target.get("averageUtilization"))
                if average is None
                else UsageTarget(None, podusage.milli_of(average))
            )
            measured = podusage.Measured(pods, known, resource, asked)
            return podusage.wish(measured, goal, current, turn.tolerance(), turn.now)
        except Unmeasured as why:
            raise Unmeasured(f"failed to get {resource} {what}: {why}") from why

    async def _samples(self, resource: str, container: str, namespace: str, selector: Selector) -> podusage.Samples:
        why = f"unable to get metrics for resource {resource}: "
        try:
            found = await self.client.list(POD_METRICS, namespace, labels=str(selector))
        except errors.ApiError as error:
            text = f"{why}unable to fetch metrics from resource metrics API: {error.message}"
            raise Unmeasured(text) from error
        if not found.items:
            raise Unmeasured(f"{why}no metrics returned from resource metrics API")
        return podusage.samples(found.items, resource, container)


def _amount(resource: str, milli: int) -> Quantity:
    return Quantity(milli * 10**6, "BinarySI" if resource == "memory" else "DecimalSI")


def _status(turn: Turn, before: Object, current: int, wanted: int, *, scaled: bool) -> Object:
    last = rfc3339(turn.now) if scaled else before.get("lastScaleTime")
    return {
        **({"lastScaleTime": last} if last else {}),
        **({"currentReplicas": current} if current else {}),
        "desiredReplicas": wanted,
        "currentMetrics": [one or {"type": ""} for one in turn.metrics] or None,
        "conditions": turn.conditions,
    }


async def scalable(client: Client, reference: Object) -> Kind:
    """The kind that a reference names, whatever the version. Raises NotFound."""
    group, name = (reference.get("apiVersion") or "").rpartition("/")[0], reference["kind"]
    if (group, name) in _SCALABLE:
        return _SCALABLE[group, name]
    for one in await discovery.resources(client):
        if (one.kind.group, one.kind.kind) == (group, name):
            return one.kind
    raise errors.NotFound(f'no matches for kind "{name}" in group "{group}"')
