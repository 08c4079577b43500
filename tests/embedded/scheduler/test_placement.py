"""Filters, scores and the words of a refusal."""

from __future__ import annotations

from collections import Counter
from typing import Any

from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.meta.kind import Object

from .worlds import World, node, pod

GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"


def affinity(side: str, labels: dict[str, str], topology: str = HOST) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology}
    return {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_no_nodes() -> None:
    assert World().place(pod("a")) == "no nodes available to schedule pods"


def test_a_resource_that_no_node_has() -> None:
    world = World(*(node(f"n{i}") for i in range(5)))
    assert world.refused(pod("a", requests={GPU: "1"})) == (
        "0/5 nodes are available: 5 Insufficient nvidia.com/gpu. "
        "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    )


def test_a_resource_that_is_taken() -> None:
    world = World(*(node(f"n{i}", extended={GPU: "1"}) for i in range(5)))
    for i in range(5):
        world.put(pod(f"p{i}", requests={GPU: "1"}), f"n{i}")
    assert world.refused(pod("a", requests={GPU: "1"})) == (
        "0/5 nodes are available: 5 Insufficient nvidia.com/gpu. "
        "preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."
    )


def test_reasons_are_counted_and_sorted() -> None:
    world = World(
        node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
        node("b", unschedulable=True),
        node("c", cpu="1", memory="1Gi"),
        node("d", labels={"disk": "hdd"}),
    )
    asked = pod("p", requests={"cpu": "2", "memory": "2Gi"}, affinity={})
    asked["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]
            }
        }
    }
    assert world.place(asked) == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable."
    )


def test_tolerations_and_node_selector() -> None:
    world = World(node("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), node("b", labels={"x": "1"}))
    assert world.place(pod("p", nodeSelector={"x": "1"})) == "b"
    tolerant = pod("q", tolerations=[{"key": "k", "operator": "Equal", "value": "v"}], nodeSelector={HOST: "a"})
    assert world.place(tolerant) == "a"


def test_a_named_node_as_daemonsets_do() -> None:
    world = World(node("a"), node("b"), node("c", unschedulable=True))

    def on(name: str) -> Object:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return pod(f"d-{name}", affinity={"nodeAffinity": required})

    assert world.place(on("b")) == "b"
    assert world.place(on("c")) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_init_containers_and_sidecars() -> None:
    spec: dict[str, Any] = {
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
            {"name": "init", "resources": {"requests": {"cpu": "3"}}},
        ],
        "overhead": {"cpu": "100m"},
    }
    assert PodInfo(pod("p", requests={"cpu": "1"}, **spec)).request["cpu"] == 3600


def test_too_many_pods() -> None:
    world = World(node("a", pods="1"))
    assert world.place(pod("p")) == "a"
    assert world.place(pod("q")) == "0/1 nodes are available: 1 Too many pods."


def test_host_ports() -> None:
    world = World(node("a"))
    web: dict[str, Any] = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    assert world.place(pod("p", **web)) == "a"
    assert world.place(pod("q", **web)) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )


def test_anti_affinity_holds_both_ways() -> None:
    world = World(node("a"), node("b"))
    shy = affinity("podAntiAffinity", {"app": "web"})
    first = world.place(pod("p", labels={"app": "db"}, affinity=shy))
    assert world.place(pod("q", labels={"app": "web"})) != first
    assert world.place(pod("r", labels={"app": "db"}, affinity=shy)) == first
    world.place(pod("s", labels={"app": "other"}, nodeSelector={HOST: first}))
    lonely = affinity("podAntiAffinity", {"app": "db"})
    lonely["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].append(
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    )
    assert world.place(pod("t", labels={"app": "web"}, affinity=lonely)) == (
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
    )
    world.put(pod("u", labels={"app": "x"}, affinity=shy), "b" if first == "a" else "a")
    assert world.place(pod("v", labels={"app": "web"})) == (
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    )


def test_affinity_may_start_with_oneself() -> None:
    world = World(node("a"), node("b"))
    near = affinity("podAffinity", {"app": "ring"})
    first = world.place(pod("p", labels={"app": "ring"}, affinity=near))
    assert all(world.place(pod(f"q{i}", labels={"app": "ring"}, affinity=near)) == first for i in range(3))
    stranger = affinity("podAffinity", {"app": "nobody"})
    assert world.place(pod("r", affinity=stranger)) == (
        "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
    )


def test_topology_spread() -> None:
    world = World(*(node(f"n{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)), node("bare"))
    rule = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    placed = [world.place(pod(f"p{i}", labels={"app": "x"}, topologySpreadConstraints=[rule])) for i in range(10)]
    zones = Counter(world.cache.real[name].labels["zone"] for name in placed)
    assert zones == {"a": 5, "b": 5}
    for name in ("n1", "n3"):
        world.cache.set_node(node(name, labels={"zone": "b"}, unschedulable=True))
    world.place(pod("more", labels={"app": "x"}, topologySpreadConstraints=[rule]))
    assert world.place(pod("q", labels={"app": "x"}, topologySpreadConstraints=[rule])) == (
        "0/5 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), "
        "2 node(s) didn't match pod topology spread constraints, 2 node(s) were unschedulable."
    )
    few = {**rule, "minDomains": 5}
    assert "2 node(s) didn't match pod topology spread constraints," in world.place(
        pod("r", labels={"app": "x"}, topologySpreadConstraints=[few])
    )


def test_siblings_keep_apart_and_load_is_even() -> None:
    world = World(*(node(f"n{i}") for i in range(4)))
    owner = [{"kind": "ReplicaSet", "uid": "rs", "name": "rs", "controller": True}]
    names = []
    for i in range(8):
        made = pod(f"p{i}", requests={"cpu": "100m"})
        made["metadata"]["ownerReferences"] = owner
        names.append(world.place(made))
    assert set(Counter(names).values()) == {2}


def test_preferences() -> None:
    world = World(
        node("a"), node("b", labels={"fast": "yes"}), node("c", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    )
    term = {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": term}]}}
    assert world.place(pod("p", affinity=wish)) == "b"
    assert world.place(pod("q", nodeSelector={}, requests={"cpu": "3"})) == "a"


def test_missing_claim() -> None:
    world = World(node("a"))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    assert world.refused(pod("p", volumes=volumes)) == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found. '
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_sums_return_to_zero() -> None:
    world = World(node("a"))
    for i in range(5):
        world.place(pod(f"p{i}", requests={"cpu": "100m", "memory": "1Mi"}))
    for uid in list(world.cache.pods):
        world.cache.remove_pod(uid)
    info = world.cache.real["a"]
    assert (set(info.requested.values()), info.scored_cpu, info.scored_memory) == ({0}, 0, 0)
