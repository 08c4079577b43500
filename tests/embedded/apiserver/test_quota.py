from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from danlu.embedded.apiserver.admission.resource_quota import ResourceQuota
from danlu.errors import Forbidden
from danlu.meta import wellknown as k
from danlu.meta.kind import Kind, Object


class Lab:
    """One namespace with quotas; `create` does what the pipeline does: admit, then submit."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.plugin = ResourceQuota(world.store)

    def quota(self, name: str, hard: Object, **spec: Any) -> None:
        self.world.put(k.RESOURCE_QUOTA, name, "default", spec={"hard": hard, **spec})

    def create(self, kind: Kind, obj: Object) -> None:
        self.plugin.validate(self.world.write("CREATE", kind, obj))
        self.world.store.put(kind.resource, obj)

    def update(self, kind: Kind, obj: Object, old: Object) -> None:
        self.plugin.validate(self.world.write("UPDATE", kind, obj, old))
        self.world.store.put(kind.resource, obj)

    def used(self, name: str) -> dict[str, str]:
        return self.plugin.usage("default", name)


@pytest.fixture
def lab(world: Any) -> Lab:
    return Lab(world)


async def test_the_quota_of_the_handbook(lab: Lab, make_pod: Callable[..., Object]) -> None:
    """`limits.nvidia.com/gpu` is accepted and never counted, as on a real cluster."""
    lab.quota(
        "training-quota",
        {
            "requests.cpu": "4", "requests.memory": "8Gi", "requests.nvidia.com/gpu": "1",
            "limits.cpu": "8", "limits.memory": "16Gi", "limits.nvidia.com/gpu": "1",
        },
    )  # fmt: skip
    sizes = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}}
    lab.create(k.POD, make_pod("a", **sizes))
    lab.create(k.POD, make_pod("b", **sizes))
    assert lab.used("training-quota") == {
        "limits.cpu": "8", "limits.memory": "16Gi", "requests.cpu": "4", "requests.memory": "8Gi",
        "requests.nvidia.com/gpu": "0",
    }  # fmt: skip
    with pytest.raises(Forbidden) as refused:
        lab.create(k.POD, make_pod("c", **sizes))
    assert refused.value.message == (
        'pods "c" is forbidden: exceeded quota: training-quota, '
        "requested: limits.cpu=4,limits.memory=8Gi,requests.cpu=2,requests.memory=4Gi, "
        "used: limits.cpu=8,limits.memory=16Gi,requests.cpu=4,requests.memory=8Gi, "
        "limited: limits.cpu=8,limits.memory=16Gi,requests.cpu=4,requests.memory=8Gi"
    )
    with pytest.raises(Forbidden) as refused:
        lab.create(k.POD, make_pod("c", requests={"cpu": "1"}))
    assert refused.value.message == (
        'pods "c" is forbidden: failed quota: training-quota: '
        "must specify limits.cpu for: c; limits.memory for: c; requests.memory for: c"
    )


async def test_gpus(lab: Lab, make_pod: Callable[..., Object]) -> None:
    lab.quota("gpus", {"requests.nvidia.com/gpu": "1"})
    gpu = {"nvidia.com/gpu": "1"}
    lab.create(k.POD, make_pod("free"))
    lab.create(k.POD, make_pod("a", requests=gpu, limits=gpu))
    with pytest.raises(
        Forbidden, match=r"requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1, limited"
    ):
        lab.create(k.POD, make_pod("b", requests=gpu, limits=gpu))


async def test_finished_deleted_and_lost_pods_are_free(lab: Lab, make_pod: Callable[..., Object]) -> None:
    lab.quota("q", {"pods": "1", "count/pods": "10"})
    first = make_pod("a")
    lab.create(k.POD, first)
    with pytest.raises(Forbidden):
        lab.create(k.POD, make_pod("b"))
    lab.world.store.put("pods", {**first, "status": {"phase": "Succeeded"}})
    assert lab.used("q") == {"count/pods": "1", "pods": "0"}
    second = make_pod("b")
    lab.create(k.POD, second)
    lab.world.delete(k.POD, second)
    third = make_pod("c")
    lab.create(k.POD, third)
    past = (datetime.now(UTC) - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    third["metadata"] |= {"deletionTimestamp": past, "deletionGracePeriodSeconds": 30}
    lab.world.store.put("pods", third)
    lab.create(k.POD, make_pod("d"))
    assert lab.used("q") == {"count/pods": "3", "pods": "1"}


async def test_what_was_there_before_the_quota_counts(lab: Lab, world: Any, make_pod: Callable[..., Object]) -> None:
    world.store.put("pods", make_pod("a"))
    world.put(k.CONFIG_MAP, "x", "default")
    lab.quota("q", {"pods": "1", "configmaps": "5", "count/jobs.batch": "1"})
    assert lab.used("q") == {"configmaps": "1", "count/jobs.batch": "0", "pods": "1"}
    assert ResourceQuota(world.store).usage("default", "q") == lab.used("q")
    with pytest.raises(Forbidden):
        lab.create(k.POD, make_pod("b"))
    job = {"metadata": {"name": "j", "namespace": "default"}}
    lab.create(k.JOB, job)
    with pytest.raises(
        Forbidden, match=r'jobs.batch "j2" is forbidden: exceeded quota: q, requested: count/jobs.batch=1'
    ):
        lab.create(k.JOB, {"metadata": {"name": "j2", "namespace": "default"}})
    lab.quota("q", {"pods": "2"})
    lab.create(k.POD, make_pod("b"))
    world.delete(k.RESOURCE_QUOTA, {"metadata": {"name": "q", "namespace": "default"}})
    lab.create(k.POD, make_pod("c"))
    assert lab.used("q") == {}


async def test_a_dry_run_is_not_counted(lab: Lab, world: Any, make_pod: Callable[..., Object]) -> None:
    lab.quota("q", {"pods": "1"})
    lab.plugin.validate(world.write("CREATE", k.POD, make_pod("a"), dry_run=True))
    assert lab.used("q") == {"pods": "0"}


def service(name: str, kind: str = "ClusterIP", ports: int = 1) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": kind, "ports": [{"port": n} for n in range(ports)]},
    }


async def test_services_may_change_their_type(lab: Lab) -> None:
    lab.quota("q", {"services": "2", "services.nodeports": "2"})
    plain = service("a")
    lab.create(k.SERVICE, plain)
    lab.create(k.SERVICE, service("b", "NodePort", 2))
    with pytest.raises(Forbidden, match=r"requested: services.nodeports=1, used: services.nodeports=2"):
        lab.update(k.SERVICE, service("a", "NodePort"), plain)
    with pytest.raises(Forbidden, match=r"requested: services=1"):
        lab.create(k.SERVICE, service("c"))


def claim(name: str, size: str, storage_class: str = "fast") -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}},
    }


async def test_claims_by_size_and_class(lab: Lab) -> None:
    lab.quota("q", {"requests.storage": "10Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"})
    first = claim("a", "4Gi")
    lab.create(k.PERSISTENT_VOLUME_CLAIM, first)
    with pytest.raises(Forbidden, match=r"requested: fast.storageclass.storage.k8s.io/persistentvolumeclaims=1"):
        lab.create(k.PERSISTENT_VOLUME_CLAIM, claim("b", "1Gi"))
    lab.create(k.PERSISTENT_VOLUME_CLAIM, claim("b", "1Gi", "slow"))
    lab.update(k.PERSISTENT_VOLUME_CLAIM, claim("a", "9Gi"), first)
    with pytest.raises(Forbidden, match=r"requested: requests.storage=1Gi, used: requests.storage=10Gi, limited"):
        lab.update(k.PERSISTENT_VOLUME_CLAIM, claim("a", "10Gi"), claim("a", "9Gi"))


async def test_scopes(lab: Lab, make_pod: Callable[..., Object]) -> None:
    lab.quota("best", {"pods": "1"}, scopes=["BestEffort"])
    lab.quota("short", {"pods": "1"}, scopes=["Terminating"])
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    lab.quota("high", {"pods": "1"}, scopeSelector=selector)
    cpu = {"cpu": "1"}
    lab.create(k.POD, make_pod("a"))
    with pytest.raises(Forbidden, match="exceeded quota: best"):
        lab.create(k.POD, make_pod("b"))
    lab.create(k.POD, make_pod("b", requests=cpu))
    lab.create(k.POD, make_pod("c", requests=cpu, activeDeadlineSeconds=5))
    with pytest.raises(Forbidden, match="exceeded quota: short"):
        lab.create(k.POD, make_pod("d", requests=cpu, activeDeadlineSeconds=5))
    plain = make_pod("e", requests=cpu)
    lab.create(k.POD, plain)
    with pytest.raises(Forbidden, match="exceeded quota: short"):
        lab.update(k.POD, make_pod("e", requests=cpu, activeDeadlineSeconds=5), plain)
    lab.create(k.POD, make_pod("f", requests=cpu, priorityClassName="high"))
    with pytest.raises(Forbidden, match="exceeded quota: high"):
        lab.create(k.POD, make_pod("g", requests=cpu, priorityClassName="high"))
    assert lab.used("high") == {"pods": "1"}


async def test_a_failed_write_is_taken_back(world: Any, make_pod: Callable[..., Object]) -> None:
    lab = Lab(world)
    lab.quota("q", {"pods": "1"})
    journal = world.store._journal
    changes: list[Any] = []
    journal.append = changes.append
    future = world.store.put("pods", make_pod("a"))
    assert lab.used("q") == {"pods": "1"}
    journal.done(changes, OSError("disk full"))
    assert lab.used("q") == {"pods": "0"}
    assert future.exception() is not None
