"""A cluster that was killed in the middle of its work is taken off the machine, whatever it had mounted and started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cluster import residue
from tests.cluster.cluster import Cluster
from tests.cluster.place import new_place

pytestmark = pytest.mark.timeout(300)
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "busy"},
    "spec": {
        "containers": [{
            "name": "c", "image": "busybox", "command": ["sleep", "inf"],
            "ports": [{"containerPort": 80, "hostPort": 8000}],
            "volumeMounts": [{"name": "memory", "mountPath": "/memory"}, {"name": "kept", "mountPath": "/kept"}],
        }],
        "volumes": [
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}},
        ],
    },
}  # fmt: skip
CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "kept"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}  # fmt: skip


def traces(name: str) -> list[str]:
    """Where the machine still knows a cluster's name."""
    found = [str(path) for root in residue.cgroup_roots() for path in root.glob(f"{name}*")]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    return [*found, *map(str, Path("/run/netns").glob(f"{name}*"))]


def test_nothing_is_left_of_a_cluster_that_died(cluster: Cluster) -> None:
    """`cluster` only says that this machine can have one; this one is another, beside it."""
    rules = residue.rules()
    doomed = Cluster(new_place(), cluster.path)
    try:
        doomed.up(lambda line: None)
        doomed.kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [CLAIM, POD]})
        doomed.run("kubectl", "wait", "--for=condition=Ready", "pod/busy", "--timeout=120s")
        assert traces(doomed.place.name)
        assert residue.mounts(doomed.place), "a pod with a volume in memory has mounts"
        for name in ("kubelet", "containerd", "kube-apiserver", "etcd"):
            os.kill(doomed.processes.recorded()[name]["pid"], signal.SIGKILL)
        assert len(residue.processes(doomed.place)) > 5, "its other programs and the pod still run"
    finally:
        left = doomed.down()
    assert left == []
    assert not doomed.place.folder.exists()
    assert traces(doomed.place.name) == []
    assert residue.rules() == rules, "links and rules of the machine's own network are as they were"
