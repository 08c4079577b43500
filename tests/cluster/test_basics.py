"""Example 00 on a cluster: `make train`'s job, and the document's own with quota, secret, volumes and a GPU."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.cluster import images
from tests.cluster.cluster import Cluster
from tests.cluster.configuration import PROVISIONER
from tests.cluster.place import NODE
from tests.cluster.target import OnCluster
from tests.e2e.expecting import need
from tests.running import ROOT

pytestmark = pytest.mark.timeout(420)
EXAMPLE = ROOT / "examples/00-training-basics"
IN = ("-n", "model-training-basics")
JOB = "cifar10-training-basic"


@pytest.fixture
def danlu(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> OnCluster:
    need("torch")
    return OnCluster(cluster.place, tmp_path_factory.mktemp("basics"))


def test_the_first_job(danlu: OnCluster) -> None:
    run = [sys.executable, str(ROOT / "examples/run.py"), str(EXAMPLE / "first-job.yaml"), "--code", "train.py"]
    said = danlu.run(*run, "--kubeconfig", str(danlu.kubeconfig), timeout=300).stdout
    assert "Epoch 3/3" in said
    assert "Complete" in said


def test_the_document(danlu: OnCluster, cluster: Cluster) -> None:
    """A cluster's administrator has made the class `fast-ssd`, has GPUs, and the image was pushed: stand-ins here."""
    fast = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast-ssd"},
        "provisioner": PROVISIONER,
    }  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(fast))
    gpu = json.dumps({"status": {"capacity": {"nvidia.com/gpu": "1"}}})
    danlu.kubectl("patch", "node", NODE, "--subresource=status", "-p", gpu)
    images.store(cluster.path).stand_in(
        cluster.place.built, "your-registry/model-training:basic", {"/workspace/train.py": EXAMPLE / "train.py"}
    )
    for file in ("namespace.yaml", "storage.yaml"):
        danlu.kubectl("apply", "-f", str(EXAMPLE / file))
    danlu.kubectl("create", "secret", "generic", "wandb-secret", "--from-literal=api-key=your-wandb-api-key", *IN)
    danlu.kubectl("apply", "-f", str(EXAMPLE / "training-job.yaml"))
    danlu.kubectl("wait", "--for=condition=Complete", f"job/{JOB}", *IN, "--timeout=300s", timeout=310)
    quota = danlu.kubectl("describe", "quota", "training-quota", *IN)
    assert re.search(r"requests\.nvidia\.com/gpu\s+0\s+1\n", quota), "it is given back when the job has ended"
    log = danlu.kubectl("logs", *IN, "-l", f"job-name={JOB}", "--tail=-1")
    accuracies = [float(found) for found in re.findall(r"Epoch \d/3: .*Accuracy=([\d.]+)%", log)]
    assert len(accuracies) == 3
    assert accuracies[-1] > 90
