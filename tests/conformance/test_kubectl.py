"""kubectl's own commands: create of every kind it knows (sent as protobuf), edit, wait, watch, discovery, events."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path

import pytest
from tests.conformance.conftest import Kube


def test_create_knows_these_kinds(kube: Kube, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("in a file")
    (tmp_path / "env").write_text("A=1\nB=two\n")
    kube("create", "configmap", "c", f"--from-file={tmp_path}/file.txt", "--from-literal=x=1")
    kube("create", "configmap", "e", f"--from-env-file={tmp_path}/env")
    assert kube.get("configmap", "c")["data"] == {"file.txt": "in a file", "x": "1"}
    assert kube.get("configmap", "e")["data"] == {"A": "1", "B": "two"}
    kube("create", "secret", "generic", "s", "--from-literal=p=word", "--type=example.com/kind")
    secret = kube.get("secret", "s")
    assert (secret["type"], secret["data"]) == ("example.com/kind", {"p": base64.b64encode(b"word").decode()})
    kube(
        "create",
        "secret",
        "docker-registry",
        "r",
        "--docker-server=example.com",
        "--docker-username=u",
        "--docker-password=p",
    )
    auth = json.loads(base64.b64decode(kube.get("secret", "r")["data"][".dockerconfigjson"]))
    assert auth["auths"]["example.com"]["username"] == "u"
    kube("create", "serviceaccount", "a")
    kube("create", "role", "ro", "--verb=get,list", "--resource=pods,deployments.apps", "--resource-name=x")
    assert kube.get("role", "ro")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["x"], "verbs": ["get", "list"]},
    ]
    kube("create", "rolebinding", "rb", "--role=ro", f"--serviceaccount={kube.namespace}:a", "--user=u", "--group=g")
    assert {s["kind"] for s in kube.get("rolebinding", "rb")["subjects"]} == {"ServiceAccount", "User", "Group"}
    name = f"{kube.namespace}-cr"
    kube("create", "clusterrole", name, "--verb=get", "--non-resource-url=/metrics")
    kube("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=u")
    kube("delete", "clusterrole,clusterrolebinding", name)
    kube("create", "quota", "q", "--hard=pods=100", "--scopes=NotTerminating")
    assert kube.get("quota", "q")["spec"]["scopes"] == ["NotTerminating"]
    kube("create", "priorityclass", name, "--value=5", "--description=five")
    assert kube.get("priorityclass", name)["value"] == 5
    kube("delete", "priorityclass", name)
    kube("create", "deployment", "d", "--image=busybox", "--replicas=0", "--port=80")
    assert kube.get("deployment", "d")["spec"]["template"]["spec"]["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP"}
    ]
    kube("create", "job", "j", "--image=busybox", "--", "true")
    assert kube.get("job", "j")["spec"]["template"]["spec"]["containers"][0]["command"] == ["true"]
    assert kube("create", "token", "a").count(".") == 2
    kube("expose", "deployment", "d", "--port=80", "--name=exposed")
    assert kube.get("service", "exposed")["spec"]["selector"] == {"app": "d"}
    kube("run", "p", "--image=busybox", "--labels=a=b", "--env=X=1", "--restart=Never", "--command", "--", "true")
    found = kube.get("pod", "p")
    assert found["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}]
    assert found["metadata"]["labels"] == {"a": "b"}
    inner = f"{kube.namespace}-made"
    kube("create", "namespace", inner)
    kube("delete", "namespace", inner, "--wait=false")


def test_edit_replace_and_patch(kube: Kube, tmp_path: Path) -> None:
    kube("create", "configmap", "c", "--from-literal=x=old")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/old/new/' \"$1\"\n")
    editor.chmod(0o755)
    kube.run("edit", "configmap", "c", EDITOR=str(editor), KUBE_EDITOR=str(editor))
    assert kube.value("configmap/c", "{.data.x}") == "new"
    assert "no changes made" in kube.run("edit", "configmap", "c", KUBE_EDITOR="true").stderr
    obj = kube.get("configmap", "c")
    obj["data"] = {"y": "replaced"}
    kube("replace", "-f", "-", stdin=obj)
    assert kube.get("configmap", "c")["data"] == {"y": "replaced"}
    stale = kube.fails("replace", "-f", "-", stdin=obj)
    assert "the object has been modified; please apply your changes to the latest version and try again" in stale
    obj["metadata"].pop("resourceVersion")
    kube("replace", "--force", "-f", "-", stdin=obj)
    kube("label", "configmap", "c", "a=1", "b=2")
    kube("label", "configmap", "c", "a-")
    assert kube.get("configmap", "c")["metadata"]["labels"] == {"b": "2"}
    assert "already has a value" in kube.fails("label", "configmap", "c", "b=3")
    kube("annotate", "configmap", "c", "n=m")
    kube("patch", "configmap", "c", "--type=json", "-p", '[{"op":"move","from":"/data/y","path":"/data/z"}]')
    assert kube.get("configmap", "c")["data"] == {"z": "replaced"}
    problem = kube.fails("patch", "configmap", "c", "--type=json", "-p", '[{"op":"remove","path":"/data/none"}]')
    assert (
        "Unable to remove nonexistent key: none" in problem
        or "the server rejected our request due to an error in our request" in problem
    )


def test_wait_and_watch(kube: Kube) -> None:
    kube("create", "configmap", "first")
    with kube.started("get", "configmaps", "--watch", "-o", "name") as watching, \
            kube.started("wait", "--for=jsonpath={.data.x}=yes", "configmap/first", "--timeout=30s") as waiting, \
            kube.started("wait", "--for=delete", "configmap/first", "--timeout=30s") as deleting:  # fmt: skip
        assert watching.stdout is not None
        seen = [watching.stdout.readline().strip()]
        while "configmap/first" not in seen:
            seen.append(watching.stdout.readline().strip())
        kube("create", "configmap", "second")
        while seen[-1] != "configmap/second":
            seen.append(watching.stdout.readline().strip())
        time.sleep(0.2)
        kube("patch", "configmap", "first", "-p", '{"data":{"x":"yes"}}')
        assert "condition met" in waiting.communicate(timeout=30)[0]
        assert deleting.poll() is None
        kube("delete", "configmap", "first")
        deleting.communicate(timeout=30)
        assert deleting.returncode == 0
    assert "timed out waiting for the condition" in kube.fails(
        "wait", "--for=jsonpath={.data.x}=no", "configmap/second", "--timeout=1s"
    )
    table = kube("get", "--raw", f"/api/v1/namespaces/{kube.namespace}/configmaps?watch=1&timeoutSeconds=1")
    assert {json.loads(line)["type"] for line in table.splitlines()} == {"ADDED"}


def test_discovery(kube: Kube) -> None:
    rows = [line.split() for line in kube("api-resources", "--no-headers", "-o", "wide").splitlines()]
    names = {row[0] for row in rows}
    served = """configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes
    pods resourcequotas secrets serviceaccounts services customresourcedefinitions daemonsets deployments replicasets
    statefulsets controllerrevisions tokenreviews subjectaccessreviews selfsubjectaccessreviews
    selfsubjectrulesreviews jobs leases endpointslices
    clusterroles clusterrolebindings roles rolebindings priorityclasses storageclasses"""
    assert set(served.split()) - names == set()
    versions = kube("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "apiextensions.k8s.io/v1"} <= set(versions)
    short = {
        "cm",
        "po",
        "svc",
        "deploy",
        "rs",
        "sts",
        "ds",
        "ns",
        "no",
        "pvc",
        "pv",
        "sa",
        "quota",
        "limits",
        "ev",
        "crd",
        "sc",
        "pc",
    }
    assert short <= {part for row in rows for part in row[1].split(",")}
    info = json.loads(kube("version", "-o", "json"))["serverVersion"]
    assert info["major"] == "1"
    assert re.match(r"v1\.\d+\.\d+", info["gitVersion"])
    for path in ("/healthz", "/livez", "/readyz"):
        assert kube("get", "--raw", path) == "ok"
    assert "[+]ping ok" in kube("get", "--raw", "/readyz?verbose")
    assert "apiserver_" in kube("get", "--raw", "/metrics")
    kube("cluster-info")
    with_categories = kube("api-resources", "--categories=all", "--no-headers", "-o", "name").split()
    assert {"pods", "services", "deployments.apps", "jobs.batch"} <= set(with_categories)


def test_everything_can_be_listed_and_described(kube: Kube) -> None:
    """Each kind that can be listed: as a table, wide, JSON, YAML; and by describe."""
    names = kube("api-resources", "--verbs=list,get", "--namespaced", "-o", "name").split()
    kube("get", ",".join(names), "-o", "wide")
    kube("get", ",".join(names), "-o", "yaml", "--show-managed-fields")
    kube("create", "deployment", "d", "--image=busybox", "--replicas=0")
    kube("create", "service", "clusterip", "s", "--tcp=80")
    kube("create", "quota", "q", "--hard=pods=9")
    for what in (
        "deployment/d",
        "service/s",
        "quota/q",
        "namespace/default",
        "serviceaccount/default",
        "configmap/kube-root-ca.crt",
    ):
        assert what.split("/")[1] in kube("describe", *what.split("/"))
    everything = kube("get", "all")
    assert "deployment.apps/d" in everything
    assert "service/s" in everything
    shown = kube("get", "deployment", "d", "-o", "custom-columns=N:.metadata.name,R:.spec.replicas", "--no-headers")
    assert shown.split() == ["d", "0"]
    by_name = kube("get", "configmaps", "--sort-by=.metadata.name", "-o", "name").split()
    assert by_name == sorted(by_name)
    template = kube(
        "get", "deployment", "d", "-o", "go-template={{.metadata.name}}:{{len .spec.template.spec.containers}}"
    )
    assert template == "d:1"
    assert kube("get", "deployment", "d", "--show-labels", "--no-headers").split()[-1] == "app=d"
    assert kube("get", "deployment", "-L", "app", "--no-headers").split()[-1] == "d"


def test_who_am_i_and_what_may_i(kube: Kube) -> None:
    assert "Username" in kube("auth", "whoami")
    listed = kube("auth", "can-i", "--list")
    assert "*.*" in listed
    kube("create", "serviceaccount", "a")
    user = f"--as=system:serviceaccount:{kube.namespace}:a"
    kube("create", "role", "r", "--verb=get", "--resource=pods", "--resource-name=mine")
    kube("create", "rolebinding", "r", "--role=r", f"--serviceaccount={kube.namespace}:a")
    kube.wait("the right to count", lambda: "[mine]" in kube("auth", "can-i", "--list", user))
    assert kube("auth", "can-i", "get", "pods/mine", user) == "yes\n"
    assert kube.run("auth", "can-i", "get", "pods", user, check=False).stdout == "no\n"
    groups = ("--as=somebody", "--as-group=system:masters")
    assert kube("auth", "can-i", "*", "*", *groups) == "yes\n"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r2", "namespace": kube.namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }  # fmt: skip
    assert "r2 reconciled" in kube("auth", "reconcile", "-f", "-", stdin=role)


def test_events_are_told_and_counted(kube: Kube) -> None:
    stuck = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"}, "spec": {
        "nodeSelector": {"no": "such"}, "containers": [{"name": "main", "image": "busybox"}]}}  # fmt: skip
    kube("create", "-f", "-", stdin=stuck)
    kube.wait("the event", lambda: "FailedScheduling" in kube("events", "--for=pod/stuck"))
    kube.until("pod/stuck", '{.status.conditions[?(@.type=="PodScheduled")].observedGeneration}', "1")
    found = kube.get("events", "--field-selector=involvedObject.name=stuck,reason=FailedScheduling")["items"]
    assert found[0]["type"] == "Warning"
    assert found[0]["involvedObject"]["kind"] == "Pod"
    rows = kube("get", "events", "--field-selector=involvedObject.name=stuck")
    assert rows.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "FailedScheduling" in kube("describe", "pod", "stuck")
    assert "FailedScheduling" in kube("events", "--types=Warning")
    assert kube.get("events.events.k8s.io")["items"]


def test_dry_runs_change_nothing(kube: Kube) -> None:
    shown = kube("create", "deployment", "d", "--image=busybox", "--dry-run=server", "-o", "json")
    assert json.loads(shown)["spec"]["progressDeadlineSeconds"] == 600
    kube("create", "configmap", "c", "--from-literal=x=1")
    kube("patch", "configmap", "c", "-p", '{"data":{"x":"2"}}', "--dry-run=server")
    kube("delete", "configmap", "c", "--dry-run=server")
    kube(
        "apply",
        "--server-side",
        "--dry-run=server",
        "-f",
        "-",
        stdin={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}},
    )
    assert kube.value("configmap/c", "{.data.x}") == "1"
    assert "not found" in kube.fails("get", "deployment", "d")
    assert "not found" in kube.fails("get", "configmap", "n")


@pytest.mark.parametrize(
    "manifest",
    ["{", "a: [", "kind: Pod", '{"apiVersion":"v1"}', "apiVersion: nope/v9\nkind: Thing\nmetadata: {name: x}"],
)
def test_bad_manifests_are_refused(kube: Kube, manifest: str) -> None:
    assert "error" in kube.fails("create", "-f", "-", stdin=manifest).lower()


def test_apply_prune_and_sets(kube: Kube) -> None:
    def config(name: str) -> dict[str, object]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"set": "one"}}}

    kube.apply(config("a"), config("b"))
    said = kube(
        "apply", "--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", stdin=config("a")
    )
    assert "configmap/b pruned" in said
    kube("apply", "--server-side", "--field-manager=x", "-f", "-", stdin=config("a"))
    assert "x" in kube(
        "get", "configmap", "a", "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}"
    )
    kube("apply", "view-last-applied", "configmap/a")
    kube("delete", "-f", "-", "--ignore-not-found", stdin=config("a"))
    kube("delete", "-f", "-", "--ignore-not-found", stdin=config("a"))
