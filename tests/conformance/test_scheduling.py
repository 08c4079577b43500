"""Where pods go, why they go nowhere, and who has to leave. On stand-in nodes, so on any control plane.

Other cases may run at the same time, and kube-scheduler counts their nodes, too: tainted, cordoned, of another name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.conformance.conftest import Kube
from tests.conformance.standin import Nodes

Make = Callable[..., dict[str, Any]]


class Pods:
    """Pods for stand-ins."""

    def __init__(self, kube: Kube, nodes: Nodes) -> None:
        self.kube, self.nodes = kube, nodes

    def make(self, name: str, cpu: str = "0", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
        requests = {"cpu": cpu, **spec.pop("requests", {})}
        resources = {"requests": requests, "limits": {k: v for k, v in requests.items() if "/" in k}}
        container = {"name": "main", "image": "busybox", "resources": resources}
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {"app": name}},
            "spec": self.nodes.pinned({"terminationGracePeriodSeconds": 0, "containers": [container], **spec}),
        }  # fmt: skip

    def create(self, name: str, cpu: str = "0", labels: dict[str, str] | None = None, **spec: Any) -> None:
        self.kube("create", "-f", "-", stdin=self.make(name, cpu, labels, **spec))

    def node_of(self, name: str) -> str:
        def look() -> Any:
            return self.kube.value(f"pod/{name}", "{.spec.nodeName}")

        return str(self.kube.wait(f"{name} to be placed", look)).removeprefix(f"{self.kube.namespace}-")

    def why_not(self, name: str) -> str:
        path = '{.status.conditions[?(@.type=="PodScheduled")].message}'
        found = str(self.kube.wait(f"{name} to be refused", lambda: self.kube.value(f"pod/{name}", path)))
        assert (
            self.kube.value(f"pod/{name}", '{.status.conditions[?(@.type=="PodScheduled")].reason}') == "Unschedulable"
        )
        return found


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def near(key: str, **labels: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def test_what_fits_and_what_does_not(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    nodes.add("small", cpu="1", memory="1Gi")
    nodes.add("large", cpu="4", memory="4Gi")
    pods.create("fits", cpu="3")
    pods.create("huge", cpu="64")
    pods.create("fat", requests={"memory": "64Gi"})
    pods.create("gpus", requests={"nvidia.com/gpu": "1"})
    pods.create("elsewhere", nodeSelector={"disk": "ssd"})
    assert pods.node_of("fits") == "large"
    assert "2 Insufficient cpu" in pods.why_not("huge")
    assert "nodes are available: " in pods.why_not("huge")
    assert "2 Insufficient memory" in pods.why_not("fat")
    assert "2 Insufficient nvidia.com/gpu" in pods.why_not("gpus")
    assert "node(s) didn't match Pod's node affinity/selector" in pods.why_not("elsewhere")
    assert "preemption: 0/" in pods.why_not("elsewhere")
    assert "Preemption is not helpful for scheduling" in pods.why_not("elsewhere")
    pods.create("full", cpu="3")
    assert "2 Insufficient cpu" in pods.why_not("full")
    assert "1 No preemption victims found for incoming pod" in pods.why_not("full")
    kube.wait("the event", lambda: "FailedScheduling" in kube("events", "--for=pod/huge"))
    # More room, and what waited is placed.
    kube("delete", "pod", "fits", "--force", "--grace-period=0")
    giant = nodes.add("giant", cpu="128", memory="256Gi")
    kube("patch", "node", giant, "--subresource=status", "-p", json.dumps(
        {"status": {"capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4"}}}))  # fmt: skip
    kube("label", "node", giant, "disk=ssd")
    for name in ("huge", "fat", "gpus", "elsewhere"):
        assert pods.node_of(name) == "giant"
    kube.wait("the event", lambda: "Successfully assigned" in kube("events", "--for=pod/huge"))


def test_taints_and_tolerations(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    nodes.add("held", taints=[{"key": "for", "value": "experts", "effect": "NoSchedule"}])
    pods.create("anyone")
    pods.create("expert", tolerations=[{"key": "for", "operator": "Equal", "value": "experts"}])
    pods.create("named", nodeName=nodes.names[0])
    assert pods.node_of("expert") == "held"
    assert pods.node_of("named") == "held"
    assert "node(s) had untolerated taint(s)" in pods.why_not("anyone")
    kube("taint", "node", nodes.names[0], "for-")
    assert pods.node_of("anyone") == "held"
    # NoExecute sends away who does not tolerate it.
    kube("taint", "node", nodes.names[0], "out=now:NoExecute")
    kube.wait(
        "it to be sent away",
        lambda: (
            kube.run("get", "pod", "anyone", "-o", "jsonpath={.metadata.deletionTimestamp}", check=False).stdout
            or kube.run("get", "pod", "anyone", check=False).returncode
        ),
    )


def test_node_affinity(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    nodes.add("a", labels={"gen": "1", "disk": "hdd"})
    nodes.add("b", labels={"gen": "2", "disk": "ssd"})

    def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
        expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
        return {"matchExpressions": [expression]}

    def must(*terms: dict[str, Any]) -> dict[str, Any]:
        return {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
            }
        }

    pods.create("in", **must(wants("disk", "In", "ssd", "nvme")))
    pods.create("not-in", **must(wants("disk", "NotIn", "ssd")))
    pods.create("gt", **must(wants("gen", "Gt", "1")))
    pods.create("either", **must(wants("none", "Exists"), wants("gen", "Lt", "2")))
    prefer = {"weight": 100, "preference": wants("disk", "In", "hdd")}
    pods.create("prefers", affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefer]}})
    pods.create("never", **must(wants("disk", "In", "tape")))
    expected = {"in": "b", "not-in": "a", "gt": "b", "either": "a", "prefers": "a"}
    assert {name: pods.node_of(name) for name in expected} == expected
    assert "node(s) didn't match Pod's node affinity/selector" in pods.why_not("never")


def test_pods_near_and_apart(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2")):
        nodes.add(name, labels={ZONE: zone})
    pods.create("first", labels={"app": "db"}, nodeSelector={HOST: nodes.names[2]})
    assert pods.node_of("first") == "c"
    pods.create("with", affinity={"podAffinity": required(near(ZONE, app="db"))})
    pods.create("apart", affinity={"podAntiAffinity": required(near(ZONE, app="db"))})
    assert pods.node_of("with") == "c"
    assert pods.node_of("apart") in ("a", "b")
    for index in range(4):
        pods.create(
            f"one-{index}", labels={"app": "one"}, affinity={"podAntiAffinity": required(near(HOST, app="one"))}
        )
    placed = [
        kube.wait(
            "three to be placed",
            lambda: (
                len(found := kube("get", "pods", "-l", "app=one", "-o", "jsonpath={.items[*].spec.nodeName}").split())
                == 3
                and found
            ),
        )
    ]
    assert len(set(placed[0])) == 3
    left = next(
        p["metadata"]["name"] for p in kube.get("pods", "-l", "app=one")["items"] if not p["spec"].get("nodeName")
    )
    assert "3 node(s) didn't match pod anti-affinity rules" in pods.why_not(left)
    pods.create("lonely", affinity={"podAffinity": required(near(HOST, app="nobody"))})
    assert "3 node(s) didn't match pod affinity rules" in pods.why_not("lonely")


def test_topology_spread(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    nodes.add("a", labels={ZONE: "z1"})
    nodes.add("b", labels={ZONE: "z2"})
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "s"}},
    }
    found = []
    for index in range(4):
        pods.create(f"s-{index}", labels={"app": "s"}, topologySpreadConstraints=[rule])
        found.append(pods.node_of(f"s-{index}"))
    assert sorted(found) == ["a", "a", "b", "b"]
    kube("cordon", nodes.names[0])
    pods.create("s-4", labels={"app": "s"}, topologySpreadConstraints=[rule])
    pods.node_of("s-4")
    pods.create("s-5", labels={"app": "s"}, topologySpreadConstraints=[rule])
    message = pods.why_not("s-5")
    assert "node(s) were unschedulable" in message
    assert "1 node(s) didn't match pod topology spread constraints" in message


def test_priority_and_preemption(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    name = kube.namespace
    for suffix, value in (("low", 10), ("high", 1000)):
        kube("create", "priorityclass", f"{name}-{suffix}", f"--value={value}")
    kube("create", "priorityclass", f"{name}-polite", "--value=1000", "--preemption-policy=Never")
    try:
        nodes.add("one", cpu="2")
        pods.create("low", cpu="2", priorityClassName=f"{name}-low")
        assert pods.node_of("low") == "one"
        pods.create("polite", cpu="2", priorityClassName=f"{name}-polite")
        assert "Insufficient cpu" in pods.why_not("polite")
        kube("delete", "pod", "polite", "--force", "--grace-period=0")
        with nodes.kubelet():
            pods.create("high", cpu="2", priorityClassName=f"{name}-high")
            assert pods.node_of("high") == "one"
        kube.gone("pod/low")
        assert kube.get("pod", "high")["spec"]["priority"] == 1000
        events = kube("events", "--for=pod/low")
        assert "Preempted" in events
        assert "Preempted by pod " in events
    finally:
        for suffix in ("low", "high", "polite"):
            kube.run("delete", "priorityclass", f"{name}-{suffix}", check=False)


def test_gates_and_foreign_schedulers(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    nodes.add("one")
    pods.create("gated", schedulingGates=[{"name": "example.com/wait"}])
    pods.create("foreign", schedulerName="somebody-else")
    pods.create("plain")
    assert pods.node_of("plain") == "one"
    kube.until("pod/gated", '{.status.conditions[?(@.type=="PodScheduled")].reason}', "SchedulingGated")
    assert "SchedulingGated" in kube("get", "pod", "gated")
    assert kube.value("pod/foreign", "{.spec.nodeName}{.status.conditions}") == ""
    kube("patch", "pod", "gated", "--type=json", "-p", '[{"op":"remove","path":"/spec/schedulingGates"}]')
    assert pods.node_of("gated") == "one"
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "foreign"},
        "target": {"kind": "Node", "name": nodes.names[0]},
    }
    kube("create", "--raw", f"/api/v1/namespaces/{kube.namespace}/pods/foreign/binding", "-f", "-", stdin=binding)
    assert pods.node_of("foreign") == "one"
    problem = kube.fails(
        "create", "--raw", f"/api/v1/namespaces/{kube.namespace}/pods/foreign/binding", "-f", "-", stdin=binding
    )
    assert "is already assigned to node" in problem


def test_cordon_drain_and_eviction(kube: Kube, nodes: Nodes) -> None:
    pods = Pods(kube, nodes)
    first = nodes.add("one")
    template = nodes.template("d")
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                  "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}}  # fmt: skip
    with nodes.kubelet():
        kube.apply(deployment)
        kube("rollout", "status", "deployment/d", "--timeout=40s")
        pods.create("bare")
        pods.node_of("bare")
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "bare", "namespace": kube.namespace},
        }
        kube("create", "--raw", f"/api/v1/namespaces/{kube.namespace}/pods/bare/eviction", "-f", "-", stdin=eviction)
        kube.gone("pod/bare")
        nodes.add("two")
        kube("cordon", first)
        assert "Ready,SchedulingDisabled" in kube("get", "node", first)
        kube("drain", first, "--timeout=40s", "--ignore-daemonsets")
        kube("rollout", "status", "deployment/d", "--timeout=40s")
        placed = set(
            kube(
                "get",
                "pods",
                "-l",
                "app=d",
                "--field-selector=status.phase=Running",
                "-o",
                "jsonpath={.items[*].spec.nodeName}",
            ).split()
        )
        assert placed == {f"{kube.namespace}-two"}
        pods.create("new", nodeSelector={HOST: first})
        assert "node(s) were unschedulable" in pods.why_not("new")
        kube("uncordon", first)
        assert pods.node_of("new") == "one"
    assert kube.value(f"node/{first}", "{.spec.unschedulable}") == ""
