"""PodDisruptionBudgets: what they count, and whom they let be evicted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.conftest import Kube
from tests.conformance.standin import Nodes


def budget(name: str = "few", selector: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    chosen = {"matchLabels": {"app": "web"}} if selector is None else selector
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": chosen, **spec},
    }


def evict(kube: Kube, pod: str) -> str:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{kube.namespace}/pods/{pod}/eviction"
    done = kube.run("create", "--raw", path, "-f", "-", stdin=body, check=False)
    return done.stdout + done.stderr


def web(kube: Kube, nodes: Nodes, replicas: int = 3) -> list[str]:
    """A deployment whose pods run and are ready."""
    nodes.add("one")
    template = nodes.template("web")
    selector = {"matchLabels": template["metadata"]["labels"]}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    kube.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})

    def placed() -> list[str]:
        found = kube.get("pods", "-l", "app=web")["items"]
        ready = [p["metadata"]["name"] for p in found if p["spec"].get("nodeName")]
        return ready if len(ready) == replicas else []

    names: list[str] = kube.wait("the pods", placed)
    for name in names:
        nodes.run(name)
    return names


def status(kube: Kube, name: str = "few") -> dict[str, Any]:
    found: dict[str, Any] = kube.get("pdb", name).get("status") or {}
    return found


def counted(kube: Kube, name: str = "few") -> tuple[int, ...]:
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    found = status(kube, name)
    return tuple(found.get(field, -1) for field in fields)


def until_counted(kube: Kube, *wanted: int) -> None:
    kube.wait(f"{wanted}", lambda: counted(kube) == wanted)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2, 3, 1)),
        ({"minAvailable": "50%"}, (3, 2, 3, 1)),
        ({"maxUnavailable": 1}, (3, 2, 3, 1)),
        ({"maxUnavailable": "34%"}, (3, 1, 3, 2)),
        ({"maxUnavailable": "100%"}, (3, 0, 3, 3)),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_is_counted(kube: Kube, nodes: Nodes, spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    web(kube, nodes)
    kube.apply(budget(**spec))
    until_counted(kube, *expected)
    found = status(kube)
    assert found["observedGeneration"] == 1
    (condition,) = found["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )
    assert condition["message"] == ""
    limits = [str(spec.get("minAvailable", "N/A")), str(spec.get("maxUnavailable", "N/A")), str(expected[-1])]
    assert kube("get", "pdb", "few", "--no-headers").split()[:4] == ["few", *limits]


def test_nobody_goes_beyond_what_is_allowed(kube: Kube, nodes: Nodes) -> None:
    first, second, _ = web(kube, nodes)
    kube.apply(budget(minAvailable=2))
    until_counted(kube, 3, 2, 3, 1)
    assert '"status":"Success"' in evict(kube, first)
    kube.wait("it to be told why", lambda: _told(kube, first))
    refused = evict(kube, second)
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    assert not kube.get("pod", second)["metadata"].get("deletionTimestamp")
    kube("patch", "pdb", "few", "-p", '{"spec": {"minAvailable": 1}}')
    kube.wait("leave", lambda: '"status":"Success"' in evict(kube, second))


def _told(kube: Kube, pod: str) -> bool:
    """Gone, or marked: that depends on how quick its node is."""
    if not kube("get", "pod", pod, "--ignore-not-found"):
        return True
    found = kube.get("pod", pod)
    held = {c["type"]: c["reason"] for c in found["status"].get("conditions", [])}
    return held.get("DisruptionTarget") == "EvictionByEvictionAPI" and bool(found["metadata"]["deletionTimestamp"])


def test_a_pod_that_is_not_ready_costs_nothing(kube: Kube, nodes: Nodes) -> None:
    names = web(kube, nodes, 2)
    kube.apply(budget(minAvailable=1), budget("always", {"matchLabels": {"no": "body"}}, minAvailable=1))
    until_counted(kube, 2, 1, 2, 1)
    broken = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    kube("patch", "pod", names[0], "--subresource=status", "-p", str(broken).replace("'", '"'))
    until_counted(kube, 2, 1, 1, 0)
    assert "Cannot evict pod" in evict(kube, names[1])
    assert '"status":"Success"' in evict(kube, names[0])


def test_several_budgets_for_one_pod(kube: Kube, nodes: Nodes) -> None:
    (pod,) = web(kube, nodes, 1)
    kube.apply(budget("a", minAvailable=0), budget("b", {}, minAvailable=0))
    kube.wait("both to be counted", lambda: all(status(kube, name).get("observedGeneration") for name in "ab"))
    assert "This pod has more than one PodDisruptionBudget" in evict(kube, pod)


def test_what_cannot_be_counted_lets_nobody_go(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    template = nodes.template("web")
    pod = {**template["spec"], "restartPolicy": "Never"}
    job = {"template": {**template, "spec": pod}}
    kube.apply(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": job}, budget(maxUnavailable=1)
    )
    kube.wait("its word", lambda: [c["reason"] for c in status(kube).get("conditions", [])] == ["SyncFailed"])
    (condition,) = status(kube)["conditions"]
    assert condition["message"] == "jobs.batch does not implement the scale subresource"
    assert status(kube)["disruptionsAllowed"] == 0


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "minAvailable and maxUnavailable cannot be both set"),
        ({"minAvailable": -1}, "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
        ({"minAvailable": "101%"}, 'spec.minAvailable: Invalid value: "101%": must not be greater than 100%'),
        ({"maxUnavailable": "many"}, 'spec.maxUnavailable: Invalid value: "many": a valid percent string must be'),
        ({"unhealthyPodEvictionPolicy": "Never"},
         'Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"'),
    ],
)  # fmt: skip
def test_what_is_refused(kube: Kube, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=budget(**spec))


def test_a_budget_by_hand(kube: Kube) -> None:
    kube("create", "poddisruptionbudget", "mine", "--selector=app=nobody", "--min-available=50%")
    kube.wait("it to be seen", lambda: counted(kube, "mine") == (0, 0, 0, 0) and status(kube, "mine").get("conditions"))
    assert "ALLOWED DISRUPTIONS" in kube("get", "pdb")
    kube.wait("its word", lambda: "No matching pods found" in kube("events", "--for=pdb/mine"))
