"""Tests that need the test cluster itself: `scripts/test-cluster` runs them on one; elsewhere they are skipped."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import target
from tests.cluster.cluster import Cluster
from tests.cluster.machine import SYSTEM
from tests.cluster.place import FAKE
from tests.kinds.jobs import Jobs

GPU = "nvidia.com/gpu"
TOLERATED = [{"key": FAKE, "operator": "Exists"}]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    place = target.place()
    if place is None:
        pytest.skip("this needs a real cluster; scripts/test-cluster starts one and runs this on it")
    return Cluster(place, SYSTEM)


class Space(Jobs):
    """One namespace of the cluster."""

    def __init__(self, cluster: Cluster, danlu: target.OnCluster, name: str) -> None:
        super().__init__(danlu)
        self.danlu: target.OnCluster = danlu
        self.cluster, self.name = cluster, name

    def all_pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.danlu.kubectl("get", "pods", "-o", "json"))["items"]
        return found

    def bound(self) -> dict[str, str]:
        """Pods that have a node: their names and its name."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.all_pods() if pod["spec"].get("nodeName")
        }

    def add_fake_node(self, name: str, gpus: int = 0) -> None:
        """A node that kwok plays; pods get there by choosing it and tolerating its taint."""
        room = {"cpu": "64", "memory": "256Gi", "pods": "1000", GPU: str(gpus)}
        node = {
            "apiVersion": "v1", "kind": "Node", "status": {"capacity": room, "allocatable": room},
            "metadata": {"name": f"{self.name}-{name}", "labels": {FAKE: "yes", "space": self.name}},
            "spec": {"taints": [{"key": FAKE, "value": "yes", "effect": "NoSchedule"}]},
        }  # fmt: skip
        self.danlu.kubectl("create", "-f", "-", stdin=json.dumps(node))

    def on_fake_nodes(self) -> dict[str, Any]:
        """For a pod's spec."""
        return {"nodeSelector": {"space": self.name}, "tolerations": TOLERATED}


@pytest.fixture
def space(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Space]:
    danlu = target.OnCluster(cluster.place, tmp_path_factory.mktemp("space"))
    name = f"space-{secrets.token_hex(3)}"
    danlu.kubectl("create", "namespace", name)
    danlu.namespace = name
    found = Space(cluster, danlu, name)
    found.danlu.wait("the default account", lambda: danlu.kubectl("get", "serviceaccount", "default", check=False))
    yield found
    danlu.kubectl("delete", "namespace", name, "--wait=false")
    danlu.kubectl("delete", "nodes", "-l", f"space={name}", "--wait=false")
