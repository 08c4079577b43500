"""Objects of each kind, small and valid, and what can be done to them."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

POD = {
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 0,
    "containers": [{"name": "x", "image": "busybox", "command": ["true"]}],
}


def _template(name: str = "x", restart: str = "Always") -> dict[str, Any]:
    spec = {**copy.deepcopy(POD), "restartPolicy": restart}
    spec["containers"][0]["name"] = name  # type: ignore[index]
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


_SELECTED = {"selector": {"matchLabels": {"app": "x"}}, "template": _template()}
_REPLICA = {"replicas": 1, "restartPolicy": "Never", "template": _template("pytorch", "Never")}
_TF_REPLICA = {"replicas": 1, "restartPolicy": "Never", "template": _template("tensorflow", "Never")}
_T9K = {"type": "worker", "replicas": 1, "restartPolicy": "Never", "template": _template("pytorch", "Never")}

# plural -> (path of the group, apiVersion, kind, the object without its metadata)
TEMPLATES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "configmaps": ("/api/v1", "v1", "ConfigMap", {"data": {"k": "v"}}),
    "secrets": ("/api/v1", "v1", "Secret", {"stringData": {"k": "v"}}),
    "pods": ("/api/v1", "v1", "Pod", {"spec": POD}),
    "services": ("/api/v1", "v1", "Service", {"spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}}),
    "serviceaccounts": ("/api/v1", "v1", "ServiceAccount", {}),
    "persistentvolumeclaims": ("/api/v1", "v1", "PersistentVolumeClaim", {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}),
    "podtemplates": ("/api/v1", "v1", "PodTemplate", {"template": _template()}),
    "replicationcontrollers": ("/api/v1", "v1", "ReplicationController", {
        "spec": {"replicas": 0, "selector": {"app": "x"}, "template": _template()}}),
    "resourcequotas": ("/api/v1", "v1", "ResourceQuota", {"spec": {"hard": {"configmaps": "100"}}}),
    "limitranges": ("/api/v1", "v1", "LimitRange", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "4"}}]}}),
    "events": ("/api/v1", "v1", "Event", {"involvedObject": {"namespace": "a"}, "reason": "x", "message": "x"}),
    "deployments": ("/apis/apps/v1", "apps/v1", "Deployment", {"spec": {"replicas": 0, **_SELECTED}}),
    "replicasets": ("/apis/apps/v1", "apps/v1", "ReplicaSet", {"spec": {"replicas": 0, **_SELECTED}}),
    "statefulsets": ("/apis/apps/v1", "apps/v1", "StatefulSet", {
        "spec": {"replicas": 0, "serviceName": "x", "podManagementPolicy": "Parallel", **_SELECTED}}),
    "daemonsets": ("/apis/apps/v1", "apps/v1", "DaemonSet", {"spec": _SELECTED}),
    "jobs": ("/apis/batch/v1", "batch/v1", "Job", {
        "spec": {"parallelism": 1, "completions": 1, "suspend": True, "template": _template("x", "Never")}}),
    "leases": ("/apis/coordination.k8s.io/v1", "coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "x"}}),
    "roles": ("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1", "Role", {
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
    "rolebindings": ("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1", "RoleBinding", {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "bob", "namespace": "b"}]}),
    "pytorchjobs": ("/apis/kubeflow.org/v1", "kubeflow.org/v1", "PyTorchJob", {
        "spec": {"runPolicy": {"suspend": False}, "pytorchReplicaSpecs": {"Master": _REPLICA, "Worker": _REPLICA}}}),
    "tfjobs": ("/apis/kubeflow.org/v1", "kubeflow.org/v1", "TFJob", {
        "spec": {"tfReplicaSpecs": {"Worker": _TF_REPLICA}}}),
    "pytorchtrainingjobs": (
        "/apis/batch.tensorstack.dev/v1beta1", "batch.tensorstack.dev/v1beta1", "PyTorchTrainingJob", {
            "spec": {"replicaSpecs": [_T9K]}}),
    "tensorflowtrainingjobs": (
        "/apis/batch.tensorstack.dev/v1beta1", "batch.tensorstack.dev/v1beta1", "TensorFlowTrainingJob", {
            "spec": {"replicaSpecs": [{**_T9K, "template": _template("tensorflow", "Never")}]}}),
    "quotaprofiles": ("/apis/tensorstack.dev/v1beta1", "tensorstack.dev/v1beta1", "QuotaProfile", {
        "spec": {"hard": {"pods": "1"}}}),
    # without a namespace
    "namespaces": ("/api/v1", "v1", "Namespace", {}),
    "nodes": ("/api/v1", "v1", "Node", {"spec": {}}),
    "persistentvolumes": ("/api/v1", "v1", "PersistentVolume", {
        "spec": {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}}}),
    "clusterroles": ("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1", "ClusterRole", {
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
    "clusterrolebindings": (
        "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": "a"}]}),
    "customresourcedefinitions": (
        "/apis/apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1", "CustomResourceDefinition", {}),
    "storageclasses": ("/apis/storage.k8s.io/v1", "storage.k8s.io/v1", "StorageClass", {"provisioner": "x/y"}),
    "priorityclasses": ("/apis/scheduling.k8s.io/v1", "scheduling.k8s.io/v1", "PriorityClass", {"value": 7}),
    "certificatesigningrequests": (
        "/apis/certificates.k8s.io/v1", "certificates.k8s.io/v1", "CertificateSigningRequest", {
            "spec": {"request": "eA==", "signerName": "kubernetes.io/kubelet-serving", "usages": ["client auth"]}}),
}  # fmt: skip
CLUSTER_SCOPED = tuple(TEMPLATES)[tuple(TEMPLATES).index("namespaces") :]
NAMESPACED = tuple(name for name in TEMPLATES if name not in CLUSTER_SCOPED)
COMMON = ("configmaps", "secrets", "leases", "podtemplates", "quotaprofiles")

# Numbers that somebody may be tempted to loop over: (plural, path of the field)
COUNTS: tuple[tuple[str, tuple[str | int, ...]], ...] = (
    ("statefulsets", ("spec", "replicas")),
    ("statefulsets", ("spec", "ordinals", "start")),
    ("statefulsets", ("spec", "updateStrategy", "rollingUpdate", "partition")),
    ("deployments", ("spec", "replicas")),
    ("replicasets", ("spec", "replicas")),
    ("replicationcontrollers", ("spec", "replicas")),
    ("jobs", ("spec", "completions")),
    ("jobs", ("spec", "parallelism")),
    ("jobs", ("spec", "backoffLimit")),
    ("pytorchjobs", ("spec", "pytorchReplicaSpecs", "Worker", "replicas")),
    ("pytorchjobs", ("spec", "pytorchReplicaSpecs", "Master", "replicas")),
    ("tfjobs", ("spec", "tfReplicaSpecs", "Worker", "replicas")),
    ("tfjobs", ("spec", "tfReplicaSpecs", "PS", "replicas")),
    ("pytorchtrainingjobs", ("spec", "replicaSpecs", 0, "replicas")),
    ("tensorflowtrainingjobs", ("spec", "replicaSpecs", 0, "replicas")),
    ("configmaps", ("metadata", "generation")),
    ("configmaps", ("metadata", "deletionGracePeriodSeconds")),
)
NUMBERS = (1_000_000_000, 2**31 - 1, 10_000_000, 2**31, 2**63, 2**64, -1, -(2**31), 10**30, 1e308, 0)
ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, "", "x" * 70_000, "\x00", "\x1b[31m", "a\r\nset-cookie: b=c", "\u202e",
    "\ud7ff\uffff", "../../d", "*", [], {}, [[]], [None], {"": ""}, {"\x01": "\x02"}, {"$patch": "delete"},
    {"$patch": "replace"},
    {"$retainKeys": ["x"]}, "$(X)", "d", "canary-d0", "system:masters", "1e1000000000", "99999999999Ei", "0x10",
)  # fmt: skip


def make(plural: str, name: str, namespace: str = "") -> dict[str, Any]:
    _, version, kind, rest = TEMPLATES[plural]
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **copy.deepcopy(rest)}


def set_field(obj: Any, path: tuple[str | int, ...], value: Any) -> None:
    for key, following in itertools.pairwise(path):
        if isinstance(key, str) and isinstance(obj, dict) and key not in obj:
            obj[key] = [] if isinstance(following, int) else {}
        obj = obj[key]
    obj[path[-1]] = value


def fields(obj: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in an object."""
    found = [path] if path else []
    if isinstance(obj, dict):
        for key, value in obj.items():
            found += fields(value, (*path, key))
    elif isinstance(obj, list):
        for index, value in enumerate(obj):
            found += fields(value, (*path, index))
    return found


def disturb(rng: random.Random, obj: dict[str, Any]) -> str:
    """One thing in it is no longer as it should be; says which."""
    way = rng.randrange(5)
    meta = obj["metadata"] if isinstance(obj.get("metadata"), dict) else {}
    value = copy.deepcopy(rng.choice(ODD_VALUES))
    if way == 0:  # a field that nobody knows
        place = obj.get(rng.choice(["", "metadata", "spec"]))
        name = rng.choice(["unknown", "\x01", "a\nb", "x" * 300, "$patch", "__proto__", ""])
        (place if isinstance(place, dict) else obj)[name] = value
        return f"unknown field {name[:20]!r}"
    if way == 1:
        meta["namespace"] = rng.choice(["a", "b", "c", "d", "*", "..", "kube-system"])
        return "another namespace"
    if way == 2:
        owner = {"apiVersion": "v1", "kind": rng.choice(["ConfigMap", "Namespace"]), "name": "canary-d0", "uid": "x"}
        meta["ownerReferences"] = [{**owner, "blockOwnerDeletion": True, "controller": True}]
        meta["finalizers"] = ["fuzz/x"] if rng.random() < 0.1 else []
        return "owners"
    path = rng.choice(fields(obj))
    set_field(obj, path, value)
    return f"{'.'.join(map(str, path))[:60]} = {str(value)[:20]!r}"


def expanding(levels: int, width: int = 2, first: str = "xxxxxxxxxxxxxxxx") -> list[dict[str, str]]:
    """Environment variables of which each is the one before it, `width` times."""
    found = [{"name": "V0", "value": first}]
    for level in range(1, levels):
        found.append({"name": f"V{level}", "value": f"$(V{level - 1})" * width})
    return found
