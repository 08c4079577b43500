"""The roles and bindings that every cluster has from its first start.

The table is read as: a name at the margin (with what it aggregates into, or from), and below it one rule a line:
verbs, API groups, resources; `urls:` for paths; `names:` limits a rule to named objects. `core` is the core group.
Roles of parts that are not served here (certificates, cloud providers) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from danlu.embedded.apiserver.auth.policyrules import Rule
from danlu.meta.kind import Object
from danlu.meta.roles import aggregated_rules

RBAC = "rbac.authorization.k8s.io"
_VERBS = {
    "read": "get list watch",
    "write": "create delete deletecollection patch update",
    "all": "create delete deletecollection get list patch update watch",
}
_EVENTS = "create,patch,update core,events.k8s.io: events"

_CLUSTER_ROLES = """
cluster-admin
    * *: *
    * urls: *
admin <admin
edit <edit >admin
view <view >edit
system:aggregate-to-admin >admin
    create authorization.k8s.io: localsubjectaccessreviews
    all rbac.authorization.k8s.io: rolebindings roles
system:aggregate-to-edit >edit
    read core: pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy
    impersonate core: serviceaccounts
    write core: pods pods/attach pods/exec pods/portforward pods/proxy
    create core: pods/eviction
    write core: configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets \
serviceaccounts services services/proxy
    create core: serviceaccounts/token
    write core,events.k8s.io: events
    write apps: daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale \
statefulsets statefulsets/scale
    write autoscaling: horizontalpodautoscalers
    write batch: cronjobs jobs
    write policy: poddisruptionbudgets
    write networking.k8s.io: ingresses networkpolicies
    all coordination.k8s.io: leases
system:aggregate-to-view >view
    read core: configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
replicationcontrollers/scale serviceaccounts services services/status
    read core: bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status \
resourcequotas resourcequotas/status
    read core: namespaces
    read core,events.k8s.io: events
    read discovery.k8s.io: endpointslices
    read apps: controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status \
replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status
    read autoscaling: horizontalpodautoscalers horizontalpodautoscalers/status
    read batch: cronjobs cronjobs/status jobs jobs/status
    read policy: poddisruptionbudgets poddisruptionbudgets/status
    read networking.k8s.io: ingresses ingresses/status networkpolicies
system:aggregated-metrics-reader >admin >edit >view
    read metrics.k8s.io: nodes pods
system:auth-delegator
    create authentication.k8s.io: tokenreviews
    create authorization.k8s.io: subjectaccessreviews
system:basic-user
    create authorization.k8s.io: selfsubjectaccessreviews selfsubjectrulesreviews
    create authentication.k8s.io: selfsubjectreviews
system:discovery
    get urls: /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/
system:public-info-viewer
    get urls: /healthz /livez /readyz /version /version/
system:monitoring
    get urls: /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*
system:service-account-issuer-discovery
    get urls: /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/
system:kube-controller-manager
    events
    create coordination.k8s.io: leases
    get,update coordination.k8s.io: leases names: kube-controller-manager
    create core: secrets serviceaccounts
    delete core: secrets
    get core: configmaps namespaces secrets serviceaccounts
    update core: secrets serviceaccounts
    create authentication.k8s.io: tokenreviews
    create authorization.k8s.io: subjectaccessreviews
    list,watch *: *
    create core: serviceaccounts/token
system:kube-scheduler
    events
    create coordination.k8s.io: leases
    get,list,update,watch coordination.k8s.io: leases names: kube-scheduler
    read core: nodes
    delete,get,list,watch core: pods
    create core: bindings pods/binding
    patch,update core: pods/status
    read core: replicationcontrollers services
    read apps: replicasets
    read apps: statefulsets
    read policy: poddisruptionbudgets
    read core: persistentvolumeclaims persistentvolumes
    create authentication.k8s.io: tokenreviews
    create authorization.k8s.io: subjectaccessreviews
    read storage.k8s.io: csinodes
    read core: namespaces
    read storage.k8s.io: csidrivers
    read storage.k8s.io: csistoragecapacities
system:volume-scheduler
    get,list,patch,update,watch core: persistentvolumes
    read storage.k8s.io: storageclasses
    get,list,patch,update,watch core: persistentvolumeclaims
system:persistent-volume-provisioner
    create,delete,get,list,watch core: persistentvolumes
    get,list,update,watch core: persistentvolumeclaims
    read storage.k8s.io: storageclasses
    watch core: events
    events
system:node
    create authentication.k8s.io: tokenreviews
    create authorization.k8s.io: localsubjectaccessreviews subjectaccessreviews
    read core: services
    create,get,list,watch core: nodes
    patch,update core: nodes/status
    patch,update core: nodes
    events
    read core: pods
    create,delete core: pods
    patch,update core: pods/status
    create core: pods/eviction
    read core: configmaps secrets
    get core: persistentvolumeclaims persistentvolumes
    get core: endpoints
    create,delete,get,patch,update coordination.k8s.io: leases
    create core: serviceaccounts/token
    get,patch,update core: persistentvolumeclaims/status
    get core: serviceaccounts
    read node.k8s.io: runtimeclasses
system:node-proxier
    list,watch core: endpoints services
    read core: nodes
    events
    list,watch discovery.k8s.io: endpointslices
    list,watch networking.k8s.io: servicecidrs
system:controller:clusterrole-aggregation-controller
    escalate,get,list,patch,update,watch rbac.authorization.k8s.io: clusterroles
system:controller:daemon-set-controller
    read apps: daemonsets
    update apps: daemonsets/status
    update apps: daemonsets/finalizers
    list,watch core: nodes
    create,delete,list,patch,watch core: pods
    create core: pods/binding
    create,delete,get,list,patch,update,watch apps: controllerrevisions
    events
system:controller:deployment-controller
    get,list,update,watch apps: deployments
    update apps: deployments/status
    update apps: deployments/finalizers
    create,delete,get,list,patch,update,watch apps: replicasets
    get,list,update,watch core: pods
    events
system:controller:endpoint-controller
    read core: pods services
    create,delete,get,list,update,watch core: endpoints
    create core: endpoints/restricted
    events
system:controller:endpointslice-controller
    read core: nodes pods services
    update core: services/finalizers
    create,delete,get,list,update,watch discovery.k8s.io: endpointslices
    events
system:controller:expand-controller
    get,list,patch,update,watch core: persistentvolumes
    patch,update core: persistentvolumeclaims/status
    read core: persistentvolumeclaims
    events
system:controller:generic-garbage-collector
    delete,get,list,patch,update,watch *: *
    events
system:controller:horizontal-pod-autoscaler
    read autoscaling: horizontalpodautoscalers
    update autoscaling: horizontalpodautoscalers/status
    get,update *: */scale
    list,watch core: pods
    list,watch metrics.k8s.io: pods
    read custom.metrics.k8s.io: *
    read external.metrics.k8s.io: *
    events
system:controller:job-controller
    get,list,patch,update,watch batch: jobs
    update batch: jobs/status
    update batch: jobs/finalizers
    create,delete,list,patch,watch core: pods
    events
system:controller:namespace-controller
    delete,get,list,watch core: namespaces
    update core: namespaces/finalize namespaces/status
    delete,deletecollection,get,list,watch *: *
system:controller:node-controller
    delete,get,list,patch,update,watch core: nodes
    patch,update core: nodes/status
    patch,update core: pods/status
    delete,get,list,watch core: pods
    events
system:controller:persistent-volume-binder
    create,delete,get,list,update,watch core: persistentvolumes
    update core: persistentvolumes/status
    get,list,update,watch core: persistentvolumeclaims
    update core: persistentvolumeclaims/status
    create,delete,get,list,watch core: pods
    read storage.k8s.io: storageclasses
    list,watch core: nodes
    events
    watch core: events
system:controller:pod-garbage-collector
    delete,list,watch core: pods
    read core: nodes
    patch core: pods/status
system:controller:pv-protection-controller
    get,list,update,watch core: persistentvolumes
    events
system:controller:pvc-protection-controller
    get,list,update,watch core: persistentvolumeclaims
    update core: persistentvolumeclaims/status
    read core: pods
    events
system:controller:replicaset-controller
    get,list,update,watch apps: replicasets
    update apps: replicasets/status
    update apps: replicasets/finalizers
    create,delete,list,patch,watch core: pods
    events
system:controller:replication-controller
    get,list,update,watch core: replicationcontrollers
    update core: replicationcontrollers/status
    update core: replicationcontrollers/finalizers
    create,delete,list,patch,watch core: pods
    events
system:controller:resourcequota-controller
    list,watch *: *
    update core: resourcequotas/status
    events
system:controller:root-ca-cert-publisher
    create,update core: configmaps
    events
system:controller:service-account-controller
    create core: serviceaccounts
    events
system:controller:service-cidrs-controller
    get,list,patch,update,watch networking.k8s.io: servicecidrs
    patch,update networking.k8s.io: servicecidrs/finalizers
    patch,update networking.k8s.io: servicecidrs/status
    read networking.k8s.io: ipaddresses
    events
system:controller:statefulset-controller
    list,watch core: pods
    read apps: statefulsets
    update apps: statefulsets/status
    update apps: statefulsets/finalizers
    create,delete,get,patch,update core: pods
    create,delete,get,list,patch,update,watch apps: controllerrevisions
    create,get,list,watch core: persistentvolumeclaims
    delete,update core: persistentvolumeclaims
    update core: pods/finalizers
    events
system:controller:ttl-after-finished-controller
    delete,get,list,watch batch: jobs
    events
"""

_ROLES = """
kube-system/extension-apiserver-authentication-reader
    read core: configmaps names: extension-apiserver-authentication
kube-system/system::leader-locking-kube-controller-manager
    create,get,list,update,watch coordination.k8s.io: leases
kube-system/system::leader-locking-kube-scheduler
    create,get,list,update,watch coordination.k8s.io: leases
"""

# role -> subjects; each controller's role is bound to the service account of its name in kube-system
_CLUSTER_BINDINGS = {
    "cluster-admin": ("Group system:masters",),
    "system:monitoring": ("Group system:monitoring",),
    "system:discovery": ("Group system:authenticated",),
    "system:basic-user": ("Group system:authenticated",),
    "system:public-info-viewer": ("Group system:authenticated", "Group system:unauthenticated"),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
    "system:node": ("Group system:nodes",),  # there is no node authorizer here
    "system:node-proxier": ("User system:kube-proxy",),
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:volume-scheduler": ("User system:kube-scheduler",),
}
_BINDINGS = {
    "kube-system/system::extension-apiserver-authentication-reader": (
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
    ),
    "kube-system/system::leader-locking-kube-controller-manager": (
        "system::leader-locking-kube-controller-manager",
        ("User system:kube-controller-manager", "ServiceAccount kube-controller-manager"),
    ),
    "kube-system/system::leader-locking-kube-scheduler": (
        "system::leader-locking-kube-scheduler",
        ("User system:kube-scheduler", "ServiceAccount kube-scheduler"),
    ),
}
_CONTROLLER = "system:controller:"


def objects() -> list[Object]:
    """ClusterRoles, ClusterRoleBindings, Roles and RoleBindings; the aggregating roles come filled."""
    cluster_roles = [_role("ClusterRole", *entry) for entry in _entries(_CLUSTER_ROLES)]
    # From the inside out: admin gathers edit, which gathers view.
    by_name = {role["metadata"]["name"]: role for role in cluster_roles}
    for name in ("view", "edit", "admin"):
        by_name[name]["rules"] = aggregated_rules(by_name[name], cluster_roles)
    bindings = dict(_CLUSTER_BINDINGS)
    for name in by_name:
        if name.startswith(_CONTROLLER):
            bindings[name] = (f"ServiceAccount {name.removeprefix(_CONTROLLER)}",)
    return [
        *cluster_roles,
        *(_binding("ClusterRoleBinding", name, "ClusterRole", name, who) for name, who in bindings.items()),
        *(_role("Role", *entry) for entry in _entries(_ROLES)),
        *(_binding("RoleBinding", name, "Role", role, who) for name, (role, who) in _BINDINGS.items()),
    ]


def _entries(table: str) -> Iterator[tuple[str, list[str], list[Rule]]]:
    name, marks, rules = "", [""], []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            rules.append(_rule(line.strip()))
            continue
        if name:
            yield name, marks, rules
        (name, *marks), rules = line.split(), []
    yield name, marks, rules


def _rule(line: str) -> Rule:
    what, _, names = (_EVENTS if line == "events" else line).partition(" names: ")
    target, _, things = what.partition(": ")
    verbs, groups = target.split()
    rule: Rule = {}
    if groups == "urls":
        rule["nonResourceURLs"] = things.split()
    else:
        rule["apiGroups"] = ["" if group == "core" else group for group in groups.split(",")]
        rule["resources"] = things.split()
    if names:
        rule["resourceNames"] = names.split()
    rule["verbs"] = _VERBS.get(verbs, verbs.replace(",", " ")).split()
    return rule


def _metadata(name: str) -> Object:
    namespace, _, own_name = name.rpartition("/")
    meta: Object = {
        "name": own_name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    if namespace:
        meta["namespace"] = namespace
    return meta


def _role(kind: str, name: str, marks: list[str], rules: list[Rule]) -> Object:
    role: Object = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": _metadata(name), "rules": rules}
    for mark in marks:
        label = f"{RBAC}/aggregate-to-{mark[1:]}"
        if mark.startswith(">"):
            role["metadata"]["labels"][label] = "true"
        else:
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}
    return role


def _binding(kind: str, name: str, role_kind: str, role: str, subjects: tuple[str, ...]) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [_subject(text) for text in subjects],
    }


def _subject(text: str) -> Object:
    kind, name = text.split(" ", 1)
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"apiGroup": RBAC, "kind": kind, "name": name}
