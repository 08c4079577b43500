from __future__ import annotations

from typing import Any

import pytest

from danlu.embedded.apiserver.admission.rbac_escalation import RbacEscalation
from danlu.embedded.apiserver.auth import defaultroles
from danlu.embedded.apiserver.auth.forbidden import AccessAttributes, access_forbidden
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.embedded.apiserver.request import User
from danlu.errors import Forbidden, NotFound
from danlu.meta import wellknown as k
from danlu.meta.kind import Kind, Object

RBAC = "rbac.authorization.k8s.io"
ALICE = User("alice", "", ("dev", "system:authenticated"))
KINDS = {kind.kind: kind for kind in (k.ROLE, k.ROLE_BINDING, k.CLUSTER_ROLE, k.CLUSTER_ROLE_BINDING)}


def rule(groups: str, resources: str, verbs: str, names: str = "") -> Object:
    made: Object = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    if names:
        made["resourceNames"] = names.split(",")
    return made


def bind(
    world: Any, name: str, role: str, subject: Object, namespace: str = "", role_kind: str = "ClusterRole"
) -> Object:
    kind = k.ROLE_BINDING if namespace else k.CLUSTER_ROLE_BINDING
    reference = {"apiGroup": RBAC, "kind": role_kind, "name": role}
    made: Object = world.put(kind, name, namespace, roleRef=reference, subjects=[subject])
    return made


def user(name: str = "alice") -> Object:
    return {"kind": "User", "name": name, "apiGroup": RBAC}


def allowed(
    authorizer: Authorizer, verb: str, resource: str, namespace: str = "", name: str = "", group: str = ""
) -> bool:
    plural, _, subresource = resource.partition("/")
    return authorizer.authorize(ALICE, verb, group, plural, subresource, namespace, name).allowed


async def test_roles_in_their_namespace(world: Any) -> None:
    authorizer = Authorizer(world.store)
    assert not allowed(authorizer, "get", "pods", "lab")
    world.put(k.ROLE, "reader", "lab", rules=[rule("", "pods,pods/log", "get,list")])
    binding = bind(world, "reads", "reader", user(), "lab", "Role")
    assert allowed(authorizer, "get", "pods", "lab")
    assert allowed(authorizer, "get", "pods/log", "lab")
    assert not allowed(authorizer, "get", "pods/exec", "lab")
    assert not allowed(authorizer, "delete", "pods", "lab")
    assert not allowed(authorizer, "get", "pods", "other")
    assert not allowed(authorizer, "list", "pods")
    decision = authorizer.authorize(ALICE, "list", "", "pods", "", "lab", "")
    assert decision.reason == 'RBAC: allowed by RoleBinding "reads/lab" of Role "reader" to User "alice"'
    world.delete(k.ROLE_BINDING, binding)
    assert not allowed(authorizer, "get", "pods", "lab")


async def test_wildcards_names_groups_and_accounts(world: Any) -> None:
    authorizer = Authorizer(world.store)
    world.put(
        k.CLUSTER_ROLE, "mixed",
        rules=[
            rule("", "configmaps", "get,update", "settings"), rule("apps", "*", "get"), rule("*", "*/scale", "update"),
            {"nonResourceURLs": ["/metrics", "/healthz/*"], "verbs": ["get"]},
        ],
    )  # fmt: skip
    bind(world, "b", "mixed", {"kind": "Group", "name": "dev", "apiGroup": RBAC})
    bind(world, "a", "mixed", {"kind": "ServiceAccount", "name": "robot", "namespace": "lab"})
    assert allowed(authorizer, "get", "configmaps", "x", "settings")
    assert not allowed(authorizer, "get", "configmaps", "x", "other")
    assert not allowed(authorizer, "list", "configmaps", "x")
    assert allowed(authorizer, "get", "deployments/status", "x", "d", "apps")
    assert allowed(authorizer, "update", "things/scale", "x", "d", "example.com")
    assert not allowed(authorizer, "update", "things/status", "x", "d", "example.com")
    assert authorizer.authorize(ALICE, "get", "", "", "", "", "", "/healthz/etcd").allowed
    assert authorizer.authorize(ALICE, "get", "", "", "", "", "", "/metrics").allowed
    assert not authorizer.authorize(ALICE, "get", "", "", "", "", "", "/healthzz").allowed
    robot = User("system:serviceaccount:lab:robot")
    decision = authorizer.authorize(robot, "get", "apps", "deployments", "", "lab", "")
    assert decision.reason.endswith('to ServiceAccount "robot/lab"')
    assert authorizer.authorize(User("root", "", ("system:masters",)), "any", "x", "y", "", "", "").allowed


async def test_a_binding_to_nothing_says_so(world: Any) -> None:
    authorizer = Authorizer(world.store)
    bind(world, "b", "gone", user())
    decision = authorizer.authorize(ALICE, "get", "", "pods", "", "lab", "")
    assert not decision.allowed
    assert decision.reason == f'RBAC: clusterrole.{RBAC} "gone" not found'


async def test_aggregation_counts_at_once(world: Any) -> None:
    authorizer = Authorizer(world.store)
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "top"}}]}
    world.put(k.CLUSTER_ROLE, "top", aggregationRule=selector, rules=[], metadata={"labels": {"to": "top"}})
    bind(world, "b", "top", user())
    assert not allowed(authorizer, "get", "jobs", "lab", "", "batch")
    world.put(k.CLUSTER_ROLE, "part", rules=[rule("batch", "jobs", "get")], metadata={"labels": {"to": "top"}})
    assert allowed(authorizer, "get", "jobs", "lab", "", "batch")


async def install(world: Any) -> None:
    for obj in defaultroles.objects():
        meta = dict(obj["metadata"])
        kind: Kind = KINDS[obj["kind"]]
        fields = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        world.put(kind, meta.pop("name"), meta.pop("namespace", ""), metadata=meta, **fields)


async def test_the_roles_of_a_new_cluster(world: Any) -> None:
    await install(world)
    authorizer = Authorizer(world.store)
    nobody = User("system:anonymous", "", ("system:unauthenticated",))
    assert authorizer.authorize(nobody, "get", "", "", "", "", "", "/version").allowed
    assert not authorizer.authorize(nobody, "get", "", "", "", "", "", "/api").allowed
    assert authorizer.authorize(ALICE, "get", "", "", "", "", "", "/apis/apps/v1").allowed
    assert authorizer.authorize(ALICE, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", "").allowed
    for role, verb, resource, group, expected in (
        ("view", "get", "pods/log", "", True),
        ("view", "get", "secrets", "", False),
        ("view", "create", "pods", "", False),
        ("edit", "get", "secrets", "", True),
        ("edit", "create", "pods/exec", "", True),
        ("edit", "delete", "jobs", "batch", True),
        ("edit", "create", "rolebindings", RBAC, False),
        ("admin", "create", "rolebindings", RBAC, True),
        ("admin", "get", "pods", "", True),
        ("admin", "update", "resourcequotas", "", False),
        ("cluster-admin", "any", "thing", "example.com", True),
    ):
        binding = bind(world, "test", role, user(), "lab")
        assert allowed(authorizer, verb, resource, "lab", "x", group) is expected, (role, verb, resource)
        world.delete(k.ROLE_BINDING, binding)


def test_aggregated_bootstrap_roles_come_filled() -> None:
    roles = {obj["metadata"]["name"]: obj for obj in defaultroles.objects() if obj["kind"] == "ClusterRole"}
    assert len(roles["admin"]["rules"]) > len(roles["edit"]["rules"]) > len(roles["view"]["rules"]) > 5
    assert roles["system:discovery"]["rules"][0]["nonResourceURLs"][0] == "/api"
    assert roles["system:kube-scheduler"]["rules"][0]["apiGroups"] == ["", "events.k8s.io"]


def test_the_words_of_a_refusal() -> None:
    error = access_forbidden("x", AccessAttributes("list", "", "pods", "", "default", ""))
    assert error.message == (
        'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    assert error.details == {"kind": "pods"}
    error = access_forbidden("x", AccessAttributes("get", "apps", "deployments", "scale", "", "d"), "RBAC: why")
    assert error.message == (
        'deployments.apps "d" is forbidden: User "x" cannot get resource "deployments/scale" in API group "apps" '
        "at the cluster scope: RBAC: why"
    )
    assert error.details == {"name": "d", "group": "apps", "kind": "deployments"}
    error = access_forbidden("x<y>", AccessAttributes("get", "", "", "", "", "", "/metrics"))
    assert error.message == 'forbidden: User "x&lt;y&gt;" cannot get path "/metrics"'


async def test_nobody_grants_what_they_do_not_have(world: Any) -> None:
    authorizer = Authorizer(world.store)
    plugin = RbacEscalation(authorizer)
    world.put(k.ROLE, "own", "lab", rules=[rule("", "pods", "get,list"), rule("", "secrets", "get", "mine")])
    bind(world, "own", "own", user(), "lab", "Role")

    def role(*rules: Object) -> Object:
        return {"metadata": {"name": "new", "namespace": "lab"}, "rules": list(rules)}

    plugin.validate(world.write("CREATE", k.ROLE, role(rule("", "pods", "get"), rule("", "secrets", "get", "mine"))))
    with pytest.raises(Forbidden) as refused:
        plugin.validate(world.write("CREATE", k.ROLE, role(rule("", "pods,services", "delete,get"))))
    assert refused.value.message == (
        f'roles.{RBAC} "new" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant '
        "RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["services"], Verbs:["delete" "get"]}'
    )
    with pytest.raises(Forbidden, match="ResourceNames"):
        plugin.validate(world.write("CREATE", k.ROLE, role(rule("", "secrets", "get", "theirs"))))
    root = User("root", "", ("system:masters",))
    plugin.validate(world.write("CREATE", k.ROLE, role(rule("*", "*", "*")), user=root))

    # only the garbage collector's fields changed
    old = role(rule("", "secrets", "*"))
    new = {**old, "metadata": {**old["metadata"], "finalizers": []}}
    plugin.validate(world.write("UPDATE", k.ROLE, new, old))

    world.put(k.ROLE, "escalator", "lab", rules=[rule(RBAC, "roles", "escalate,bind")])
    bind(world, "escalator", "escalator", user(), "lab", "Role")
    plugin.validate(world.write("CREATE", k.ROLE, role(rule("*", "*", "*"))))


async def test_binding_needs_the_rights_or_the_verb(world: Any) -> None:
    authorizer = Authorizer(world.store)
    plugin = RbacEscalation(authorizer)
    world.put(k.CLUSTER_ROLE, "strong", rules=[rule("", "secrets", "get")])

    def binding(role: str) -> Object:
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        return {"metadata": {"name": "b", "namespace": "lab"}, "roleRef": reference, "subjects": [user()]}

    with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
        plugin.validate(world.write("CREATE", k.ROLE_BINDING, binding("strong")))
    with pytest.raises(NotFound, match=f'rolebindings.{RBAC} "gone" not found'):
        plugin.validate(world.write("CREATE", k.ROLE_BINDING, binding("gone")))
    world.put(k.ROLE, "binder", "lab", rules=[rule(RBAC, "clusterroles", "bind", "strong")])
    bind(world, "binder", "binder", user(), "lab", "Role")
    plugin.validate(world.write("CREATE", k.ROLE_BINDING, binding("strong")))


async def test_rules_for(world: Any) -> None:
    authorizer = Authorizer(world.store)
    world.put(k.ROLE, "own", "lab", rules=[rule("", "pods", "get")])
    bind(world, "own", "own", user(), "lab", "Role")
    assert authorizer.rules_for(ALICE, "lab") == ([rule("", "pods", "get")], "")
    assert authorizer.rules_for(ALICE, "other") == ([], "")
