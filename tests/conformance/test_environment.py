"""What a container finds: variables and files from everywhere, volumes that live as long as they should."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.conftest import Kube

pytestmark = pytest.mark.node

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def sources(kube: Kube) -> None:
    kube(
        "create",
        "configmap",
        "conf",
        "--from-literal=colour=red",
        "--from-literal=size=big",
        "--from-literal=file.txt=text",
    )
    kube("create", "secret", "generic", "safe", "--from-literal=word=open sesame", "--from-literal=bin=\\x01")


def field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(name: str, what: str, divisor: str = "1") -> dict[str, Any]:
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": what, "divisor": divisor}}}


def test_variables(kube: Kube, pod: Make, sources: None) -> None:
    env = [
        {"name": "PLAIN", "value": "plain"},
        {"name": "MADE", "value": "$(PLAIN)-$(COLOUR)-$$(PLAIN)-$(UNKNOWN)"},
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "colour"}}},
        {"name": "LATER", "value": "$(COLOUR)"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "safe", "key": "word"}}},
        {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "no-such", "key": "x", "optional": True}}},
        field("POD", "metadata.name"), field("NS", "metadata.namespace"), field("UID", "metadata.uid"),
        field("IP", "status.podIP"), field("NODE", "spec.nodeName"), field("LABEL", "metadata.labels['app']"),
        field("NOTE", "metadata.annotations['example.com/note']"), field("ACCOUNT", "spec.serviceAccountName"),
        resource("CPU", "limits.cpu", "1m"), resource("MEM", "requests.memory", "1Mi"), resource("CORES", "limits.cpu"),
    ]  # fmt: skip
    made = pod(
        "vars", "env; echo arg=$0; echo args=$*", env=env, args=["$(PLAIN)", "x$(COLOUR)y", "$$(PLAIN)"],
        envFrom=[{"configMapRef": {"name": "conf"}, "prefix": "CONF_"},
                 {"secretRef": {"name": "gone", "optional": True}}],
        resources={"requests": {"memory": "64Mi", "cpu": "100m"}, "limits": {"cpu": "1500m", "memory": "128Mi"}},
    )  # fmt: skip
    made["metadata"]["annotations"] = {"example.com/note": "a note"}
    kube.apply(made)
    said = kube.output("vars")
    found = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    live = kube.get("pod", "vars")
    expected = {
        "PLAIN": "plain", "MADE": "plain-$(COLOUR)-$(PLAIN)-$(UNKNOWN)", "COLOUR": "red", "LATER": "red",
        "WORD": "open sesame", "POD": "vars", "NS": kube.namespace, "UID": live["metadata"]["uid"],
        "IP": live["status"]["podIP"], "NODE": live["spec"]["nodeName"], "LABEL": "vars", "NOTE": "a note",
        "ACCOUNT": "default", "CPU": "1500", "MEM": "64", "CORES": "2", "CONF_colour": "red", "CONF_size": "big",
        "HOSTNAME": "vars", "arg": "plain", "args": "xredy $(PLAIN)",
    }  # fmt: skip
    assert {name: found.get(name) for name in expected} == expected
    assert "NONE" not in found
    assert found["KUBERNETES_SERVICE_HOST"]
    assert found["KUBERNETES_SERVICE_PORT"].isdigit()


def test_files(kube: Kube, pod: Make, sources: None) -> None:
    mode = 0o400
    volumes = [
        {"name": "conf", "configMap": {"name": "conf", "items": [{"key": "file.txt", "path": "deep/name.txt"}]}},
        {"name": "safe", "secret": {"secretName": "safe", "defaultMode": mode}},
        {"name": "absent", "configMap": {"name": "no-such", "optional": True}},
        {"name": "about", "downwardAPI": {"items": [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "cpu", "resourceFieldRef": {
                "containerName": "main", "resource": "requests.cpu", "divisor": "1m"}}]}},
        {"name": "all", "projected": {"sources": [
            {"configMap": {"name": "conf", "items": [{"key": "size", "path": "size"}]}},
            {"secret": {"name": "safe", "items": [{"key": "word", "path": "secret/word"}]}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "token", "audience": "me", "expirationSeconds": 600}}]}},
        {"name": "whole", "configMap": {"name": "conf"}},
    ]  # fmt: skip
    mounts = [
        {"name": "conf", "mountPath": "/conf"}, {"name": "safe", "mountPath": "/safe", "readOnly": True},
        {"name": "absent", "mountPath": "/absent"}, {"name": "about", "mountPath": "/about"},
        {"name": "all", "mountPath": "/all"}, {"name": "whole", "mountPath": "/opt/one.txt", "subPath": "file.txt"},
    ]  # fmt: skip
    script = """
    echo conf=$(cat /conf/deep/name.txt); echo safe=$(cat /safe/word); echo mode=$(stat -L -c %a /safe/word)
    echo absent=$(ls /absent | wc -l); echo labels=$(cat /about/labels); echo cpu=$(cat /about/cpu)
    echo size=$(cat /all/size); echo word=$(cat /all/secret/word); echo name=$(cat /all/name)
    echo token=$(cat /all/token)
    echo one=$(cat /opt/one.txt); (echo no > /safe/word) 2>/dev/null && echo written=yes || echo written=no
    echo account=$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace)
    """
    kube.apply(
        pod("files", script, volumeMounts=mounts, resources={"requests": {"cpu": "250m"}}, spec={"volumes": volumes})
    )
    found = dict(line.split("=", 1) for line in kube.output("files").splitlines())
    token = found.pop("token")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == ["me"]
    assert claims["kubernetes.io"]["pod"]["name"] == "files"
    assert found == {
        "conf": "text", "safe": "open sesame", "mode": "400", "absent": "0", "labels": 'app="files"', "cpu": "250",
        "size": "big", "word": "open sesame", "name": "files", "one": "text", "written": "no",
        "account": kube.namespace,
    }  # fmt: skip


def test_files_follow_their_source(kube: Kube, pod: Make, sources: None) -> None:
    spec = {"volumes": [{"name": "conf", "configMap": {"name": "conf"}}]}
    kube.apply(pod("follows", "sleep 600", volumeMounts=[{"name": "conf", "mountPath": "/conf"}], spec=spec))
    kube.running("follows")
    assert kube("exec", "follows", "--", "cat", "/conf/colour") == "red"
    kube("patch", "configmap", "conf", "-p", '{"data":{"colour":"green"}}')
    kube.wait("the file to change", lambda: kube("exec", "follows", "--", "cat", "/conf/colour") == "green", timeout=90)


def test_volumes_of_a_pod(kube: Kube, pod: Make) -> None:
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "m", "mountPath": "/m"}]
    first = {
        "name": "first",
        "image": "busybox",
        "volumeMounts": mounts,
        "command": ["sh", "-c", "mkdir /v/sub; echo 1 > /v/sub/a"],
    }
    script = """cat /v/sub/a; cat /sub/a; (touch /read/x) 2>/dev/null || echo read-only
    df /m | tail -n 1 | cut -d' ' -f1
    stat -c %a /v; cat /by-name/vols/a"""
    made = pod(
        "empty", script, env=[field("NAME", "metadata.name")],
        volumeMounts=[*mounts, {"name": "v", "mountPath": "/sub", "subPath": "sub"},
                      {"name": "v", "mountPath": "/read", "readOnly": True},
                      {"name": "v", "mountPath": "/by-name/vols", "subPathExpr": "sub"}],
        spec={"volumes": volumes, "initContainers": [first]},
    )  # fmt: skip
    kube.apply(made)
    assert kube.output("empty").split() == ["1", "1", "read-only", "tmpfs", "777", "1"]


def test_claims_outlive_pods(kube: Kube, pod: Make) -> None:
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}},
    }  # fmt: skip
    spec = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    mount = [{"name": "d", "mountPath": "/data"}]
    kube.apply(claim, pod("writer", "echo kept > /data/file", volumeMounts=mount, spec=spec))
    kube.output("writer")
    assert kube.value("pvc/data", "{.status.phase}") == "Bound"
    assert kube.value("pvc/data", "{.status.capacity.storage}") == "10Mi"
    kube("delete", "pvc", "data", "--wait=false")
    assert kube.value("pvc/data", "{.metadata.deletionTimestamp}")  # in use: it waits for the pod
    kube("delete", "pod", "writer")
    kube.gone("pvc/data")
    kube.apply(claim, pod("writer", "echo kept > /data/file", volumeMounts=mount, spec=spec))
    kube.output("writer")
    kube("delete", "pod", "writer")
    kube.apply(pod("reader", "cat /data/file", volumeMounts=mount, spec=spec))
    assert kube.output("reader") == "kept\n"


def test_paths_that_lead_out_are_refused(kube: Kube, pod: Make) -> None:
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}]}
    bad = pod("bad", volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "../.."}], spec=volumes)
    assert "must not contain '..'" in kube.fails("create", "-f", "-", stdin=bad)
    link = {"name": "link", "image": "busybox", "command": ["ln", "-s", "/etc", "/v/out"],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}  # fmt: skip
    sly = pod(
        "sly", "cat /v/passwd", volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "out"}],
        spec={**volumes, "initContainers": [link]},
    )  # fmt: skip
    kube.apply(sly)
    path = "{.status.containerStatuses[0].state.waiting.reason}"
    kube.until("pod/sly", path, "CreateContainerConfigError", "CreateContainerError")
