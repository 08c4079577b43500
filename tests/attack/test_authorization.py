"""Rights in one namespace are rights in that one: what is authorised is what is acted on, whatever the path."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson
import pytest
from tests.attack.conftest import NewPerson, Person
from yarl import URL

from danlu.client.client import Client
from danlu.embedded.apiserver.discovery import subresources_of
from danlu.embedded.apiserver.request import Call, Query, Response, User
from danlu.embedded.cluster import Cluster
from danlu.embedded.controllers._shared.ownership import Graph, read
from danlu.meta.wellknown import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, NAMESPACE, SECRET

RBAC = "rbac.authorization.k8s.io"
NOT_THERE = "the server could not find the requested resource"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


async def raw(person: Person, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """With the path as it stands here: clients tidy paths up before they send them."""
    sent = {"authorization": f"Bearer {person.token}", **headers}
    url = URL(person.url + path, encoded=True)
    async with person.session.request(method, url, json=body, headers=sent) as answer:
        text = await answer.text()
        kind = answer.headers.get("content-type", "")
    if kind == "application/json" and text.startswith("{") and "\n" not in text.strip():
        return answer.status, orjson.loads(text)
    return answer.status, text


def said(answer: Any) -> str:
    return str(answer.get("message", "")) if isinstance(answer, dict) else str(answer)


async def put_maps(client: Client, *names: str, namespace: str = "a") -> None:
    for name in names:
        meta = {"name": name, "namespace": namespace}
        await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


async def new_namespace(client: Client, name: str) -> None:
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def test_rights_in_one_namespace_end_there(new_person: NewPerson) -> None:
    mallory = await new_person()
    assert (await mallory.request("GET", "/api/v1/namespaces/a/secrets"))[0] == 200
    for path in ("/api/v1/namespaces/default/secrets", "/api/v1/secrets", "/api/v1/namespaces", "/api/v1/nodes"):
        assert (await mallory.request("GET", path))[0] == 403, path


async def test_another_namespace_is_not_reached_through_ones_own(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    await new_namespace(client, "b")
    before = await client.get(NAMESPACE, "b")
    inside = "/api/v1/namespaces/a/namespaces"
    relabelled = {**before, "metadata": {**before["metadata"], "labels": {"owner": "mallory"}}}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c"}}
    for method, path, body, kind in (
        ("GET", f"{inside}/b", None, ""),
        ("GET", inside, None, ""),
        ("GET", f"{inside}?watch=1", None, ""),
        ("POST", inside, made, "application/json"),
        ("PUT", f"{inside}/b", relabelled, "application/json"),
        ("PATCH", f"{inside}/b", {"metadata": {"labels": {"owner": "mallory"}}}, MERGE),
        ("PATCH", f"{inside}/c?fieldManager=m", made, APPLY),
        ("PUT", f"{inside}/b/finalize", relabelled, "application/json"),
        ("PUT", f"{inside}/b/status", relabelled, "application/json"),
        ("DELETE", f"{inside}/b", None, ""),
        ("DELETE", inside, None, ""),
        ("GET", f"{inside}/a", None, ""),  # not even the own one: each object has one path
    ):
        status, answer = await mallory.request(method, path, body, kind or "application/json")
        assert (status, said(answer)) == (404, NOT_THERE), (method, path)
    assert await client.get(NAMESPACE, "b") == before
    assert "c" not in [found["metadata"]["name"] for found in (await client.list(NAMESPACE)).items]
    status, answer = await mallory.request("GET", "/api/v1/namespaces/b/namespaces/a")
    scope = 'cannot get resource "namespaces" in API group "" in the namespace "b"'
    assert status == 403
    assert said(answer) == f'namespaces "a" is forbidden: User "{mallory.name}" {scope}'


async def test_no_cluster_scoped_kind_is_reached_through_a_namespace(
    cluster: Cluster, client: Client, new_person: NewPerson
) -> None:
    mallory = await new_person()
    await client.create(CUSTOM_RESOURCE_DEFINITION, definition("Cluster"))
    kinds = [served for served in cluster.server.registry.all() if not served.kind.namespaced]
    assert {"nodes", "clusterroles", "persistentvolumes", "foos"} <= {served.kind.plural for served in kinds}
    for served in kinds:
        base = f"/apis/{served.kind.group}" if served.kind.group else "/api"
        path = f"{base}/{served.kind.version}/namespaces/a/{served.kind.plural}"
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for below in ("", "/x", *(f"/x/{name}" for name, _, _ in subresources_of(served))):
                status, answer = await mallory.request(method, path + below, {})
                words = "404 page not found\n" if served.custom else NOT_THERE
                assert (status, said(answer)) == (404, words), (method, path + below)


def definition(scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": names,
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


A = "/api/v1/namespaces/a"
ODD_PATHS = [
    # What kube-apiserver 1.36.3 answers to somebody with all rights in namespace a and none elsewhere.
    (f"{A}/status", 200, ""),
    (f"{A}/status/x", 404, NOT_THERE),
    (f"{A}/configmaps//", 200, ""),
    (f"{A}//configmaps", 404, NOT_THERE),
    ("/api/v1//namespaces/a/configmaps", 403, 'cannot get resource "/a" in API group "" at the cluster scope'),
    ("//api/v1/namespaces/a/configmaps", 404, "404 page not found\n"),
    ("/api/v1/namespaces//configmaps", 403, 'cannot list resource "configmaps" in API group "" at the cluster scope'),
    (f"{A}/configmaps/x/", 200, ""),
    (f"{A}/configmaps/x/foo", 404, NOT_THERE),
    (f"{A}/pods/x/log/foo", 404, NOT_THERE),
    (f"{A}/pods/x/status/foo", 404, NOT_THERE),
    (f"{A}/configmaps/%78", 200, ""),
    ("/api/v1/namespaces/a%2fconfigmaps%2fx", 200, ""),
    (f"{A}/configmaps/..%2f..%2fb%2fconfigmaps%2fx", 404, NOT_THERE),
    (f"{A}/../b/configmaps/x", 404, NOT_THERE),
    (f"{A}/./configmaps/x", 404, NOT_THERE),
    (f"{A}/%2e%2e/b/configmaps/x", 404, NOT_THERE),
    (f"{A}/configmaps/%2e%2e", 400, "Name parameter invalid: \"..\": may not be '..'"),
    (f"{A}/configmaps/%252e%252e", 400, "Name parameter invalid: \"%2e%2e\": may not contain '%'"),
    (f"{A}/configmaps/x%00", 404, 'configmaps "x\x00" not found'),
    ("/api/v1/namespaces/*/configmaps", 403, 'cannot list resource "configmaps" in API group "" in the namespace "*"'),
    ("/api/v1/*/configmaps", 403, 'cannot get resource "*" in API group "" at the cluster scope'),
    (f"{A}/*", 404, NOT_THERE),
    (f"{A}/*/x", 404, NOT_THERE),
    ("/apis//v1/namespaces/a/configmaps", 404, "404 page not found\n"),
    ("/apis/v1/namespaces/a/configmaps", 403, 'cannot get resource "a" in API group "v1" at the cluster scope'),
    ("/apis/*/v1/namespaces/a/configmaps", 404, "404 page not found\n"),
    ("/api/v1/watch/namespaces/b/configmaps", 403, 'cannot watch resource "configmaps" in API group "" in the name'),
    ("/api/v1/watch/configmaps", 403, 'cannot watch resource "configmaps" in API group "" at the cluster scope'),
    ("/api/v1/watch/namespaces/a/configmaps?timeoutSeconds=1", 200, ""),
    ("/api/v1/watch/namespaces/a/pods/x/log", 404, NOT_THERE),
    ("/api/v1/watch/namespaces/a/services/x/proxy/", 404, NOT_THERE),
    ("/api/v1/proxy/namespaces/a/pods/x", 404, NOT_THERE),
    (f"{A}/configmaps/x?watch=true", 200, ""),
    ("/api/v1/namespaces/b/configmaps/x?watch=true", 403, 'cannot get resource "configmaps"'),
    ("/api/v1/namespaces/b/configmaps?watch=f", 403, 'cannot watch resource "configmaps"'),
    ("/api/v1/namespaces/b/configmaps?watch=", 403, 'cannot watch resource "configmaps"'),
    ("/api/v1/namespaces/b/configmaps?watch=fAlSe", 403, 'cannot list resource "configmaps"'),
    ("/api/v1/namespaces/b/configmaps?watch=0&watch=1", 403, 'cannot list resource "configmaps"'),
    ("/metrics/", 403, 'cannot get path "/metrics/"'),
    ("/healthz/../metrics", 403, 'cannot get path "/healthz/../metrics"'),
    ("/%6detrics", 403, 'cannot get path "/metrics"'),
    ("/api/../metrics", 403, 'cannot list resource "metrics" in API group "" at the cluster scope'),
    ("/apis/..%2fmetrics", 404, "404 page not found\n"),
    ("/version/", 200, ""),
    ("/api/v1/", 200, ""),
]


@pytest.mark.parametrize(("path", "status", "words"), ODD_PATHS, ids=[path for path, _, _ in ODD_PATHS])
async def test_odd_paths(client: Client, new_person: NewPerson, path: str, status: int, words: str) -> None:
    mallory = await new_person()
    await put_maps(client, "x")
    found, answer = await raw(mallory, "GET", path)
    assert found == status, answer
    assert words in said(answer)
    assert '"namespace": "b"' not in str(answer)


async def test_who_may_see_one_name_may_list_and_watch_it_alone(client: Client, new_person: NewPerson) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["x"], "verbs": ["*"]}]
    person = await new_person("reader", rules=rules)
    await put_maps(client, "x", "y")
    maps = f"{A}/configmaps"
    for selector in ("metadata.name=x", "metadata.name==x"):
        status, answer = await person.request("GET", f"{maps}?fieldSelector={selector}")
        assert [found["metadata"]["name"] for found in answer["items"]] == ["x"], answer
    status, answer = await raw(person, "GET", f"{maps}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=x")
    assert status == 200
    assert (answer["type"], answer["object"]["metadata"]["name"]) == ("ADDED", "x"), "and of nothing else"
    status, answer = await person.request("GET", f"{maps}?fieldSelector=metadata.name=x,metadata.name=y")
    assert (status, answer["items"]) == (200, [])
    for query in (
        "",
        "?fieldSelector=metadata.name=y",
        "?fieldSelector=metadata.name!=x",
        "?fieldSelector=metadata.name=y&fieldSelector=metadata.name=x",
        "?fieldSelector=metadata.namespace=a",
        "?watch=1",
        "?watch=1&fieldSelector=metadata.name=y",
    ):
        assert (await raw(person, "GET", maps + query))[0] == 403, query
    assert (await person.request("GET", "/api/v1/configmaps?fieldSelector=metadata.name=x"))[0] == 403
    # As Kubernetes: a collection is never deleted by one name's right.
    assert (await person.request("DELETE", f"{maps}?fieldSelector=metadata.name=x"))[0] == 403


async def test_each_subresource_needs_a_right_of_its_own(cluster: Cluster, new_person: NewPerson) -> None:
    plain = sorted({served.kind.plural for served in cluster.server.registry.all()})
    person = await new_person("plain", rules=[{"apiGroups": ["*"], "resources": plain, "verbs": ["*"]}])
    methods = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
    seen = set()
    for served in cluster.server.registry.all():
        kind = served.kind
        base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        place = f"{base}/namespaces/a/{kind.plural}/x" if kind.namespaced else f"{base}/{kind.plural}/a"
        for name, _, verbs in subresources_of(served):
            seen.add(f"{kind.plural}/{name}")
            for verb in verbs:
                status, answer = await person.request(methods[verb], f"{place}/{name}", {})
                assert status == 403, (kind.plural, name, verb, answer)
                assert f'cannot {verb} resource "{kind.plural}/{name}"' in said(answer)
    on_pods = {"status", "ephemeralcontainers", "resize", "eviction", "binding", "log", "exec", "attach", "portforward"}
    assert {name.partition("/")[2] for name in seen} >= {*on_pods, "proxy", "scale", "token", "approval", "finalize"}


@pytest.mark.parametrize("subresource", ["exec?command=id&stdout=1", "attach?stdout=1", "portforward?ports=80"])
async def test_a_websocket_is_no_way_around(new_person: NewPerson, subresource: str) -> None:
    name = subresource.partition("?")[0]
    reads = [{"apiGroups": [""], "resources": ["pods", f"pods/{name}"], "verbs": ["get", "list", "watch"]}]
    reader, writer = await new_person("reader", rules=reads), await new_person("writer")
    assert await handshake(reader, f"{A}/pods/x/{subresource}") == 403
    assert await handshake(reader, f"/api/v1/namespaces/default/pods/x/{subresource}") == 403
    assert await handshake(writer, f"/api/v1/namespaces/default/pods/x/{subresource}") == 403
    assert await handshake(writer, f"/api/v1/pods/x/{subresource}") == 403
    assert await handshake(writer, f"{A}/pods/x/{subresource}") == 404  # may, but there is no such pod
    assert await handshake(writer, f"{A}/nodes/x/proxy/") == 404


async def handshake(person: Person, path: str) -> int:
    try:
        url = URL(person.url + path, encoded=True)
        async with person.session.ws_connect(url, headers={"authorization": f"Bearer {person.token}"}):
            return 101
    except aiohttp.WSServerHandshakeError as error:
        return error.status


async def test_a_body_does_not_move_a_request(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    await put_maps(client, "x")
    await new_namespace(client, "b")
    words = "the namespace of the provided object does not match the namespace sent on the request"
    there: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "b"}}
    for method, path, kind in (
        ("POST", f"{A}/configmaps", "application/json"),
        ("PUT", f"{A}/configmaps/x", "application/json"),
        ("PATCH", f"{A}/configmaps/x", MERGE),
        ("PATCH", f"{A}/configmaps/new?fieldManager=m", APPLY),
    ):
        body = {**there, "metadata": {**there["metadata"], "name": "new"}} if "new" in path else there
        status, answer = await mallory.request(method, path, body, kind)
        assert (status, said(answer)) == (400, words), (method, path)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}}
    status, answer = await mallory.request("PUT", f"{A}/configmaps/x", other)
    assert (status, said(answer)) == (400, "the name of the object (y) does not match the name on the URL (x)")
    assert (await client.list(CONFIG_MAP, "b")).items == []


async def test_put_and_apply_create_only_with_the_right_to(client: Client, new_person: NewPerson) -> None:
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "update", "patch"]}]
    person = await new_person("changer", rules=rules)

    def words(resource: str, group: str = "", name: str = "new") -> str:
        shown = f"{resource}.{group}" if group else resource
        cannot = f'cannot create resource "{resource}" in API group "{group}" in the namespace "a"'
        return f'{shown} "{name}" is forbidden: User "{person.name}" {cannot}'

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new"}}
    for path in (f"{A}/secrets/new?fieldManager=m", f"{A}/secrets/new?fieldManager=m&dryRun=All"):
        status, answer = await person.request("PATCH", path, secret, APPLY)
        assert (status, said(answer)) == (403, words("secrets"))
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "new"}, "spec": {}}
    leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases/new"
    status, answer = await person.request("PUT", leases, lease)
    assert (status, said(answer)) == (403, words("leases", "coordination.k8s.io"))
    for kind in (MERGE, "application/strategic-merge-patch+json", "application/json-patch+json"):
        body: Any = [] if "json-patch" in kind else secret
        assert (await person.request("PATCH", f"{A}/secrets/new", body, kind))[0] == 404
    assert (await client.list(SECRET, "a")).items == []


async def test_rights_in_a_namespace_do_not_make_it_again(
    cluster: Cluster, client: Client, new_person: NewPerson
) -> None:
    mallory = await new_person()
    await client.delete(NAMESPACE, "a")
    stored = await client.get(NAMESPACE, "a")
    emptied, kind = orjson.dumps({**stored, "spec": {}}), {"content-type": "application/json"}
    await client.transport.request("PUT", f"{A}/finalize", [], kind, emptied)
    # Her token went with its namespace. Roles and bindings stay until a controller has swept them away.
    body = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    query, headers = Query("fieldManager=m"), {"content-type": APPLY}
    answer = await cluster.server.handle(Call(cluster.server, "PATCH", A, query, headers, body, User(mallory.name)))
    assert isinstance(answer, Response)
    cannot = 'cannot create resource "namespaces" in API group "" at the cluster scope'
    assert orjson.loads(answer.body)["message"] == f'namespaces "a" is forbidden: User "{mallory.name}" {cannot}'


async def test_an_apply_to_a_subresource_creates_nothing(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "new"}, "status": {}}
    for subresource in ("status", "scale"):
        path = f"/apis/apps/v1/namespaces/a/deployments/new/{subresource}?fieldManager=m"
        status, answer = await mallory.request("PATCH", path, deployment, APPLY)
        assert (status, said(answer)) == (404, 'deployments.apps "new" not found')
    assert (await client.list(DEPLOYMENT, "a")).items == []


async def test_a_claim_from_another_namespace_holds_nothing_up() -> None:
    graph = Graph()

    def entry(uid: str, namespace: str, owner: str = "") -> Any:
        owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner, "blockOwnerDeletion": True}]
        meta = {"name": uid, "namespace": namespace, "uid": uid, "ownerReferences": owners if owner else []}
        return read(CONFIG_MAP, {"metadata": {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}})

    for made in (entry("owner", "b"), entry("child", "b", "owner"), entry("claim", "a", "owner")):
        graph.put(made)
    assert [blocking.uid for blocking in graph.blocking("owner")] == ["child"]
