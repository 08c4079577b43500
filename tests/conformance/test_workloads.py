"""Deployments, ReplicaSets, StatefulSets and DaemonSets, and what happens to their pods when they go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conformance.conftest import Kube
from tests.conformance.standin import Nodes


def workload(kind: str, name: str, template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": template["metadata"]["labels"]["app"]}}
    return {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"selector": selector, "template": template, **spec},
    }  # fmt: skip


def pods_of(kube: Kube, app: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kube.get("pods", "-l", f"app={app}")["items"]
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def names(kube: Kube, app: str) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods_of(kube, app))


def images(kube: Kube, app: str) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods_of(kube, app)}


def test_deployment_rollout(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    with nodes.kubelet():
        kube.apply(workload("Deployment", "d", nodes.template("d"), replicas=3))
        said = kube("rollout", "status", "deployment/d", "--timeout=40s")
        assert said.endswith('deployment "d" successfully rolled out\n')
        assert kube("get", "deployment", "d", "--no-headers").split()[:4] == ["d", "3/3", "3", "3"]
        conditions = {c["type"]: c for c in kube.get("deployment", "d")["status"]["conditions"]}
        assert conditions["Available"]["reason"] == "MinimumReplicasAvailable"
        assert conditions["Progressing"]["reason"] == "NewReplicaSetAvailable"
        kube("annotate", "deployment", "d", "kubernetes.io/change-cause=second")
        kube("set", "image", "deployment/d", "main=busybox:2")
        kube("rollout", "status", "deployment/d", "--timeout=40s")
        assert images(kube, "d") == {"busybox:2"}
        history = [line.split()[0] for line in kube("rollout", "history", "deployment/d").splitlines()[2:] if line]
        assert history == ["1", "2"]
        kube("rollout", "undo", "deployment/d")
        kube("rollout", "status", "deployment/d", "--timeout=40s")
        assert images(kube, "d") == {"busybox"}
        assert kube.get("deployment", "d")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        kube("scale", "deployment/d", "--replicas=1")
        kube.wait("one pod", lambda: len(names(kube, "d")) == 1)
        kube("rollout", "restart", "deployment/d")
        kube("rollout", "status", "deployment/d", "--timeout=40s")
        template = kube.get("deployment", "d")["spec"]["template"]["metadata"]["annotations"]
        assert "kubectl.kubernetes.io/restartedAt" in template
    sets = kube.get("replicasets", "-l", "app=d")["items"]
    assert len(sets) == 3  # first and third revision are one set
    events = kube("events", "--for=deployment/d")
    assert "ScalingReplicaSet" in events
    assert "Scaled up replica set d-" in events


def test_deployment_pause_and_strategies(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    with nodes.kubelet():
        kube.apply(
            workload("Deployment", "p", nodes.template("p"), replicas=1, paused=True),
            workload("Deployment", "r", nodes.template("r"), replicas=2, strategy={"type": "Recreate"}),
        )
        kube("rollout", "status", "deployment/r", "--timeout=40s")
        kube.until("deployment/p", '{.status.conditions[?(@.type=="Progressing")].reason}', "DeploymentPaused")
        kube("set", "image", "deployment/p", "main=busybox:2")
        kube.until("deployment/p", "{.status.observedGeneration}", kube.value("deployment/p", "{.metadata.generation}"))
        assert images(kube, "p") <= {"busybox"}
        kube("rollout", "resume", "deployment/p")
        kube("rollout", "status", "deployment/p", "--timeout=40s")
        assert images(kube, "p") == {"busybox:2"}
        kube("set", "image", "deployment/r", "main=busybox:2")
        kube("rollout", "status", "deployment/r", "--timeout=40s")
        assert images(kube, "r") == {"busybox:2"}
    problem = kube.fails("patch", "deployment", "r", "-p", '{"spec":{"selector":{"matchLabels":{"other":"x"}}}}')
    assert "field is immutable" in problem
    assert "`selector` does not match template `labels`" in problem


def test_a_rollout_that_does_not_come_on(kube: Kube, nodes: Nodes) -> None:
    template = nodes.template("stuck", {"nodeSelector": {"no": "such"}})
    kube.apply(workload("Deployment", "stuck", template, replicas=1, progressDeadlineSeconds=1))
    problem = kube.fails("rollout", "status", "deployment/stuck", "--timeout=40s")
    assert 'deployment "stuck" exceeded its progress deadline' in problem
    conditions = {c["type"]: c for c in kube.get("deployment", "stuck")["status"]["conditions"]}
    assert conditions["Progressing"]["reason"] == "ProgressDeadlineExceeded"
    assert conditions["Available"]["status"] == "False"
    assert conditions["Available"]["message"] == "Deployment does not have minimum availability."


def test_replica_sets_adopt_and_let_go(kube: Kube, nodes: Nodes) -> None:
    template = nodes.template("rs", {"nodeSelector": {"no": "such"}})
    orphan = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "orphan", "labels": {"app": "rs"}},
        "spec": template["spec"],
    }
    kube.apply(orphan)
    kube.apply(workload("ReplicaSet", "rs", template, replicas=2))
    kube.wait("the second pod", lambda: len(names(kube, "rs")) == 2)
    assert kube.value("pod/orphan", "{.metadata.ownerReferences[0].kind}") == "ReplicaSet"
    kube("label", "pod", "orphan", "app=free", "--overwrite")
    kube.wait("another one instead", lambda: len(names(kube, "rs")) == 2)
    kube.until("pod/orphan", "{.metadata.ownerReferences}", "")
    kube("delete", "pod", "-l", "app=rs")
    kube.wait("new pods", lambda: len(names(kube, "rs")) == 2)
    assert kube("get", "rs", "rs", "--no-headers").split()[:4] == ["rs", "2", "2", "0"]


def test_what_becomes_of_dependents(kube: Kube, nodes: Nodes) -> None:
    template = {app: nodes.template(app, {"nodeSelector": {"no": "such"}}) for app in ("back", "fore", "orphan")}
    kube.apply(*(workload("Deployment", app, made, replicas=2) for app, made in template.items()))
    kube.wait("pods", lambda: all(len(names(kube, app)) == 2 for app in template))
    # One pod is held, so that it can be seen who waits for whom.
    held = names(kube, "fore")[0]
    kube("patch", "pod", held, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kube("delete", "deployment", "back")
    kube.wait("all to go", lambda: not kube.get("rs,pods", "-l", "app=back")["items"])
    kube("delete", "deployment", "orphan", "--cascade=orphan")
    assert len(names(kube, "orphan")) == 2
    left = kube.get("rs", "-l", "app=orphan")["items"]
    assert [rs["metadata"].get("ownerReferences") for rs in left] == [None]
    kube("delete", "deployment", "fore", "--cascade=foreground", "--wait=false")
    kube.wait("the other pod to go", lambda: len(kube.get("pods", "-l", "app=fore")["items"]) == 1)
    found = kube.get("deployment", "fore")["metadata"]
    assert found["finalizers"] == ["foregroundDeletion"]
    assert found["deletionTimestamp"]
    kube("patch", "pod", held, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kube.gone("deployment/fore")


def test_objects_follow_their_owners(kube: Kube) -> None:
    kube("create", "configmap", "owner")
    uid = kube.value("configmap/owner", "{.metadata.uid}")

    def owned(name: str, uid: str) -> dict[str, Any]:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "ownerReferences": [owner]}}

    kube.apply(owned("child", uid), owned("stray", "11111111-2222-3333-4444-555555555555"))
    kube.gone("secret/stray")  # its owner never was
    assert kube.value("secret/child", "{.metadata.name}") == "child"
    kube("delete", "configmap", "owner")
    kube.gone("secret/child")


def test_stateful_set(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    with nodes.kubelet():
        kube.apply(workload("StatefulSet", "web", nodes.template("web"), serviceName="web", replicas=2))
        kube("rollout", "status", "statefulset/web", "--timeout=40s")
        assert names(kube, "web") == ["web-0", "web-1"]
        pod = kube.get("pod", "web-1")
        assert pod["spec"]["hostname"] == "web-1"
        assert pod["spec"]["subdomain"] == "web"
        assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-1"
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
        created = {name: kube.value(f"pod/{name}", "{.metadata.creationTimestamp}") for name in ("web-0", "web-1")}
        assert created["web-0"] <= created["web-1"]
        old = kube.value("pod/web-0", "{.metadata.uid}")
        kube("delete", "pod", "web-0", "--wait=false")
        kube.wait(
            "the same name again",
            lambda: (
                kube.run("get", "pod", "web-0", "-o", "jsonpath={.metadata.uid}", check=False).stdout not in ("", old)
            ),
        )
        kube("set", "image", "statefulset/web", "main=busybox:2")
        kube("rollout", "status", "statefulset/web", "--timeout=40s")
        assert images(kube, "web") == {"busybox:2"}
        kube("scale", "statefulset/web", "--replicas=1")
        kube.wait("the last to go first", lambda: names(kube, "web") == ["web-0"])
        kube("rollout", "undo", "statefulset/web")
        kube("rollout", "status", "statefulset/web", "--timeout=40s")
        assert images(kube, "web") == {"busybox"}
    assert kube("get", "statefulset", "web", "--no-headers").split()[:2] == ["web", "1/1"]


def test_claims_of_a_stateful_set(kube: Kube, nodes: Nodes) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    made = workload(
        "StatefulSet", "db", nodes.template("db"), serviceName="db", replicas=2, podManagementPolicy="Parallel",
        volumeClaimTemplates=[claim],
    )  # fmt: skip
    kube.apply(made)
    kube.wait("pods", lambda: names(kube, "db") == ["db-0", "db-1"])
    claims = sorted(c["metadata"]["name"] for c in kube.get("pvc")["items"])
    assert claims == ["data-db-0", "data-db-1"]
    volume = kube.get("pod", "db-1")["spec"]["volumes"][0]
    assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    kube("scale", "statefulset/db", "--replicas=0")
    kube.wait("no pods", lambda: names(kube, "db") == [])
    assert len(kube.get("pvc")["items"]) == 2  # data stays


def test_daemon_set(kube: Kube, nodes: Nodes) -> None:
    one, two = nodes.add("one"), nodes.add("two")
    with nodes.kubelet():
        kube.apply(workload("DaemonSet", "ds", nodes.template("ds")))
        kube("rollout", "status", "daemonset/ds", "--timeout=40s")
        assert sorted(pod["spec"]["nodeName"] for pod in pods_of(kube, "ds")) == [one, two]
        three = nodes.add("three")
        kube.wait("a pod there", lambda: three in {pod["spec"].get("nodeName") for pod in pods_of(kube, "ds")})
        keys = {t["key"] for t in pods_of(kube, "ds")[0]["spec"]["tolerations"]}
        assert {"node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"} <= keys
        kube("set", "image", "daemonset/ds", "main=busybox:2")
        kube("rollout", "status", "daemonset/ds", "--timeout=40s")
        assert images(kube, "ds") == {"busybox:2"}
        kube("label", "node", one, "standin=other", "--overwrite")
        kube.wait("it to leave", lambda: len(names(kube, "ds")) == 2)
    kube.until("daemonset/ds", "{.status.desiredNumberScheduled}", "2")


@pytest.mark.node
def test_workloads_run(kube: Kube) -> None:
    def template(app: str, script: str) -> dict[str, Any]:
        container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
        return {
            "metadata": {"labels": {"app": app}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
        }

    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    stateful = template("st", "echo $(hostname) >> /data/seen; sleep 600")
    stateful["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    kube.apply(
        workload("Deployment", "d", template("d", "sleep 600"), replicas=2),
        workload("StatefulSet", "st", stateful, serviceName="st", replicas=2, volumeClaimTemplates=[claim]),
        workload("DaemonSet", "ds", template("ds", "sleep 600")),
    )
    for what in ("deployment/d", "statefulset/st", "daemonset/ds"):
        kube("rollout", "status", what, "--timeout=40s")
    before, uid = kube.value("pod/st-0", "{.metadata.uid}"), ("get", "pod", "st-0", "-o", "jsonpath={.metadata.uid}")
    # Without waiting: where the next one is there before kubectl looks, it waits for the end of that one.
    kube("delete", "pod", "st-0", "--wait=false")
    kube.wait("another one", lambda: kube.run(*uid, check=False).stdout not in ("", before))
    kube.running("st-0")
    assert kube("exec", "st-0", "--", "cat", "/data/seen").split() == ["st-0", "st-0"]
    kube("patch", "deployment", "d", "-p", json.dumps({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "env": [{"name": "NEW", "value": "yes"}]}]}}}}))  # fmt: skip
    kube("rollout", "status", "deployment/d", "--timeout=40s")
    assert kube("exec", "deployment/d", "--", "sh", "-c", "echo $NEW") == "yes\n"
    all_of_it = kube("get", "all")
    for line in ("deployment.apps/d", "statefulset.apps/st", "daemonset.apps/ds", "pod/st-1"):
        assert line in all_of_it
