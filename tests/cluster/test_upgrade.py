"""An operator that is replaced, taken away, or robbed of a right disturbs no job for good."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from danlu.operator.install.options import NAMESPACE
from tests.cluster.conftest import Space

pytestmark = pytest.mark.timeout(600)

WAITS = 'import os, time\nwhile not os.path.exists("/tmp/go"): time.sleep(0.2)\nprint("went on")'


def danlu(space: Space, *words: str) -> str:
    return space.danlu.run(
        sys.executable, "-m", "danlu", *words, "--kubeconfig", str(space.danlu.kubeconfig), timeout=400
    ).stdout


@pytest.fixture
def installed_again(space: Space) -> Iterator[None]:
    """Whatever a test does to the installation: the next one finds it whole."""
    yield
    danlu(space, "install", "--yes", "--gang", "kube", "--replicas", "2", "--console")


def job(space: Space, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(space.danlu.kubectl("get", "pytorchjob", name, "-o", "json"))
    return found


def submit(space: Space, name: str) -> str:
    """A job of one pod that waits to be let go on; the pod's uid."""
    create(space, name)
    space.danlu.kubectl("wait", f"pytorchjob/{name}", "--for=condition=Running", "--timeout=200s", timeout=210)
    return uid(space, name)


def create(space: Space, name: str) -> None:
    container = {"name": "pytorch", "image": "python", "command": ["python3", "-c", WAITS]}
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": {"containers": [container]}}}}}
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}
    space.danlu.kubectl("create", "-f", "-", stdin=json.dumps(manifest))


def uid(space: Space, name: str) -> str:
    return space.danlu.kubectl("get", "pod", f"{name}-master-0", "-o", "jsonpath={.metadata.uid}")


def go_on(space: Space, name: str) -> None:
    space.danlu.kubectl("exec", f"{name}-master-0", "--", "touch", "/tmp/go")
    space.danlu.kubectl("wait", f"pytorchjob/{name}", "--for=condition=Succeeded", "--timeout=200s", timeout=210)
    assert "went on" in space.danlu.kubectl("logs", f"{name}-master-0")


def test_an_upgrade(space: Space, installed_again: None) -> None:
    before = submit(space, "through")
    said = danlu(space, "install", "--yes", "--replicas", "1", "--no-console")
    assert "as chosen before: gang kube" in said
    assert "danlu-operator is ready" in said
    assert uid(space, "through") == before
    go_on(space, "through")


def test_taken_away_and_put_back(space: Space, installed_again: None) -> None:
    before = submit(space, "alone")
    said = danlu(space, "uninstall", "--yes")
    assert "PyTorchJob" in said
    space.danlu.kubectl("wait", "namespace/danlu-system", "--for=delete", "--timeout=120s", timeout=130)
    assert uid(space, "alone") == before, "nobody looks after the job, and it runs"
    danlu(space, "install", "--yes", "--gang", "kube")
    assert uid(space, "alone") == before
    go_on(space, "alone")


def test_a_right_that_the_operator_lacks(space: Space, installed_again: None) -> None:
    """Somebody has cut its role: jobs name the right and the command that gives it back, and then go on."""
    role = json.loads(space.danlu.kubectl("get", "clusterrole", "danlu-operator", "-o", "json"))
    role["rules"] = [rule for rule in role["rules"] if "pods" not in rule["resources"] or "" not in rule["apiGroups"]]
    space.danlu.kubectl("replace", "-f", "-", stdin=json.dumps(role))
    space.danlu.kubectl("delete", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=operator")
    create(space, "stopped")
    space.danlu.kubectl("wait", "pytorchjob/stopped", "--for=condition=Blocked", "--timeout=120s", timeout=130)
    told = next(one for one in job(space, "stopped")["status"]["conditions"] if one["type"] == "Blocked")
    assert 'cannot list resource "pods"' in told["message"]
    assert "`danlu install`" in told["message"]
    events = "involvedObject.kind=PyTorchJob,reason=MissingRight"
    space.danlu.wait(
        "an event that says it, too",
        lambda: "`danlu install`" in space.danlu.kubectl("get", "events", "--field-selector", events),
    )
    danlu(space, "install", "--yes")
    space.danlu.kubectl("wait", "pytorchjob/stopped", "--for=condition=Running", "--timeout=200s", timeout=210)
    go_on(space, "stopped")
