"""metrics.k8s.io without a node: what is asked of it, and what is said of pods that nobody measures."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.pressure.usage import ProcessUsage
from danlu.errors import MethodNotAllowed, NotFound
from danlu.meta.wellknown import CLUSTER_ROLE, NODE, NODE_METRICS, POD, POD_METRICS, SERVICE_ACCOUNT

BUSY = ProcessUsage(cpu_nano=1_500_000_000, memory=3 << 20, window=2.5, at=1_700_000_000.0, cpu_seconds=12.0)


class Measured:
    """Every pod that is asked for runs one container."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []

    async def of_pods(self, uids: Collection[str]) -> Mapping[str, Mapping[str, ProcessUsage]]:
        self.asked.append(set(uids))
        return {uid: {"main": BUSY, "side": BUSY} for uid in uids}

    async def of_nodes(self, pods: Mapping[str, Collection[str]]) -> Mapping[str, ProcessUsage]:
        return dict.fromkeys(pods, BUSY)


async def make_pod(client: Client, name: str, namespace: str = "default", **labels: str) -> Any:
    containers = [{"name": "main", "image": "python"}, {"name": "side", "image": "python"}]
    pod = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, "nodeName": "n"}}
    return await client.create(POD, {"apiVersion": "v1", "kind": "Pod", **pod}, namespace)


@pytest.fixture
async def measured(cluster: Cluster) -> Measured:
    source = Measured()
    cluster.server.node_usage = source
    cluster.server.node_streams = {"n": None}  # type: ignore[dict-item]
    for account in ("default", "kube-system"):
        await cluster.client.create(
            SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, account
        )
    return source


async def test_a_pod_has_its_labels_and_the_usage_of_each_container(client: Client, measured: Measured) -> None:
    await make_pod(client, "p", app="web")
    found = await client.get(POD_METRICS, "p", "default")
    assert found["metadata"]["labels"] == {"app": "web"}
    assert found["window"] == "2.5s"
    assert found["timestamp"] == "2023-11-14T22:13:20Z"
    usage = {"cpu": "1500000000n", "memory": "3072Ki"}
    assert found["containers"] == [{"name": "main", "usage": usage}, {"name": "side", "usage": usage}]


async def test_only_pods_that_were_asked_for_are_measured(client: Client, measured: Measured) -> None:
    web = await make_pod(client, "web", app="web")
    await make_pod(client, "db", app="db")
    await make_pod(client, "far", "kube-system", app="web")
    found = await client.list(POD_METRICS, "default", labels="app=web")
    assert [one["metadata"]["name"] for one in found.items] == ["web"]
    assert measured.asked == [{web["metadata"]["uid"]}]
    found = await client.list(POD_METRICS, fields="metadata.namespace=kube-system")
    assert [one["metadata"]["name"] for one in found.items] == ["far"]


async def test_what_is_not_there_and_what_is_not_measured(client: Client, cluster: Cluster, measured: Measured) -> None:
    with pytest.raises(NotFound, match='pods "p" not found'):
        await client.get(POD_METRICS, "p", "default")
    await make_pod(client, "p")
    cluster.server.node_usage = None
    with pytest.raises(NotFound, match=r'podmetrics.metrics.k8s.io "default/p" not found'):
        await client.get(POD_METRICS, "p", "default")
    assert (await client.list(POD_METRICS, "default")).items == []


async def test_nodes_of_this_machine_have_metrics_and_others_have_none(client: Client, measured: Measured) -> None:
    for name in ("n", "elsewhere"):
        await client.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    found = await client.list(NODE_METRICS)
    assert [one["metadata"]["name"] for one in found.items] == ["n"]
    assert found.items[0]["usage"] == {"cpu": "1500000000n", "memory": "3072Ki"}
    with pytest.raises(NotFound, match=r'nodemetrics.metrics.k8s.io "elsewhere" not found'):
        await client.get(NODE_METRICS, "elsewhere")


async def test_metrics_are_only_read(client: Client, measured: Measured) -> None:
    with pytest.raises(MethodNotAllowed):
        await client.delete(POD_METRICS, "p", "default")


async def test_who_may_view_a_namespace_may_read_its_metrics(client: Client) -> None:
    for role in ("view", "edit", "admin"):
        rules = (await client.get(CLUSTER_ROLE, role))["rules"]
        assert any("metrics.k8s.io" in rule["apiGroups"] and "get" in rule["verbs"] for rule in rules), role


async def page(client: Client, path: str) -> str:
    answer = await client.request("GET", f"/api/v1/nodes/n/proxy/{path}")
    assert isinstance(answer.body, bytes)
    return answer.body.decode()


@pytest.fixture
async def paged(client: Client, measured: Measured) -> Any:
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}
    await client.create(NODE, {"apiVersion": "v1", "kind": "Node", **node})
    pod = await make_pod(client, "p")
    running = {"name": "main", "image": "python", "imageID": "", "ready": True, "restartCount": 0,
               "state": {"running": {"startedAt": "2023-11-14T22:00:00Z"}}}  # fmt: skip
    await client.patch(POD, "p", "default", {"status": {"containerStatuses": [running]}}, subresource="status")
    return pod


async def test_stats_summary(client: Client, paged: Any) -> None:
    found = json.loads(await page(client, "stats/summary"))
    assert found["node"]["nodeName"] == "n"
    assert found["node"]["cpu"]["usageNanoCores"] == 1_500_000_000
    assert found["node"]["memory"]["availableBytes"] == (8 << 30) - (3 << 20)
    (pod,) = found["pods"]
    assert pod["podRef"] == {"name": "p", "namespace": "default", "uid": paged["metadata"]["uid"]}
    assert pod["cpu"] == {
        "time": "2023-11-14T22:13:20Z", "usageNanoCores": 3_000_000_000, "usageCoreNanoSeconds": 24_000_000_000,
    }  # fmt: skip
    assert pod["memory"]["workingSetBytes"] == 6 << 20
    assert [one["name"] for one in pod["containers"]] == ["main", "side"]
    assert pod["containers"][0]["startTime"] == "2023-11-14T22:00:00Z"


async def test_pages_for_prometheus(client: Client, paged: Any) -> None:
    resource = await page(client, "metrics/resource")
    where = 'namespace="default",pod="p"'
    assert f'container_cpu_usage_seconds_total{{container="main",{where}}} 12.0 1700000000000' in resource
    assert f"pod_cpu_usage_seconds_total{{{where}}} 24.0" in resource
    assert f"pod_memory_working_set_bytes{{{where}}} 6.291456e+06" in resource
    assert "node_cpu_usage_seconds_total 12.0" in resource
    assert f'container_start_time_seconds{{container="main",{where}}} 1.6999992e+09' in resource
    assert "resource_scrape_error 0.0" in resource
    cadvisor = await page(client, "metrics/cadvisor")
    assert f'container_memory_rss{{container="side",id="/kubepods/pod{paged["metadata"]["uid"]}/side"' in cadvisor
    assert "machine_cpu_cores 4.0" in cadvisor
    with pytest.raises(NotFound):
        await page(client, "stats/other")
