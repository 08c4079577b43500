"""`/metrics`: what is counted anyway (`runtime/stats.py`, `access.py`), handed to prometheus_client when somebody asks.

Its own counters lock and look up their labels at every step; ours are plain numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from danlu.runtime.controller import Controller
from danlu.runtime.stats import BOUNDS_S, FAILED

BOUNDS = (*map(str, BOUNDS_S), "+Inf")


@dataclass(frozen=True, slots=True)
class OperatorMetrics(Collector):
    controllers: Mapping[str, Sequence[Controller]]  # by kind
    requests: Mapping[tuple[str, str], int]  # to the API by verb and code
    leading: bool

    def text(self) -> str:
        return generate_latest(self).decode()

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("danlu_leader", "1 when this replica does the work", int(self.leading))
        yield from self._reconciliations()
        yield self._durations()
        depth = GaugeMetricFamily("danlu_queue_depth", "objects that wait for a worker", labels=["kind"])
        busy = GaugeMetricFamily("danlu_workers_busy", "workers that are at an object", labels=["kind"])
        for kind, found in self.controllers.items():
            depth.add_metric([kind], sum(len(one.queue) for one in found))
            busy.add_metric([kind], sum(one.stats.busy for one in found))
        yield from (depth, busy)
        asked = CounterMetricFamily("danlu_api_requests", "requests to the API server", labels=["verb", "code"])
        for labels, count in sorted(self.requests.items()):
            asked.add_metric(labels, count)
        yield asked
        yield from ProcessCollector(registry=None).collect()

    def _reconciliations(self) -> Iterator[Metric]:
        results = CounterMetricFamily(
            "danlu_reconcile", "attempts at an object, by what came of them", labels=["kind", "result"]
        )
        failed = CounterMetricFamily("danlu_reconcile_errors", "attempts that failed", labels=["kind"])
        for kind, found in self.controllers.items():
            for result in found[0].stats.results if found else ():
                results.add_metric([kind, result], sum(one.stats.results[result] for one in found))
            failed.add_metric([kind], sum(one.stats.results[FAILED] for one in found))
        yield from (results, failed)

    def _durations(self) -> Metric:
        family = HistogramMetricFamily("danlu_reconcile_seconds", "how long one attempt took", labels=["kind"])
        for kind, found in self.controllers.items():
            within = [sum(counts) for counts in zip(*(one.stats.buckets for one in found), strict=True)]
            # A kind that does not run yet has its row, too.
            cumulated = list(accumulate(within)) or [0] * len(BOUNDS)
            seconds = sum(one.stats.seconds for one in found)
            family.add_metric([kind], list(zip(BOUNDS, cumulated, strict=True)), seconds)
        return family
