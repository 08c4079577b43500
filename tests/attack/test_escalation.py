"""Nobody makes more of the rights they have: not by asking as others, not by granting, and no review says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.attack.conftest import EVERYTHING, NewPerson
from tests.attack.test_authorization import raw

from danlu.client.client import Client
from danlu.embedded.apiserver.discovery import subresources_of
from danlu.embedded.apiserver.request import Call, Query, Response, StreamResponse, User
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.cluster import Cluster
from danlu.meta.wellknown import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION

RBAC = "rbac.authorization.k8s.io"
ROLES = f"/apis/{RBAC}/v1/namespaces/a/roles"
BINDINGS = f"/apis/{RBAC}/v1/namespaces/a/rolebindings"
CLUSTER_ROLES = f"/apis/{RBAC}/v1/clusterroles"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
GRANTING = "is attempting to grant RBAC permissions not currently held"
METHODS = {
    "get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
    "delete": "DELETE", "deletecollection": "DELETE",
}  # fmt: skip


def policy(verbs: str, resources: str, groups: str = "*", names: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"apiGroups": groups.split(","), "resources": resources.split(), "verbs": verbs.split()}
    if names:
        made["resourceNames"] = names.split()
    return made


RIGHTS = {
    "everything": EVERYTHING,
    "nothing": [],
    "reads": [policy("get list watch", "pods configmaps deployments namespaces jobs foos bars")],
    "one name": [policy("*", "*", names="x")],
    "subresources": [policy("get create update patch", "*/status pods/log pods/exec serviceaccounts/token */scale")],
    "objects only": [policy("*", "pods deployments namespaces nodes services serviceaccounts foos bars")],
    "makes": [policy("create deletecollection", "*")],
}


def asked(served: ServedKind) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(method, path and query, resourceAttributes) of every verb at every scope that a path can have."""
    kind = served.kind
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    below = [("", METHODS), *((f"/{name}", verbs) for name, _, verbs in subresources_of(served))]
    for namespace in ("", "a", "b"):
        own = kind.plural == "namespaces" and kind.group == ""
        place = f"{base}/namespaces/{namespace}" if namespace and not own else base
        for subresource, verbs in below:
            for verb in verbs:
                by_name = verb not in ("list", "watch", "create", "deletecollection") or bool(subresource)
                name = (namespace if own and namespace else "x") if by_name else ""
                query = {"watch": "?watch=1&timeoutSeconds=1", "deletecollection": "?dryRun=All"}.get(verb, "")
                path = f"{place}/{kind.plural}" + (f"/{name}{subresource}" if name else "") + query
                there = name if own and name else "" if own else namespace
                yield METHODS[verb], path, attributes(verb, kind.group, kind.plural, subresource[1:], there, name)


def attributes(verb: str, group: str, resource: str, subresource: str, namespace: str, name: str) -> dict[str, str]:
    return {
        "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
        "name": name,
    }  # fmt: skip


async def refused(cluster: Cluster, user: User, method: str, target: str) -> bool:
    path, _, query = target.partition("?")
    answer = await cluster.server.handle(Call(cluster.server, method, path, Query(query), {}, b"", user))
    if isinstance(answer, StreamResponse):
        answer.release()
    return answer.status == 403


async def reviewed(cluster: Cluster, user: User, asked: dict[str, str]) -> bool:
    review = {"spec": {"resourceAttributes": asked}}
    path, headers = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"content-type": "application/json"}
    call = Call(cluster.server, "POST", path, Query(""), headers, orjson.dumps(review), user)
    answer = await cluster.server.handle(call)
    assert isinstance(answer, Response)
    assert answer.status == 201, answer.body
    return bool(orjson.loads(answer.body)["status"]["allowed"])


@pytest.mark.parametrize("rights", RIGHTS)
@pytest.mark.parametrize("wide", [False, True], ids=["in one namespace", "everywhere"])
async def test_a_review_says_what_the_server_does(
    cluster: Cluster, client: Client, new_person: NewPerson, rights: str, wide: bool
) -> None:
    person = await new_person("subject", rules=[] if wide else RIGHTS[rights])
    if wide:
        await grant_everywhere(client, person.name, RIGHTS[rights])
    for scope, plural in (("Cluster", "foos"), ("Namespaced", "bars")):
        await client.create(CUSTOM_RESOURCE_DEFINITION, definition(plural, scope))
    groups = ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated")
    user, checked = User(person.name, "", groups), 0
    for served in cluster.server.registry.all():
        for method, target, question in asked(served):
            allowed = await reviewed(cluster, user, question)
            assert await refused(cluster, user, method, target) is not allowed, (method, target, question)
            checked += 1
    assert checked > 1000


async def grant_everywhere(client: Client, account: str, rules: list[dict[str, Any]]) -> None:
    head = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "wide"}}
    await client.create(CLUSTER_ROLE, {**head, "kind": "ClusterRole", "rules": rules})
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "wide"}
    subject = {"apiGroup": RBAC, "kind": "User", "name": account}
    binding = {**head, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    await client.create(CLUSTER_ROLE_BINDING, binding)


def definition(plural: str, scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    kind = plural[:-1].capitalize()
    names = {"plural": plural, "kind": kind, "singular": plural[:-1], "listKind": f"{kind}List"}
    versions = [{**version, "subresources": {"status": {}}}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": scope, "names": names, "versions": versions},
    }


async def test_impersonation_needs_a_right_for_each_part(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    me = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    async def acting(**headers: str) -> tuple[int, Any]:
        return await mallory.request("POST", me, review, **{k.replace("_", "-"): v for k, v in headers.items()})

    own = "system:serviceaccount:a:mallory"
    assert (await acting(Impersonate_User=own))[0] == 201  # all rights in a: also to be its accounts
    for headers in (
        {"Impersonate_User": "kubernetes-admin"},
        {"Impersonate_User": "system:serviceaccount:kube-system:default"},
        {"Impersonate_User": "system:serviceaccount:a:mallory:x"},
        {"Impersonate_User": "system:serviceaccount:a:Not_A_Name"},
        {"Impersonate_User": own, "Impersonate_Group": "system:masters"},
        {"Impersonate_User": own, "Impersonate_Group": "system:serviceaccounts,system:masters"},
        {"Impersonate_User": own, "Impersonate_Uid": "0"},
        {"Impersonate_User": own, "Impersonate_Extra_Scopes": "all"},
        {"Impersonate_User": own, "Impersonate_Extra_authentication.kubernetes.io%2fpod-name": "other"},
    ):
        status, answer = await acting(**headers)
        assert status == 403, (headers, answer)
        assert "cannot impersonate resource" in answer["message"]
    for headers in ({"Impersonate_Group": "system:masters"}, {"Impersonate_Uid": "0"}, {"Impersonate_Extra_a": "b"}):
        status, answer = await acting(**headers)
        assert status == 400, (headers, answer)
        assert "without impersonating a user name" in answer["message"]


def role(name: str, *rules: dict[str, Any], kind: str = "Role") -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, kind: str, to: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": to},
        "subjects": [{"kind": "User", "name": "mallory", "apiGroup": RBAC}],
    }


async def test_nobody_grants_what_they_do_not_have_by_any_verb(client: Client, new_person: NewPerson) -> None:
    rules = [policy("get list create update patch delete", "roles rolebindings", RBAC), policy("get", "pods", "")]
    person = await new_person("granter", rules=rules)
    strong, weak = policy("*", "*"), policy("get", "pods", "")
    assert (await person.request("POST", ROLES, role("mine", weak)))[0] == 201
    assert (await person.request("POST", BINDINGS, binding("mine", "Role", "mine")))[0] == 201
    for method, path, body, kind in (
        ("POST", ROLES, role("new", strong), "application/json"),
        ("PUT", f"{ROLES}/mine", role("mine", strong), "application/json"),
        ("PATCH", f"{ROLES}/mine", {"rules": [strong]}, MERGE),
        ("PATCH", f"{ROLES}/mine", {"rules": [strong]}, "application/strategic-merge-patch+json"),
        ("PATCH", f"{ROLES}/mine", [{"op": "add", "path": "/rules/-", "value": strong}], "application/json-patch+json"),
        ("PATCH", f"{ROLES}/mine?fieldManager=m&force=true", role("mine", strong), APPLY),
        ("PATCH", f"{ROLES}/new?fieldManager=m", role("new", strong), APPLY),
        ("POST", BINDINGS, binding("new", "ClusterRole", "cluster-admin"), "application/json"),
        ("POST", BINDINGS, binding("new", "ClusterRole", "admin"), "application/json"),  # an aggregated one
        ("PUT", f"{BINDINGS}/new", binding("new", "ClusterRole", "cluster-admin"), "application/json"),
        ("PATCH", f"{BINDINGS}/new?fieldManager=m", binding("new", "ClusterRole", "cluster-admin"), APPLY),
    ):
        status, answer = await person.request(method, path, body, kind)
        assert status == 403, (method, path, kind, answer)
        assert GRANTING in answer["message"]
    status, answer = await person.request("PUT", f"{BINDINGS}/mine", binding("mine", "ClusterRole", "cluster-admin"))
    assert (status, answer["details"]["causes"][0]["message"].endswith("cannot change roleRef")) == (422, True)


async def test_aggregation_is_no_way_to_grant(client: Client, new_person: NewPerson) -> None:
    person = await new_person("gatherer", rules=[])
    rights = [policy("get list create update patch", "clusterroles", RBAC)]
    await grant_everywhere(client, person.name, rights)
    everything = {
        "clusterRoleSelectors": [{"matchExpressions": [{"key": "kubernetes.io/bootstrapping", "operator": "Exists"}]}]
    }
    gathering = {**role("gathers", kind="ClusterRole"), "aggregationRule": everything}
    assert (await person.request("POST", CLUSTER_ROLES, role("plain", kind="ClusterRole")))[0] == 201
    for method, path, body, kind in (
        ("POST", CLUSTER_ROLES, gathering, "application/json"),
        ("PATCH", f"{CLUSTER_ROLES}/plain", {"aggregationRule": everything}, MERGE),
        (
            "PATCH",
            f"{CLUSTER_ROLES}/gathers?fieldManager=m",
            {k: v for k, v in gathering.items() if k != "rules"},
            APPLY,
        ),
    ):
        status, answer = await person.request(method, path, body, kind)
        assert status == 403, (method, path, answer)
        assert "must have cluster-admin privileges to use the aggregationRule" in answer["message"]
    # A label that makes others gather a strong role grants what it allows, too.
    labels = {"metadata": {"labels": {f"{RBAC}/aggregate-to-view": "true"}}}
    status, answer = await person.request("PATCH", f"{CLUSTER_ROLES}/cluster-admin", labels, MERGE)
    assert (status, GRANTING in answer["message"]) == (403, True)


async def test_pages_are_reached_by_their_own_path_only(client: Client, new_person: NewPerson) -> None:
    person = await new_person("watcher", rules=[])
    rules = [{"nonResourceURLs": ["/metrics/", "/metrics/*", "/healthz*"], "verbs": ["*"]}]
    await grant_everywhere(client, person.name, rules)
    assert (await person.request("GET", "/metrics"))[0] == 403
    assert (await person.request("GET", "/metrics/"))[0] == 404
    assert (await person.request("GET", "/healthz"))[0] == 200
    assert (await raw(person, "GET", "/healthz/%2e%2e/metrics"))[0] == 404


async def test_made_up_names_do_not_stay_in_memory(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    for number in range(20):
        await mallory.request("GET", f"/api/v1/namespaces/a/pods/x/made-up-{number}")
        await mallory.request(f"MADEUP{number}", "/api/v1/namespaces/a/pods")
    assert b"made-up" not in cluster.server.metrics.text({}).lower()
    assert b"MADEUP" not in cluster.server.metrics.text({})
