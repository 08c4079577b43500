"""`/metrics` in Prometheus' text format."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from danlu.runtime.controller import Controller
from danlu.runtime.stats import BOUNDS_S, FAILED

STARTED = time.time()

Sample = tuple[Mapping[str, str], float]


def render(
    controllers: Mapping[str, Sequence[Controller]], requests: Mapping[tuple[str, str], int], *, leading: bool
) -> str:
    """`controllers` by kind; `requests` to the API by verb and code."""
    lines: list[str] = []
    add = lines.extend
    add(_family("danlu_leader", "gauge", "1 when this replica does the work", [({}, int(leading))]))
    results = [
        ({"kind": kind, "result": result}, sum(one.stats.results[result] for one in found))
        for kind, found in controllers.items()
        for result in (found[0].stats.results if found else ())
    ]
    add(_family("danlu_reconcile_total", "counter", "attempts at an object, by what came of them", results))
    failed = [({"kind": kind}, sum(one.stats.results[FAILED] for one in found)) for kind, found in controllers.items()]
    add(_family("danlu_reconcile_errors_total", "counter", "attempts that failed", failed))
    add(_histograms(controllers))
    depth = [({"kind": kind}, sum(len(one.queue) for one in found)) for kind, found in controllers.items()]
    add(_family("danlu_queue_depth", "gauge", "objects that wait for a worker", depth))
    busy = [({"kind": kind}, sum(one.stats.busy for one in found)) for kind, found in controllers.items()]
    add(_family("danlu_workers_busy", "gauge", "workers that are at an object", busy))
    asked = [({"verb": verb, "code": code}, count) for (verb, code), count in sorted(requests.items())]
    add(_family("danlu_api_requests_total", "counter", "requests to the API server", asked))
    add(_process())
    return "\n".join(lines) + "\n"


def _histograms(controllers: Mapping[str, Sequence[Controller]]) -> list[str]:
    name = "danlu_reconcile_seconds"
    lines = [f"# HELP {name} how long one attempt took", f"# TYPE {name} histogram"]
    for kind, found in controllers.items():
        buckets = [sum(numbers) for numbers in zip(*(one.stats.buckets for one in found), strict=True)] if found else []
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), accumulate(buckets), strict=False):
            lines.append(_sample(f"{name}_bucket", {"kind": kind, "le": bound}, count))
        lines.append(_sample(f"{name}_sum", {"kind": kind}, sum(one.stats.seconds for one in found)))
        lines.append(_sample(f"{name}_count", {"kind": kind}, sum(buckets)))
    return lines


def _process() -> list[str]:
    resident = 0
    for line in Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else ():
        if line.startswith("VmRSS:"):
            resident = int(line.split()[1]) * 1024
    used = time.process_time()
    return [
        *_family("process_resident_memory_bytes", "gauge", "memory in use", [({}, resident)]),
        *_family("process_cpu_seconds_total", "counter", "processor time", [({}, used)]),
        *_family("process_start_time_seconds", "gauge", "when it began", [({}, STARTED)]),
    ]


def _family(name: str, type: str, help: str, samples: Iterable[Sample]) -> list[str]:
    return [f"# HELP {name} {help}", f"# TYPE {name} {type}", *(_sample(name, *sample) for sample in samples)]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:.10g}"
