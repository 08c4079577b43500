"""`danlu install` and `danlu uninstall` on a real control plane, as an administrator uses them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.operator.install.conftest import Danlu, Kubectl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "kept", "namespace": "default"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "a"}]}}}
        }
    },
}
NO_WAIT = ("--yes", "--no-wait")  # no node: nothing gets ready


def operator(kubectl: Kubectl) -> Any:
    return kubectl.get("deployment", "danlu-operator", "-n", "danlu-system")


def test_a_dry_run_changes_nothing(danlu: Danlu, kubectl: Kubectl) -> None:
    said = danlu("install", "--dry-run")
    assert said.code == 0, said.err
    assert "+ Deployment danlu-system/danlu-operator" in said.out
    assert "nothing was changed" in said.out
    assert "no StorageClass is the default one" in said.out
    assert "danlu-system" not in kubectl.names("namespaces")
    assert not kubectl.names("crds")


def test_without_anybody_to_ask_nothing_is_changed(danlu: Danlu, kubectl: Kubectl) -> None:
    said = danlu("install")
    assert said.code == 1
    assert "--yes" in said.err
    assert "danlu-system" not in kubectl.names("namespaces")


def test_install_twice(danlu: Danlu, kubectl: Kubectl) -> None:
    first = danlu("install", *NO_WAIT)
    assert first.code == 0, first.err
    assert "created Deployment danlu-system/danlu-operator" in first.out
    assert len(kubectl.names("crds")) == 9
    key = kubectl.get("secret", "danlu-console", "-n", "danlu-system")["data"]
    second = danlu("install", *NO_WAIT)
    assert second.code == 0, second.err
    assert "nothing changes" in second.out
    assert kubectl.get("secret", "danlu-console", "-n", "danlu-system")["data"] == key


def test_waiting_shows_the_reason(danlu: Danlu, kubectl: Kubectl) -> None:
    made = "--for=jsonpath={.status.unavailableReplicas}=2"
    kubectl("-n", "danlu-system", "wait", made, "deployment/danlu-operator", "--timeout=100s")
    kubectl("-n", "danlu-system", "wait", "--for=condition=PodScheduled=false", "pod", "--all", "--timeout=100s")
    said = danlu("install", "--yes", "--timeout", "2")
    assert said.code == 1
    assert "waiting for danlu-operator: 0 of 2 ready" in said.out
    assert "no nodes available" in said.err
    assert "→" in said.err


def test_an_upgrade_keeps_jobs_and_what_was_chosen(danlu: Danlu, kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", manifest=JOB)
    before = kubectl.get("pytorchjob", "kept")["metadata"]["uid"]
    changed = danlu("install", *NO_WAIT, "--replicas", "1", "--image", "registry.example/danlu:9", "--no-console")
    assert changed.code == 0, changed.err
    assert "-  replicas: 2" in changed.out
    assert "+  replicas: 1" in changed.out
    assert "deleted Deployment danlu-system/danlu-console" in changed.out
    again = danlu("install", *NO_WAIT)
    assert "as chosen before" in again.out
    assert "nothing changes" in again.out
    spec = operator(kubectl)["spec"]
    assert spec["replicas"] == 1
    assert spec["template"]["spec"]["containers"][0]["image"] == "registry.example/danlu:9"
    assert kubectl.get("pytorchjob", "kept")["metadata"]["uid"] == before
    back = danlu("install", *NO_WAIT, "--console", "--replicas", "2", "--image", "none")
    assert "created Deployment danlu-system/danlu-console" in back.out
    assert operator(kubectl)["spec"]["template"]["spec"]["containers"][0]["image"].startswith("docker.io/danlu/danlu:")


def test_what_somebody_changed_by_hand_is_shown_and_put_right(danlu: Danlu, kubectl: Kubectl) -> None:
    kubectl("-n", "danlu-system", "scale", "deployment/danlu-operator", "--replicas=0")
    said = danlu("install", *NO_WAIT)
    assert "~ Deployment danlu-system/danlu-operator" in said.out
    assert operator(kubectl)["spec"]["replicas"] == 2


def test_one_cluster_has_one(danlu: Danlu) -> None:
    said = danlu("install", *NO_WAIT, "--namespace", "another")
    assert said.code == 1
    assert "danlu-system" in said.err
    assert "--namespace danlu-system" in said.err


def test_an_engine_that_is_missing_is_named(danlu: Danlu) -> None:
    said = danlu("install", *NO_WAIT, "--gang", "volcano")
    assert said.code == 1
    assert "podgroups.scheduling.volcano.sh" in said.err
    assert "Nothing was changed" in said.err


def test_addons(danlu: Danlu, kubectl: Kubectl) -> None:
    said = danlu("install", *NO_WAIT, "--addons", "nvidia,dcgm")
    assert said.code == 0, said.err
    assert "kubectl label node" in said.out
    assert {"nvidia-device-plugin-daemonset", "dcgm-exporter"} == kubectl.names("daemonsets", "-n", "kube-system")
    danlu("install", *NO_WAIT, "--addons", "none")
    assert not kubectl.names("daemonsets", "-n", "kube-system")
    assert danlu("install", "--addons", "amd").code == 2


def test_an_identity_provider_lies_in_a_secret(danlu: Danlu, kubectl: Kubectl, tmp_path: Path) -> None:
    """It is given once, kept by the next installation, and never shown."""
    (tmp_path / "secret").write_text("very secret\n")
    given = ("--oidc-issuer", "https://id.example.com", "--oidc-client-secret-file", str(tmp_path / "secret"))
    assert "belong together" in danlu("install", *NO_WAIT, *given).err
    first = danlu("install", *NO_WAIT, *given, "--oidc-client-id", "danlu")
    assert "created Secret danlu-system/danlu-console-oidc" in first.out
    changed = danlu("install", *NO_WAIT, "--oidc-client-id", "console")
    assert "~ Secret danlu-system/danlu-console-oidc" in changed.out
    assert "nothing changes" in danlu("install", *NO_WAIT).out
    data = kubectl.get("secret", "danlu-console-oidc", "-n", "danlu-system")["data"]
    found = {name: base64.b64decode(text).decode() for name, text in data.items()}
    assert found == {"issuer": "https://id.example.com", "client-id": "console", "client-secret": "very secret\n"}
    for said in (first, changed):
        assert data["client-secret"] not in said.out
    spec = kubectl.get("deployment", "danlu-console", "-n", "danlu-system")["spec"]["template"]["spec"]
    mounted = {volume["name"]: volume.get("secret") for volume in spec["volumes"]}
    assert mounted["oidc"]["secretName"] == "danlu-console-oidc"
    assert "deleted Secret danlu-system/danlu-console-oidc" in danlu("install", *NO_WAIT, "--oidc-issuer", "none").out
    # One that somebody made is theirs.
    kubectl("-n", "danlu-system", "create", "secret", "generic", "danlu-console-oidc", "--from-literal=issuer=x")
    assert "nothing changes" in danlu("install", *NO_WAIT).out
    kubectl("-n", "danlu-system", "delete", "secret", "danlu-console-oidc")


def test_uninstall_keeps_what_users_made(danlu: Danlu, kubectl: Kubectl) -> None:
    said = danlu("uninstall", "--yes")
    assert said.code == 0, said.err
    assert "1 PyTorchJob" in said.out
    assert "deleted Namespace danlu-system" in said.out
    assert kubectl.get("pytorchjob", "kept")["metadata"]["name"] == "kept"
    assert {"danlu-view", "danlu-edit"} <= kubectl.names("clusterroles")
    assert "danlu-operator" not in kubectl.names("clusterroles")
    assert "danlu-operator" not in kubectl.names("clusterrolebindings")
    kubectl("wait", "--for=delete", "namespace/danlu-system", "--timeout=60s")
    assert "nothing to take away" in danlu("uninstall").out


def test_what_was_kept_is_taken_up_again_and_deleted_when_asked(danlu: Danlu, kubectl: Kubectl) -> None:
    said = danlu("install", *NO_WAIT)
    assert said.code == 0, said.err
    assert kubectl.get("pytorchjob", "kept")["metadata"]["name"] == "kept"
    kubectl("-n", "danlu-system", "create", "configmap", "somebodys", "--from-literal=a=b")
    assert danlu("uninstall", "--delete-data").code == 1  # nobody to ask
    assert kubectl.get("pytorchjob", "kept")["metadata"]["name"] == "kept"
    said = danlu("uninstall", "--delete-data", "--yes")
    assert said.code == 0, said.err
    assert "1 PyTorchJob" in said.out
    assert "ConfigMap somebodys" in said.out
    assert not kubectl.names("crds")
    assert "danlu-system" in kubectl.names("namespaces")
