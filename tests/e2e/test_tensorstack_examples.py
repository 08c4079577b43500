"""Examples 01, 02 and 04 with real JupyterLab, torch and TensorFlow; fewer pictures than users take."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.kinds.notebooks import ask, run_cell, token
from tests.running import ROOT, Danlu

from danlu.embedded.node.images import Catalogue

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = ROOT / "examples"
TRAINING_S = 400.0  # four workers on two cores that others use as well


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    """Seed 004's workers ask for two cores each: a node may promise more than the machine has."""
    found = make_danlu("--nodes", "big:cpu=16,memory=24Gi")
    found.command("data", "get", "mnist", "--to", str(found.home / "data"))  # into the machine's cache, for the pods
    found.kubectl("apply", "-f", str(EXAMPLES / "02-parallel-training/pvc.yaml"))
    return found


def need(environment: str) -> None:
    if not Catalogue(Path("/nonexistent")).environments()[environment].is_built:
        pytest.skip(f"the environment `{environment}` is not built; `danlu images build {environment}` makes it")


def put(danlu: Danlu, name: str, text: str) -> None:
    """Into the claim, as a notebook would."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "notebook"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "c", "image": "busybox", "command": ["sleep", "inf"],
                 "volumeMounts": [{"name": "d", "mountPath": "/mnt"}]},
            ],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "mnist"}}],
        },
    }  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/notebook", "--timeout=60s")
    danlu.kubectl("exec", "-i", "notebook", "--", "sh", "-c", f"cat > /mnt/{name}", stdin=text)


def get(danlu: Danlu, what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(danlu.kubectl("get", what, "-o", "json"))
    return found


def succeeded(danlu: Danlu, what: str) -> dict[str, Any]:
    def look() -> bool:
        status = get(danlu, what).get("status") or {}
        if status.get("phase") == "Failed":
            raise AssertionError(json.dumps(status["conditions"], indent=1))
        return status.get("phase") == "Succeeded"

    danlu.wait(f"{what} to succeed", look, timeout=TRAINING_S)
    status: dict[str, Any] = get(danlu, what)["status"]
    return status


def shown(danlu: Danlu, what: str, wanted: set[str]) -> None:
    """The job's TensorBoard has these curves."""
    danlu.wait("its TensorBoard", lambda: get(danlu, what)["status"]["tensorboard"]["ready"], timeout=180)
    name = get(danlu, what)["status"]["tensorboard"]["name"]
    address = get(danlu, f"tensorboard/{name}")["status"]["url"]

    def look() -> bool:
        with urlopen(f"{address}data/plugin/scalars/tags", timeout=60) as answer:
            return wanted <= {tag for tags in json.loads(answer.read()).values() for tag in tags}

    danlu.wait(f"{wanted} in {address}", look)


async def test_example_01_trains_in_a_cell(danlu: Danlu) -> None:
    need("torch")
    danlu.kubectl("apply", "-f", str(EXAMPLES / "01-first-notebook/notebook.yaml"))
    danlu.wait(
        "JupyterLab", lambda: (get(danlu, "nb/mnist").get("status") or {}).get("phase") == "Running", timeout=180
    )
    notebook = get(danlu, "nb/mnist")
    script = (EXAMPLES / "01-first-notebook/torch_mnist.py").read_text()
    few = script.replace('get("PICTURES", "60000")', 'get("PICTURES", "3000")').replace(
        '"EPOCHS", "2"', '"EPOCHS", "1"'
    )
    said = await run_cell(notebook, token(danlu, notebook), few)
    found = re.search(r"Epoch 1/1 accuracy=(0\.\d+)", said)
    assert found is not None, said
    assert float(found[1]) > 0.8
    names = [one["name"] for one in ask(notebook, "api/contents", token(danlu, notebook))["content"]]
    assert "model_state_dict.pt" in names
    danlu.kubectl("patch", "nb", "mnist", "--type", "merge", "-p", '{"spec":{"suspend":true}}')


def test_example_02_trains_on_four_workers(danlu: Danlu) -> None:
    need("torch")
    script = (EXAMPLES / "02-parallel-training/torch_mnist_trainingjob.py").read_text()
    few = script.replace('"--pictures", type=int, default=0', '"--pictures", type=int, default=8000')
    put(danlu, "torch_mnist_trainingjob.py", few)
    danlu.kubectl("apply", "-f", str(EXAMPLES / "02-parallel-training/job.yaml"))
    status = succeeded(danlu, "pj/mnist-parallel")
    master = status["tasks"][0]["replicas"][0]["name"]
    said = danlu.kubectl("logs", master)
    found = re.search(r"4 processes, .* accuracy (0\.\d+)", said)
    assert found is not None, said
    assert float(found[1]) > 0.85
    assert "model.pt" in danlu.kubectl("exec", "notebook", "--", "ls", "/mnt")
    shown(danlu, "pj/mnist-parallel", {"train/loss", "test/accuracy"})
    danlu.kubectl("delete", "pj", "mnist-parallel")
    danlu.kubectl("exec", "notebook", "--", "rm", "-r", "/mnt/log")  # root's; the next job runs as another user


def test_seed_004_as_printed(danlu: Danlu) -> None:
    need("tensorflow")
    script = (EXAMPLES / "04-tensorflow-job/keras_mnist_trainingjob.py").read_text()
    few = script.replace('os.environ.get("PICTURES", "60000")', '"6000"').replace(
        'os.environ.get("EPOCHS", "2")', '"1"'
    )
    put(danlu, "keras_mnist_trainingjob.py", few)
    danlu.kubectl("apply", "-f", str(EXAMPLES / "04-tensorflow-job/job.yaml"))
    status = succeeded(danlu, "tensorflowjob/mnist")
    assert [one["exitCode"] for one in status["tasks"][0]["replicas"][0]["containers"]] == [0]
    assert "saved_model.pb" in danlu.kubectl("exec", "notebook", "--", "ls", "/mnt/saved_model")
    owner = danlu.kubectl("exec", "notebook", "--", "stat", "-c", "%u", "/mnt/saved_model").strip()
    assert owner == "1000"
    shown(danlu, "tensorflowjob/mnist", {"epoch_loss"})
