"""/metrics: names and values, read back as Prometheus reads them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from danlu.embedded.apiserver.metrics import Metrics


def call(verb: str, resource: str = "", group: str = "", subresource: str = "", known: tuple[str, ...] = ()) -> Any:
    kind = SimpleNamespace(group=group, plural=resource)
    served = SimpleNamespace(kind=kind, has_subresource=known.__contains__) if resource else None
    return SimpleNamespace(served=served, target=SimpleNamespace(verb=verb, subresource=subresource))


def samples(metrics: Metrics, objects: dict[str, int] | None = None) -> dict[tuple[str, ...], float]:
    """By name and the labels' values in alphabetical order of the labels."""
    families = text_string_to_metric_families(metrics.text(objects or {}).decode())
    return {
        (one.name, *(value for _, value in sorted(one.labels.items()))): one.value
        for family in families
        for one in family.samples
    }


def test_requests_are_counted_by_verb_resource_and_answer() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.3, 120.0):
        metrics.request(call("create", "jobs", "batch"), 201, seconds)
    metrics.request(call("watch", "pods"), 200, 5.0)
    metrics.request(call("get", "pods", subresource="log", known=("log",)), 200, 0.005)
    found = samples(metrics)
    # code, group, resource, subresource, verb
    assert found["apiserver_request_total", "201", "batch", "jobs", "", "CREATE"] == 3
    assert found["apiserver_request_total", "200", "", "pods", "", "WATCH"] == 1
    assert found["apiserver_request_total", "200", "", "pods", "log", "GET"] == 1


def test_durations_are_a_histogram_and_a_watch_has_none() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.3, 120.0):
        metrics.request(call("create", "jobs", "batch"), 201, seconds)
    metrics.request(call("watch", "pods"), 200, 5.0)
    found = samples(metrics)
    name = "apiserver_request_duration_seconds"
    buckets = {key[1]: value for key, value in found.items() if key[0] == f"{name}_bucket"}
    assert len(buckets) == 15
    assert (buckets["0.005"], buckets["0.2"], buckets["0.4"], buckets["60.0"], buckets["+Inf"]) == (1, 1, 2, 2, 3)
    assert found[f"{name}_count", "jobs", "CREATE"] == 3
    assert found[f"{name}_sum", "jobs", "CREATE"] == 120.301
    assert (f"{name}_count", "pods", "WATCH") not in found


def test_a_copy_stays_as_it_was() -> None:
    metrics = Metrics()
    metrics.request(call("create", "jobs"), 201, 0.1)
    copy = metrics.copy()
    before = samples(copy)
    metrics.request(call("create", "jobs"), 201, 0.1)
    metrics.request(call("get", "jobs"), 200, 0.1)
    apiserver = {key: value for key, value in samples(copy).items() if key[0].startswith("apiserver")}
    assert apiserver == {key: value for key, value in before.items() if key[0].startswith("apiserver")}


def test_names_that_a_client_made_up_are_not_kept() -> None:
    metrics = Metrics()
    for number in range(100):
        metrics.request(call(f"verb{number}", "pods", subresource=f"sub{number}"), 404, 0.1)
    assert samples(metrics)["apiserver_request_total", "404", "", "pods", "", "OTHER"] == 100


def test_objects_and_the_process() -> None:
    found = samples(Metrics(), {"pods": 3, "configmaps": 2})
    assert found["apiserver_storage_objects", "pods"] == 3
    assert found["apiserver_storage_objects", "configmaps"] == 2
    assert found[("process_cpu_seconds_total",)] > 0
    assert found[("process_peak_memory_bytes",)] > 1 << 20
