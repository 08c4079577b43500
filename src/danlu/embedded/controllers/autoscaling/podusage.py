"""How many replicas the use of some pods asks for: Kubernetes' algorithm, on numbers alone.

Pods that do not count yet, and pods of which nothing is known, are taken for what makes the change smaller: for idle
where there would be more replicas, for busy where there would be fewer. A change within the tolerance is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from danlu.embedded.controllers._shared import podcontrol as states
from danlu.meta import conditions, objects, quantity
from danlu.meta.clock import later, parse_go_duration, parse_time
from danlu.meta.kind import Object

INITIALIZATION_S = 300.0  # so long after its start a pod's cpu counts only as far as it was ready
READINESS_DELAY_S = 30.0  # a pod that was not ready later than that has been ready before
_NO_METRICS = "did not receive metrics for targeted pods (pods might be unready)"


class Unmeasured(Exception):
    """The metric says nothing; the text is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Sample:
    milli: int
    at: datetime
    window_s: float


Samples = dict[str, Sample]  # by pod


@dataclass(frozen=True, slots=True)
class UsageTarget:
    """Percent of what the pods request, or thousandths for each pod."""

    percent: int | None = None
    milli: int = 0


@dataclass(frozen=True, slots=True)
class Tolerance:
    up: float = 0.1
    down: float = 0.1

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Wish:
    replicas: int
    milli: int  # used by a pod on average
    percent: int | None  # of its request


@dataclass(slots=True)
class Groups:
    ready: int = 0
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)


def samples(metrics: Iterable[Object], resource: str, container: str = "") -> Samples:
    """Of PodMetrics; with `container` of that one alone. A pod of which a part is unknown is left out."""
    found: Samples = {}
    for one in metrics:
        parts = [part for part in one.get("containers") or () if container in ("", part.get("name"))]
        used = [amount for part in parts if (amount := (part.get("usage") or {}).get(resource)) is not None]
        if parts and len(used) == len(parts):
            window = parse_go_duration(one["window"]).total_seconds()
            found[objects.name(one)] = Sample(sum(map(milli_of, used)), parse_time(one["timestamp"]), window)
    return found


def requests(pods: Iterable[Object], resource: str, container: str = "") -> dict[str, int]:
    """In thousandths, by pod; of the pod as a whole where it says so itself."""
    return {objects.name(pod): _request(pod, resource, container) for pod in pods}


def _request(pod: Object, resource: str, container: str) -> int:
    spec, name = pod["spec"], objects.name(pod)
    whole = objects.get(spec, "resources.requests")
    if whole and not container:
        if resource not in whole:
            raise Unmeasured(f"missing pod-level request for {resource} in Pod {name}")
        return milli_of(whole[resource])
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    chosen = [one for one in (*spec["containers"], *sidecars) if container in ("", one["name"])]
    if not chosen:
        raise Unmeasured(f"container {container} not found in Pod {name}")
    total = 0
    for one in chosen:
        asked = (objects.get(one, "resources.requests") or {}).get(resource)
        if asked is None:
            raise Unmeasured(f"missing request for {resource} in container {one['name']} of Pod {name}")
        total += milli_of(asked)
    return total


def milli_of(amount: str | int) -> int:
    return quantity.parse(amount).milli()


def grouped(pods: Iterable[Object], known: Mapping[str, Sample], resource: str, now: datetime) -> Groups:
    groups = Groups()
    for pod in pods:
        name = objects.name(pod)
        if objects.is_deleting(pod) or states.phase(pod) == "Failed":
            groups.ignored.add(name)
        elif states.phase(pod) == "Pending":
            groups.unready.add(name)
        elif name not in known:
            groups.missing.add(name)
        elif resource == "cpu" and _does_not_count(pod, known[name], now):
            groups.unready.add(name)
        else:
            groups.ready += 1
    return groups


def _does_not_count(pod: Object, sample: Sample, now: datetime) -> bool:
    """What a program uses while it starts tells nothing of its work."""
    status = pod.get("status") or {}
    ready, started = conditions.get(status.get("conditions"), "Ready"), status.get("startTime")
    if ready is None or not started or not ready.get("lastTransitionTime"):
        return True
    since, start = parse_time(ready["lastTransitionTime"]), parse_time(started)
    if later(start, INITIALIZATION_S) > now:
        return bool(ready["status"] == "False") or sample.at < later(since, sample.window_s)
    return bool(ready["status"] == "False") and later(start, READINESS_DELAY_S) > since


@dataclass(frozen=True, slots=True)
class Measured:
    pods: list[Object]
    known: Samples
    resource: str  # "" for a metric of another sort
    requests: Mapping[str, int]  # only looked at for a share of them


def wish(measured: Measured, target: UsageTarget, current: int, tolerance: Tolerance, now: datetime) -> Wish:
    if not measured.pods:
        raise Unmeasured("no pods returned by selector while calculating replica count")
    groups = grouped(measured.pods, measured.known, measured.resource, now)
    left_out = groups.ignored | groups.unready
    used = {name: sample.milli for name, sample in measured.known.items() if name not in left_out}
    if not used:
        raise Unmeasured(_NO_METRICS)
    ratio, average, percent = _ratio(used, target, measured.requests)
    starting = groups.unready if ratio > 1.0 else set()
    if not starting and not groups.missing:
        replicas = current if tolerance.holds(ratio) else math.ceil(ratio * groups.ready)
        return Wish(replicas, average, percent)
    for name in groups.missing:
        if ratio < 1.0:
            asked = measured.requests.get(name, 0)
            used[name] = target.milli if target.percent is None else asked * max(100, target.percent) // 100
        elif ratio > 1.0:
            used[name] = 0
    used |= dict.fromkeys(starting, 0)
    careful, _, _ = _ratio(used, target, measured.requests)
    replicas = math.ceil(careful * len(used))
    turned = (ratio < 1.0 < careful) or (careful < 1.0 < ratio)
    backwards = (careful < 1.0 and replicas > current) or (careful > 1.0 and replicas < current)
    return Wish(current if tolerance.holds(careful) or turned or backwards else replicas, average, percent)


def _ratio(used: Mapping[str, int], target: UsageTarget, asked: Mapping[str, int]) -> tuple[float, int, int | None]:
    """Of what is used to what should be; thousandths of a pod on average; percent of the requests."""
    if target.percent is None:
        average = sum(used.values()) // len(used)
        return average / target.milli, average, None
    counted = {name: milli for name, milli in used.items() if name in asked}
    total = sum(asked[name] for name in counted)
    if not total:
        raise Unmeasured("no metrics returned matched known pods")
    percent = sum(counted.values()) * 100 // total
    return percent / target.percent, sum(counted.values()) // len(counted), percent
