"""HorizontalPodAutoscalers: what is filled in and refused, both versions, and replicas that follow bounds and use."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conformance.conftest import Kube

V1, V2 = (f"horizontalpodautoscalers.{version}.autoscaling" for version in ("v1", "v2"))


def autoscaler(name: str = "busy", version: str = "v2", **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec},
    }  # fmt: skip


def deployment(name: str, replicas: int, script: str = "sleep 3600", **pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script],
                 "resources": {"requests": {"cpu": "100m"}}}  # fmt: skip
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **pod}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                 "template": {"metadata": {"labels": {"app": name}}, "spec": spec}},
    }  # fmt: skip


def cpu(**target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def test_what_is_filled_in_and_shown(kube: Kube) -> None:
    kube.apply(autoscaler(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}))
    spec = kube.get(V2, "busy")["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"] == [cpu(type="Utilization", averageUtilization=80)]
    assert spec["behavior"]["scaleUp"] == {
        "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15},
                     {"type": "Percent", "value": 100, "periodSeconds": 15}],
    }  # fmt: skip
    down = spec["behavior"]["scaleDown"]
    assert (down["selectPolicy"], down["policies"]) == ("Max", [{"type": "Pods", "value": 1, "periodSeconds": 60}])
    header, row = kube("get", "hpa").splitlines()
    assert header.split() == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert row.split()[:6] == ["busy", "Deployment/busy", "cpu:", "<unknown>/80%", "1", "3"]


def test_one_object_in_two_versions(kube: Kube) -> None:
    kube.apply(autoscaler("old", "v1", targetCPUUtilizationPercentage=60))
    assert kube.get(V2, "old")["spec"]["metrics"] == [cpu(type="Utilization", averageUtilization=60)]
    pods = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    kube.apply(
        autoscaler("new", metrics=[{"type": "Pods", "pods": pods}, cpu(type="Utilization", averageUtilization=7)])
    )
    shown = kube.get(V1, "new")
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 7
    assert "metrics" not in shown["spec"]
    (noted,) = json.loads(shown["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"])
    assert noted["pods"]["metricName"] == "queue"
    kube("patch", V1, "new", "--type=merge", "-p", '{"spec": {"maxReplicas": 5}}')
    found = kube.get(V2, "new")
    assert found["spec"]["maxReplicas"] == 5
    assert [metric["type"] for metric in found["spec"]["metrics"]] == ["Pods", "Resource"]
    assert "autoscaling.alpha.kubernetes.io/metrics" not in (found["metadata"].get("annotations") or {})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"maxReplicas": 0}, "spec.maxReplicas: Required value: must be set and greater than 0"),
        ({"minReplicas": 5}, "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"),
        ({"minReplicas": -1}, "spec.minReplicas: Invalid value: -1: must be greater than or equal to 1"),
        ({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}}, "spec.scaleTargetRef.name: Required"),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "x"}}, "apiVersion must specify API group"),
        ({"metrics": [{"type": "Weather"}]}, 'spec.metrics[0].type: Unsupported value: "Weather"'),
        ({"metrics": [{"type": "Resource"}]},
         "spec.metrics[0].resource: Required value: must populate information for the given metric source"),
        ({"metrics": [cpu(type="Utilization")]},
         "target.averageUtilization: Required value: must set either a target raw value or a target utilization"),
        ({"metrics": [cpu(type="Utilization", averageUtilization=0)]},
         "target.averageUtilization: Invalid value: 0: must be greater than 0"),
        ({"metrics": [cpu(type="AverageValue", averageValue="-1")]}, "must be positive"),
        ({"metrics": [cpu(type="Sum", averageUtilization=50)]}, "must be either Utilization, Value, or AverageValue"),
        ({"metrics": [{"type": "Pods", "pods": {"metric": {"name": ""}, "target": {"type": "AverageValue"}}}]},
         "spec.metrics[0].pods.metric.name: Required value: must specify a metric name"),
        ({"behavior": {"scaleUp": {"stabilizationWindowSeconds": 3601}}}, "must be less than or equal to 3600"),
        ({"behavior": {"scaleUp": {"selectPolicy": "Mean"}}},
         'Unsupported value: "Mean": supported values: "Disabled", "Max", "Min"'),
        ({"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}]}}},
         "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"),
    ],
)  # fmt: skip
def test_what_is_refused(kube: Kube, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=autoscaler(**spec))


def test_bounds_are_kept_without_metrics(kube: Kube) -> None:
    nowhere: dict[str, Any] = {"nodeSelector": {"nowhere": "x"}}
    kube.apply(deployment("few", 1, **nowhere), deployment("many", 9, **nowhere), deployment("none", 0, **nowhere))
    kube.apply(autoscaler("few", minReplicas=2), autoscaler("many"), autoscaler("none"), autoscaler("lost"))
    kube.until("deployment/few", "{.spec.replicas}", "2")
    kube.until("deployment/many", "{.spec.replicas}", "3")
    reason = '{{.status.conditions[?(@.type=="{}")].reason}}'
    kube.until("hpa/none", reason.format("ScalingActive"), "ScalingDisabled")
    kube.until("hpa/lost", reason.format("AbleToScale"), "FailedGetScale")
    kube.until("hpa/few", reason.format("ScalingActive"), "FailedGetResourceMetric")
    words = kube.wait("its word", lambda: kube("events", "--for=hpa/many"))
    assert "New size: 3; reason: Current number of replicas above Spec.MaxReplicas" in words


@pytest.mark.node
def test_replicas_follow_use(kube: Kube, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--kubeconfig") and "metrics.k8s.io" not in kube("api-versions"):
        pytest.skip("this cluster has no metrics-server")
    # Busy until somebody says that it is enough.
    script = "while [ ! -e /stop/now ]; do :; done; sleep 3600"
    stop: dict[str, Any] = {"volumes": [{"name": "stop", "configMap": {"name": "stop", "optional": True}}]}
    made = deployment("busy", 1, script, **stop)
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "stop", "mountPath": "/stop"}]
    container["resources"]["requests"]["cpu"] = "20m"
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    kube.apply(
        made, autoscaler(maxReplicas=2, metrics=[cpu(type="Utilization", averageUtilization=50)], behavior=behavior)
    )
    kube.until("deployment/busy", "{.spec.replicas}", "2", timeout=180)
    kube.until("hpa/busy", '{.status.conditions[?(@.type=="ScalingActive")].status}', "True")
    assert "cpu resource utilization (percentage of request) above target" in kube("events", "--for=hpa/busy")
    kube("create", "configmap", "stop", "--from-literal=now=")
    kube("delete", "pods", "-l", "app=busy", "--wait=false")
    kube.until("deployment/busy", "{.spec.replicas}", "1", timeout=240)
    assert "All metrics below target" in kube("events", "--for=hpa/busy")
