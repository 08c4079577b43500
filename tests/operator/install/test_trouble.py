"""What stops an installation before it changes anything: rights, other operators, other people's definitions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from benchmarks.servers import RealControlPlane
from tests.operator.install.conftest import Danlu, Kubectl
from tests.running import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KUBEFLOW = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "training-operator", "namespace": "kubeflow"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "docker.io/kubeflow/training-operator:v1-855e096"}]},
        },
    },
}


def somebody(real: RealControlPlane, kubectl: Kubectl, folder: Path, role: str | None) -> Path:
    """A kubeconfig of an account that has this cluster role, or none."""
    kubectl("create", "serviceaccount", folder.name)
    if role:
        who = f"--serviceaccount=default:{folder.name}"
        kubectl("create", "clusterrolebinding", folder.name, f"--clusterrole={role}", who)
    token = kubectl("create", "token", folder.name).stdout.decode().strip()
    config = yaml.safe_load(real.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_missing_rights_are_named(real: RealControlPlane, danlu: Danlu, kubectl: Kubectl, tmp_path: Path) -> None:
    folder = tmp_path / "nobody"
    folder.mkdir()
    said = danlu("install", "--yes", kubeconfig=somebody(real, kubectl, folder, None))
    assert said.code == 1
    assert "system:serviceaccount:default:nobody may not create" in said.err
    assert "kubectl create clusterrolebinding" in said.err
    assert "danlu-system" not in kubectl.names("namespaces")


def test_rights_that_one_does_not_have_cannot_be_granted(
    real: RealControlPlane, danlu: Danlu, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Who may write roles, but not what the roles allow."""
    kubectl(
        "create", "clusterrole", "installer", "--verb=get,list,create,patch,delete",
        "--resource=namespaces,customresourcedefinitions.apiextensions.k8s.io,clusterroles,clusterrolebindings,roles,"
        "rolebindings,serviceaccounts,services,secrets,configmaps,deployments.apps,daemonsets.apps,"
        "networkpolicies.networking.k8s.io,storageclasses.storage.k8s.io,nodes",
    )  # fmt: skip
    folder = tmp_path / "installer"
    folder.mkdir()
    said = danlu("install", "--yes", kubeconfig=somebody(real, kubectl, folder, "installer"))
    assert said.code == 1
    assert re.search("ClusterRole danlu-[a-z]+ would be refused: .* not currently held", said.err)
    assert "cluster-admin" in said.err
    assert "danlu-system" not in kubectl.names("namespaces")


def test_nobody_answers(danlu: Danlu, tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
    }  # fmt: skip
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    said = danlu("install", "--yes", kubeconfig=path)
    assert said.code == 1
    assert "https://127.0.0.1:1 cannot be reached" in said.err
    missing = danlu("install", "--yes", kubeconfig=tmp_path / "none")
    assert "--kubeconfig" in missing.err


def test_kubeflows_operator_is_found_and_its_kinds_can_be_left_to_it(danlu: Danlu, kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "kubeflow")
    kubectl("create", "-f", "-", manifest=KUBEFLOW)
    for name in ("pytorchjobs", "tfjobs"):  # as Kubeflow installs them: not marked as Danlu's
        crd = yaml.load((ROOT / f"deploy/crds/kubeflow.org_{name}.yaml").read_text(), yaml.CSafeLoader)
        del crd["metadata"]["labels"]
        kubectl("apply", "--server-side", "-f", "-", manifest=crd)
    said = danlu("install", "--yes", "--no-wait")
    assert said.code == 1
    assert "Deployment kubeflow/training-operator" in said.err
    assert "pytorchjobs.kubeflow.org" in said.err
    assert "--without-kinds kubeflow" in said.err
    assert "danlu-system" not in kubectl.names("namespaces")
    said = danlu("install", "--yes", "--no-wait", "--without-kinds", "kubeflow")
    assert said.code == 0, said.err
    assert not kubectl.get("crd", "pytorchjobs.kubeflow.org")["metadata"].get("labels")
    assert "tensorboards.tensorstack.dev" in kubectl.names("crds")
    # Kubeflow's is switched off: its kinds are taken over, but only when told so
    kubectl("-n", "kubeflow", "scale", "deployment/training-operator", "--replicas=0")
    assert danlu("install", "--yes", "--no-wait", "--without-kinds", "none").code == 1
    said = danlu("install", "--yes", "--no-wait", "--without-kinds", "none", "--take-over")
    assert said.code == 0, said.err
    assert kubectl.get("crd", "pytorchjobs.kubeflow.org")["metadata"]["labels"] == {
        "app.kubernetes.io/part-of": "danlu"
    }


def test_a_kind_that_does_not_exist(danlu: Danlu) -> None:
    said = danlu("install", "--without-kinds", "pods")
    assert said.code == 2
    assert "PyTorchJob" in said.err


def test_only_definitions(danlu: Danlu, kubectl: Kubectl) -> None:
    danlu("uninstall", "--yes", "--delete-data")
    kubectl("wait", "--for=delete", "namespace/danlu-system", "--timeout=60s")
    said = danlu("install", "--yes", "--crds-only")
    assert said.code == 0, said.err
    assert len(kubectl.names("crds")) == 9
    assert "danlu-system" not in kubectl.names("namespaces")
    assert "nothing changes" in danlu("install", "--yes", "--crds-only").out
