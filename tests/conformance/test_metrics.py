"""metrics.k8s.io, as `kubectl top` and dashboards read it. A cluster has it only with metrics-server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.conftest import Kube

pytestmark = pytest.mark.node
BUSY = "while :; do :; done"


@pytest.fixture
def measuring(kube: Kube, request: pytest.FixtureRequest) -> Kube:
    if request.config.getoption("--kubeconfig") and "metrics.k8s.io" not in kube("api-versions"):
        pytest.skip("this cluster has no metrics-server")
    return kube


def test_kubectl_top_tells_the_busy_from_the_idle(measuring: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    kube = measuring
    kube.apply(pod("busy", BUSY), pod("calm"))
    kube.running("busy", "calm")

    def cores(name: str) -> int:
        """Millicores of one pod, -1 while it has not been measured."""
        lines = kube.run("top", "pods", "--no-headers", check=False).stdout.splitlines()
        found = {line.split()[0]: line.split()[1] for line in lines}
        return int(found[name].removesuffix("m")) if name in found else -1

    kube.wait("the busy pod to be seen", lambda: cores("busy") > 100, timeout=120)
    assert 0 <= cores("calm") < cores("busy")
    by_container = kube("top", "pods", "--containers", "-l", "app=busy", "--no-headers").split()
    assert by_container[:2] == ["busy", "main"]
    assert kube("top", "nodes", "--no-headers").split()[1].endswith("m")
    one = json.loads(kube("get", "--raw", f"/apis/metrics.k8s.io/v1beta1/namespaces/{kube.namespace}/pods/busy"))
    assert (one["kind"], one["metadata"]["labels"]["app"]) == ("PodMetrics", "busy")
    assert one["containers"][0]["usage"].keys() == {"cpu", "memory"}
    assert 'pods "nobody" not found' in kube.fails("top", "pod", "nobody")


def test_who_may_view_may_read_metrics(measuring: Kube) -> None:
    kube = measuring
    kube("create", "serviceaccount", "viewer")
    kube("create", "rolebinding", "viewer", "--clusterrole=view", f"--serviceaccount={kube.namespace}:viewer")
    viewer = f"--as=system:serviceaccount:{kube.namespace}:viewer"
    kube.wait(
        "the right to count",
        lambda: kube.run("auth", "can-i", "list", "pods.metrics.k8s.io", viewer, check=False).returncode == 0,
    )
    kube("get", "--raw", f"/apis/metrics.k8s.io/v1beta1/namespaces/{kube.namespace}/pods", viewer)
    assert "forbidden" in kube.fails("get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", viewer)


def test_the_pages_of_a_node_tell_the_same(kube: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    kube.apply(pod("calm"))
    kube.running("calm")
    node = kube.value("pod/calm", "{.spec.nodeName}")

    def measured() -> list[dict[str, Any]]:
        summary = json.loads(kube("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary"))
        assert summary["node"]["nodeName"] == node
        mine = {"name": "calm", "namespace": kube.namespace}
        return [one for one in summary["pods"] if mine.items() <= one["podRef"].items()]

    (found,) = kube.wait("the pod to be measured", measured, timeout=120)
    assert found["containers"][0]["name"] == "main"
    assert found["containers"][0]["memory"]["workingSetBytes"] > 0
    labels = f'{{container="main",namespace="{kube.namespace}",pod="calm"}}'
    page = f"/api/v1/nodes/{node}/proxy/metrics/resource"
    kube.wait("its series", lambda: f"container_cpu_usage_seconds_total{labels}" in kube("get", "--raw", page))
