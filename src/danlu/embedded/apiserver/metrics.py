"""Counters for /metrics, in Prometheus' text form, under the names that Kubernetes' dashboards know."""

from __future__ import annotations

import resource
import sys
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import Call

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

KNOWN_VERBS = "get list watch create update patch delete deletecollection post put head"
VERBS = {verb: verb.upper() for verb in KNOWN_VERBS.split()}


class Metrics:
    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, str, str, int], int] = {}
        self._durations: dict[tuple[str, str], list[float]] = {}  # counts per bucket, then count and sum

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
            row = self._durations[(verb, resource_)] = [0.0] * (len(BUCKETS) + 3)
        row[bisect_left(BUCKETS, seconds)] += 1
        row[-2] += 1
        row[-1] += seconds

    def text(self, objects: dict[str, int]) -> str:
        lines = [
            "# HELP apiserver_request_total Requests by verb, resource and answer.",
            "# TYPE apiserver_request_total counter",
        ]
        for (verb, group, name, sub, code), count in sorted(self._requests.items()):
            labels = f'verb="{verb}",group="{group}",resource="{name}",subresource="{sub}",code="{code}"'
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        lines += [
            "# HELP apiserver_request_duration_seconds Time to answer.",
            "# TYPE apiserver_request_duration_seconds histogram",
        ]
        for (verb, name), row in sorted(self._durations.items()):
            total = 0.0
            labels = f'verb="{verb}",resource="{name}"'
            for bound, within in zip([*map(str, BUCKETS), "+Inf"], row, strict=False):
                total += within
                lines.append(f'apiserver_request_duration_seconds_bucket{{{labels},le="{bound}"}} {total:g}')
            lines.append(f"apiserver_request_duration_seconds_count{{{labels}}} {row[-2]:g}")
            lines.append(f"apiserver_request_duration_seconds_sum{{{labels}}} {row[-1]:g}")
        lines += ["# HELP apiserver_storage_objects Stored objects.", "# TYPE apiserver_storage_objects gauge"]
        lines += [f'apiserver_storage_objects{{resource="{name}"}} {count}' for name, count in sorted(objects.items())]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        lines += [
            "# HELP process_cpu_seconds_total CPU time of this process.",
            "# TYPE process_cpu_seconds_total counter",
            f"process_cpu_seconds_total {usage.ru_utime + usage.ru_stime:.2f}",
            "# HELP process_peak_memory_bytes Largest resident size so far.",
            "# TYPE process_peak_memory_bytes gauge",
            f"process_peak_memory_bytes {peak}",
        ]
        return "\n".join(lines) + "\n"
