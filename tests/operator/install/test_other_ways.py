"""`kubectl apply -k` and Helm on a real control plane, and how `danlu install` gets on with what they installed."""

from __future__ import annotations

import os
import subprocess

import pytest
from benchmarks.servers import RealControlPlane
from tests.operator.install.conftest import Danlu, Kubectl, programs
from tests.running import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_kubectl(danlu: Danlu, kubectl: Kubectl) -> None:
    kubectl("apply", "-k", str(ROOT / "deploy/default"))
    again = kubectl("apply", "-k", str(ROOT / "deploy/default")).stdout.decode()
    assert not [line for line in again.splitlines() if not line.endswith(" unchanged")]
    # The same objects: `danlu install` only marks them as its own, and adds what a file cannot have.
    said = danlu("install", "--yes", "--no-wait")
    assert said.code == 0, said.err
    created = [line for line in said.out.splitlines() if line.startswith("created")]
    assert created == ["created Secret danlu-system/danlu-console", "created ConfigMap danlu-system/danlu-install"]
    assert danlu("uninstall", "--yes", "--delete-data").code == 0
    kubectl("wait", "--for=delete", "namespace/danlu-system", "--timeout=100s")


def test_helm(real: RealControlPlane, danlu: Danlu, kubectl: Kubectl) -> None:
    path = programs("helm")

    def helm(*words: str) -> str:
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(real.kubeconfig), "HOME": str(real.folder)}
        command = ["helm", *words, "-n", "danlu-system"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    chart = str(ROOT / "deploy/chart")
    helm("install", "danlu", chart, "--create-namespace", "--set", "kinds.TFJob=false")
    assert "tfjobs.kubeflow.org" not in kubectl.names("crds")
    for command, remedy in (("install", "helm upgrade"), ("uninstall", "helm uninstall")):
        said = danlu(command, "--yes")
        assert said.code == 1
        assert remedy in said.err
    helm("upgrade", "danlu", chart, "--set", "operator.replicas=1")
    assert "tfjobs.kubeflow.org" in kubectl.names("crds")
    assert kubectl.get("deployment", "danlu-operator", "-n", "danlu-system")["spec"]["replicas"] == 1
    assert "tfjobs.kubeflow.org" in helm("uninstall", "danlu")  # named among what is kept
    assert len(kubectl.names("crds")) == 9
    assert not kubectl.names("deployments", "-n", "danlu-system")
