"""Counters for /metrics, under the names that Kubernetes' dashboards know.

Every request is counted, so counting is two plain dictionaries: prometheus_client's own counters take five times as
long. The library writes the text when somebody asks for it, and is imported then.
"""

from __future__ import annotations

import resource
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from danlu.embedded.apiserver.request import Call

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
BOUNDS = (*map(str, BUCKETS), "+Inf")

KNOWN_VERBS = "get list watch create update patch delete deletecollection post put head"
VERBS = {verb: verb.upper() for verb in KNOWN_VERBS.split()}


class Metrics:
    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, str, str, int], int] = {}
        self._durations: dict[tuple[str, str], list[float]] = {}  # counts per bucket, not cumulated, then the sum

    def request(self, call: Call, status: int, seconds: float) -> None:
        served = call.served
        group, resource_ = (served.kind.group, served.kind.plural) if served else ("", "")
        # Only names that we know: a client that makes others up would else fill the memory with them.
        verb, subresource = VERBS.get(call.target.verb, "OTHER"), call.target.subresource
        if subresource and (served is None or not served.has_subresource(subresource)):
            subresource = ""
        key = (verb, group, resource_, subresource, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        if verb == "WATCH":
            return
        row = self._durations.get((verb, resource_))
        if row is None:
            row = self._durations[(verb, resource_)] = [0.0] * (len(BOUNDS) + 1)
        row[bisect_left(BUCKETS, seconds)] += 1
        row[-1] += seconds

    def copy(self) -> Metrics:
        """For another thread: what it reads does not change."""
        found = Metrics()
        found._requests = dict(self._requests)
        found._durations = {key: list(row) for key, row in self._durations.items()}
        return found

    def text(self, objects: Mapping[str, int]) -> bytes:
        """`objects`: how many are stored of each resource."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([*self._requested(), *_stored(objects), *_process()]))
        return generate_latest(registry)

    def _requested(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily

        labels = ["verb", "group", "resource", "subresource", "code"]
        requests = CounterMetricFamily("apiserver_request", "Requests by verb, resource and answer.", labels=labels)
        for (*names, code), count in sorted(self._requests.items()):
            requests.add_metric([*map(str, names), str(code)], count)
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "Time to answer.", labels=["verb", "resource"]
        )
        for key, (*within, seconds) in sorted(self._durations.items()):
            durations.add_metric(key, list(zip(BOUNDS, accumulate(within), strict=True)), seconds)
        yield from (requests, durations)


class _Collected:
    """What a registry asks for metrics: those that were made for this answer."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _stored(objects: Mapping[str, int]) -> Iterator[Metric]:
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily("apiserver_storage_objects", "Stored objects.", labels=["resource"])
    for name, count in sorted(objects.items()):
        family.add_metric([name], count)
    yield family


def _process() -> Iterator[Metric]:
    """Also where there is no /proc, which the library's own collector reads."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield CounterMetricFamily(
        "process_cpu_seconds", "CPU time of this process.", value=round(usage.ru_utime + usage.ru_stime, 2)
    )
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield GaugeMetricFamily("process_peak_memory_bytes", "Largest resident size so far.", value=peak)
