from __future__ import annotations

from typing import Any

from danlu.meta import resourcesums
from danlu.meta.kind import Object


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p", "namespace": "d"}, "spec": spec}


def container(cpu: str, limit: str = "", **more: Any) -> Object:
    resources: Object = {"requests": {"cpu": cpu}}
    if limit:
        resources["limits"] = {"cpu": limit}
    return {"name": "c", "resources": resources, **more}


def shown(amounts: resourcesums.Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def test_init_containers_set_a_floor_and_sidecars_add() -> None:
    sidecar = container("200m", restartPolicy="Always")
    made = pod(containers=[container("1"), container("500m")], initContainers=[sidecar, container("2")])
    assert shown(resourcesums.pod_requests(made)) == {"cpu": "2200m"}
    assert shown(resourcesums.pod_requests(pod(containers=[container("3")], initContainers=[sidecar]))) == {
        "cpu": "3200m"
    }


def test_overhead_counts_for_limits_only_where_there_are_some() -> None:
    made = pod(containers=[container("1", "2")], overhead={"cpu": "100m", "memory": "1Mi"})
    assert shown(resourcesums.pod_requests(made)) == {"cpu": "1100m", "memory": "1Mi"}
    assert shown(resourcesums.pod_limits(made)) == {"cpu": "2100m"}


def test_pod_level_resources_win() -> None:
    made = pod(containers=[container("1")], resources={"requests": {"cpu": "4"}})
    assert shown(resourcesums.pod_requests(made)) == {"cpu": "4"}


def test_what_a_pod_is_charged() -> None:
    made = pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}}])
    assert shown(resourcesums.pod_usage(made)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "requests.nvidia.com/gpu": "2",
    }
    made["status"] = {"phase": "Succeeded"}
    assert shown(resourcesums.pod_usage(made)) == {"count/pods": "1"}


def test_claims_and_services() -> None:
    claim = {
        "metadata": {"name": "c"},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    }
    charge = shown(resourcesums.claim_usage(claim))
    assert charge["requests.storage"] == "1Gi"
    assert charge["fast.storageclass.storage.k8s.io/requests.storage"] == "1Gi"
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}}
    assert shown(resourcesums.service_usage(service))["services.nodeports"] == "2"


def test_scopes() -> None:
    def quota(*scopes: str, **spec: Any) -> Object:
        return {"spec": {"scopes": list(scopes), **spec}}

    plain = pod(containers=[{"name": "c"}])
    assert resourcesums.matches_scopes(plain, quota())
    assert resourcesums.matches_scopes(plain, quota("BestEffort", "NotTerminating"))
    assert not resourcesums.matches_scopes(pod(containers=[container("1")]), quota("BestEffort"))
    assert resourcesums.matches_scopes(pod(containers=[], activeDeadlineSeconds=5), quota("Terminating"))
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    selective = {"spec": {"scopeSelector": {"matchExpressions": [expression]}}}
    assert resourcesums.matches_scopes(pod(containers=[], priorityClassName="high"), selective)
    assert not resourcesums.matches_scopes(plain, selective)


def test_what_a_quota_counts() -> None:
    assert resourcesums.charged_resource("requests.nvidia.com/gpu") == "pods"
    assert resourcesums.charged_resource("count/jobs.batch") == "jobs.batch"
    assert resourcesums.charged_resource("services.loadbalancers") == "services"
    assert (
        resourcesums.charged_resource("fast.storageclass.storage.k8s.io/requests.storage") == "persistentvolumeclaims"
    )
