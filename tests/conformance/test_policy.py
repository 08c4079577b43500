"""Who may do what, and how much: RBAC, tokens, quotas, limits, namespaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.conformance.conftest import Kube


def as_user(kube: Kube, name: str) -> tuple[str, ...]:
    return (f"--as=system:serviceaccount:{kube.namespace}:{name}",)


def test_rights_come_from_roles(kube: Kube) -> None:
    kube("create", "serviceaccount", "reader")
    reader = as_user(kube, "reader")
    problem = kube.fails("get", "pods", *reader)
    assert (
        f'pods is forbidden: User "system:serviceaccount:{kube.namespace}:reader" cannot list resource "pods" '
        f'in API group "" in the namespace "{kube.namespace}"' in problem
    )
    kube("create", "role", "read-pods", "--verb=get,list", "--resource=pods")
    kube("create", "rolebinding", "read-pods", "--role=read-pods", f"--serviceaccount={kube.namespace}:reader")
    kube.wait("the right to count", lambda: kube.run("get", "pods", *reader, check=False).returncode == 0)
    assert kube("auth", "can-i", "list", "pods", *reader) == "yes\n"
    assert kube.run("auth", "can-i", "delete", "pods", *reader, check=False).stdout == "no\n"
    assert "forbidden" in kube.fails("get", "pods", "-n", "kube-system", *reader)


def test_nobody_grants_what_they_do_not_have(kube: Kube) -> None:
    kube("create", "serviceaccount", "clerk")
    kube("create", "role", "clerk", "--verb=create,get", "--resource=roles,rolebindings")
    kube("create", "rolebinding", "clerk", "--role=clerk", f"--serviceaccount={kube.namespace}:clerk")
    kube.wait(
        "the right to count",
        lambda: kube.run("auth", "can-i", "create", "roles", *as_user(kube, "clerk"), check=False).returncode == 0,
    )
    problem = kube.fails("create", "role", "more", "--verb=delete", "--resource=secrets", *as_user(kube, "clerk"))
    assert "is attempting to grant RBAC permissions not currently held" in problem


def test_a_token_speaks_for_its_account(kube: Kube) -> None:
    kube("create", "serviceaccount", "robot")
    token = kube("create", "token", "robot", "--duration=10m").strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = json.loads(kube("create", "-f", "-", "-o", "json", stdin=review))["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{kube.namespace}:robot"
    assert "system:serviceaccounts" in status["user"]["groups"]
    review["spec"] = {"token": "nonsense"}
    status = json.loads(kube("create", "-f", "-", "-o", "json", stdin=review))["status"]
    assert not status.get("authenticated")


def test_subject_access_review(kube: Kube) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "nobody",
                 "resourceAttributes": {"namespace": kube.namespace, "verb": "get", "resource": "pods"}},
    }  # fmt: skip
    assert json.loads(kube("create", "-f", "-", "-o", "json", stdin=review))["status"]["allowed"] is False
    review["spec"]["groups"] = ["system:masters"]  # type: ignore[index]
    assert json.loads(kube("create", "-f", "-", "-o", "json", stdin=review))["status"]["allowed"] is True


def test_quota_counts_and_refuses(kube: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    kube("create", "quota", "q", "--hard=pods=1,requests.cpu=1,requests.nvidia.com/gpu=1,count/configmaps=3")
    kube.wait("the quota's status", lambda: kube.value("quota/q", "{.status.hard.pods}") == "1")
    problem = kube.fails("create", "-f", "-", stdin=pod("none"))
    assert 'pods "none" is forbidden: failed quota: q: must specify requests.cpu for: main' in problem
    problem = kube.fails("create", "-f", "-", stdin=pod("big", resources={"requests": {"cpu": "2"}}))
    assert "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1" in problem
    kube("create", "-f", "-", stdin=pod("fits", resources={"requests": {"cpu": "500m"}}))
    kube.wait("the usage", lambda: kube.value("quota/q", "{.status.used.requests\\.cpu}") == "500m")
    problem = kube.fails("create", "-f", "-", stdin=pod("second", resources={"requests": {"cpu": "100m"}}))
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in problem
    kube("delete", "pod", "fits", "--now")
    kube.wait("the usage to fall", lambda: kube.value("quota/q", "{.status.used.pods}") == "0")


def test_limit_range_gives_defaults_and_refuses(kube: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    limits = {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"},
                             "max": {"cpu": "1"}}]},
    }  # fmt: skip
    kube("create", "-f", "-", stdin=limits)
    kube("create", "-f", "-", stdin=pod("a"))
    assert kube.get("pod", "a")["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "200m"},
        "requests": {"cpu": "100m"},
    }
    problem = kube.fails("create", "-f", "-", stdin=pod("b", resources={"limits": {"cpu": "2"}}))
    assert "maximum cpu usage per Container is 1, but limit is 2" in problem


def test_a_namespace_takes_all_with_it(kube: Kube) -> None:
    inner = f"{kube.namespace}-inner"
    kube("create", "namespace", inner)
    kube("create", "configmap", "a", "-n", inner)
    kube("create", "deployment", "d", "--image=busybox", "-n", inner)
    kube("delete", "namespace", inner)
    assert kube.run("get", "namespace", inner, check=False).returncode != 0
    assert "not found" in kube.fails("create", "configmap", "a", "-n", inner)


def test_the_namespaces_of_the_system_stay(kube: Kube) -> None:
    assert "this namespace may not be deleted" in kube.fails("delete", "namespace", "kube-system")


def test_priority_classes(kube: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    problem = kube.fails("create", "-f", "-", stdin=pod("a", spec={"priorityClassName": "no-such-class"}))
    assert "no PriorityClass with name no-such-class was found" in problem
    kube("create", "-f", "-", stdin=pod("b"))
    assert kube.get("pod", "b")["spec"]["priority"] == 0


def test_a_default_storage_class_or_none(kube: Kube) -> None:
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                 "storageClassName": ""},
    }  # fmt: skip
    kube("create", "-f", "-", stdin=claim)
    assert kube.get("pvc", "c")["spec"]["storageClassName"] == ""
    problem = kube.fails("patch", "pvc", "c", "-p", '{"spec":{"accessModes":["ReadOnlyMany"]}}')
    assert "spec is immutable after creation except resources.requests" in problem


def test_refusals_name_the_object_or_its_prefix(kube: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    made = pod("web-0", spec={"serviceAccountName": "none"})
    made["metadata"]["generateName"] = "web-"
    problem = kube.fails("create", "-f", "-", stdin=made)
    assert f'pods "web-0" is forbidden: error looking up service account {kube.namespace}/none' in problem
    del made["metadata"]["name"]
    assert 'pods "web-" is forbidden: error looking up service account' in kube.fails("create", "-f", "-", stdin=made)


# -- Pod Security


LEVEL = "pod-security.kubernetes.io"


def test_pod_security_refuses_by_level(kube: Kube, pod: Callable[..., dict[str, Any]]) -> None:
    kube("label", "namespace", kube.namespace, f"{LEVEL}/enforce=baseline")
    made = pod("mounts")
    made["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/var/log"}}]
    text = 'pods "mounts" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes (volume "v")'
    assert text in kube.fails("create", "-f", "-", stdin=made)
    made = pod("shares")
    made["spec"] |= {"hostNetwork": True, "hostPID": True}
    assert "host namespaces (hostNetwork=true, hostPID=true)" in kube.fails("create", "-f", "-", stdin=made)
    kube("create", "-f", "-", stdin=pod("fine"))
    kube("label", "namespace", kube.namespace, f"{LEVEL}/enforce=restricted", "--overwrite")
    problem = kube.fails("create", "-f", "-", stdin=pod("plain"))
    name = pod("plain")["spec"]["containers"][0]["name"]
    assert (
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
        f'(container "{name}" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities '
        f'(container "{name}" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true '
        f'(pod or container "{name}" must set securityContext.runAsNonRoot=true), seccompProfile '
        f'(pod or container "{name}" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    ) in problem


def test_pod_security_warns_of_workloads_and_of_pods_that_are_there(
    kube: Kube, pod: Callable[..., dict[str, Any]]
) -> None:
    for name in ("one", "two"):
        made = pod(name)
        made["spec"]["hostIPC"] = True
        kube("create", "-f", "-", stdin=made)
    warned = kube.run("label", "namespace", kube.namespace, f"{LEVEL}/enforce=baseline").stderr
    level = '"baseline:latest"'
    assert f'existing pods in namespace "{kube.namespace}" violate the new PodSecurity enforce level {level}' in warned
    assert "one (and 1 other pod): host namespaces" in warned
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {**pod("x")["spec"], "restartPolicy": "Always", "hostIPC": True},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "replicas": 0, "template": template}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": spec}
    warned = kube.run("create", "-f", "-", stdin=workload).stderr
    assert f"would violate PodSecurity {level}: host namespaces (hostIPC=true)" in warned


def test_pod_security_labels_are_checked(kube: Kube) -> None:
    problem = kube.fails("label", "namespace", kube.namespace, f"{LEVEL}/enforce=strict")
    assert (
        f'metadata.labels[{LEVEL}/enforce]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted" in problem
    )
    problem = kube.fails("label", "namespace", kube.namespace, f"{LEVEL}/warn-version=2")
    assert f'metadata.labels[{LEVEL}/warn-version]: Invalid value: "2": must be "latest" or "v1.x"' in problem
