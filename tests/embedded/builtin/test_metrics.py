"""metrics.k8s.io without a node: what is asked of it, and what is said of pods that nobody measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.pressure.usage import ProcessUsage
from danlu.errors import MethodNotAllowed, NotFound
from danlu.meta.wellknown import CLUSTER_ROLE, NODE, NODE_METRICS, POD, POD_METRICS, SERVICE_ACCOUNT

BUSY = ProcessUsage(cpu_nano=1_500_000_000, memory=3 << 20, window=2.5, at=1_700_000_000.0)


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
