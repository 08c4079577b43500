"""Parts of objects with a way in of their own (ephemeral containers, resize), and objects older than their schema."""

from __future__ import annotations

import pytest
from tests.embedded.apiserver.asking import (
    DEFINITIONS,
    JSON_PATCH,
    NAMESPACE,
    STRATEGIC,
    THINGS,
    Ask,
    definition,
    thing,
)

from danlu.embedded.apiserver import pagination
from danlu.embedded.cluster import Cluster

POD = f"{NAMESPACE}/pods/p"


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


@pytest.fixture
async def pod(ask: Ask) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await ask.made(f"{NAMESPACE}/serviceaccounts", account)
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    spec = {"containers": [{"name": "main", "image": "python", "resources": resources}]}
    await ask.made(f"{NAMESPACE}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})


@pytest.mark.usefixtures("pod")
async def test_a_debugging_container_is_added_and_stays_as_it_is(ask: Ask) -> None:
    added = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox"}], "activeDeadlineSeconds": 5}}
    answer = await ask("PATCH", f"{POD}/ephemeralcontainers", added, STRATEGIC)
    assert answer.status == 200
    spec = answer.body["spec"]
    assert spec["ephemeralContainers"][0]["terminationMessagePolicy"] == "File"
    assert "activeDeadlineSeconds" not in spec  # not this part's business
    changed = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "other"}]}}
    answer = await ask("PATCH", f"{POD}/ephemeralcontainers", changed, STRATEGIC)
    assert (answer.status, "may not be changed" in answer.message) == (422, True)
    direct = await ask("PATCH", POD, {"spec": {"ephemeralContainers": [{"name": "two", "image": "x"}]}}, STRATEGIC)
    assert direct.status == 422


@pytest.mark.usefixtures("pod")
async def test_resize_changes_cpu_and_memory_and_nothing_else(ask: Ask) -> None:
    wanted = {"name": "main", "image": "other", "resources": {"requests": {"memory": "32Mi"}}}
    answer = await ask("PATCH", f"{POD}/resize", {"spec": {"containers": [wanted]}}, STRATEGIC)
    assert answer.status == 200
    container = answer.body["spec"]["containers"][0]
    assert container["image"] == "python"
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "32Mi"}
    assert answer.body["metadata"]["generation"] == 2
    gone = [{"op": "remove", "path": "/spec/containers/0/resources/limits/memory"}]
    assert (await ask("PATCH", f"{POD}/resize", gone, JSON_PATCH)).status == 422
    assert (await ask("GET", f"{POD}/resize")).body["metadata"]["name"] == "p"


async def test_a_new_default_holds_for_objects_that_are_there(ask: Ask) -> None:
    await ask.made(DEFINITIONS, definition())
    await ask.made(THINGS, thing("old", spec={}))
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/default"
    await ask("PATCH", f"{DEFINITIONS}/things.example.com", [{"op": "add", "path": path, "value": 3}], JSON_PATCH)
    assert (await ask("GET", f"{THINGS}/old")).body["spec"] == {"color": "red", "replicas": 3}
    assert (await ask("GET", THINGS)).body["items"][0]["spec"]["replicas"] == 3
    remove = [{"op": "remove", "path": path}]
    await ask("PATCH", f"{DEFINITIONS}/things.example.com", remove, JSON_PATCH)
    assert (await ask("GET", f"{THINGS}/old")).body["spec"] == {"color": "red"}


async def test_a_list_that_waited_too_long_says_how_to_go_on(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        await ask.made(f"{NAMESPACE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    token = (await ask("GET", f"{NAMESPACE}/configmaps?limit=1")).body["metadata"]["continue"]
    assert (await ask("GET", f"{NAMESPACE}/configmaps?limit=1&continue={token}")).status == 200
    monkeypatch.setattr(pagination, "SNAPSHOT_SECONDS", -1.0)
    late = await ask("GET", f"{NAMESPACE}/configmaps?limit=1&continue={token}")
    assert late.status == 410
    another = late.body["metadata"]["continue"]
    page = (await ask("GET", f"{NAMESPACE}/configmaps?continue={another}")).body
    assert [one["metadata"]["name"] for one in page["items"]] == ["b", "c"]


async def test_reviews_are_no_tables(ask: Ask) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {}},
    }
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await ask("POST", path, review, accept=table)).status == 406


async def test_the_old_way_to_bind_a_pod(ask: Ask, pod: None) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    await ask.made(f"{NAMESPACE}/bindings", binding)
    assert (await ask("GET", POD)).body["spec"]["nodeName"] == "n"
    assert (await ask("POST", f"{NAMESPACE}/bindings", binding)).status == 409
