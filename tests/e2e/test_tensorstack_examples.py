"""Examples 01, 02 and 04 with real JupyterLab, torch and TensorFlow; fewer pictures than users take."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.e2e.expecting import EXAMPLES, Example, get, need, need_mnist, put, shortened, shown, succeeded
from tests.kinds.notebooks import ask, run_cell, token
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

TRAINING_S = 400.0  # four workers on two cores that others use as well


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    """Seed 004's workers ask for two cores each: a node may promise more than the machine has."""
    found = make_danlu("--no-console", "--nodes", "big:cpu=16,memory=24Gi")
    need_mnist(found)
    found.kubectl("apply", "-f", str(EXAMPLES / "02-parallel-training/pvc.yaml"))
    return found


async def test_example_01_trains_in_a_cell(danlu: Danlu) -> None:
    need("torch")
    danlu.kubectl("apply", "-f", str(EXAMPLES / "01-first-notebook/notebook.yaml"))
    danlu.wait(
        "JupyterLab", lambda: (get(danlu, "nb/mnist").get("status") or {}).get("phase") == "Running", timeout=180
    )
    notebook = get(danlu, "nb/mnist")
    few = shortened(EXAMPLES / "01-first-notebook/torch_mnist.py", PICTURES="3000", EPOCHS="1")
    said = await run_cell(notebook, token(danlu, notebook), few)
    found = re.search(r"Epoch 1/1 accuracy=(0\.\d+)", said)
    assert found is not None, said
    assert float(found[1]) > 0.8
    names = [one["name"] for one in ask(notebook, "api/contents", token(danlu, notebook))["content"]]
    assert "model_state_dict.pt" in names
    danlu.kubectl("patch", "nb", "mnist", "--type", "merge", "-p", '{"spec":{"suspend":true}}')


@pytest.mark.parametrize("expect", ["expect.yaml", "expect-torchrun.yaml"])
def test_example_02_trains_on_four_workers(danlu: Danlu, expect: str) -> None:
    """Four pods of one process, and one pod of four."""
    need("torch")
    example = Example("02-parallel-training", expect)
    example.submit(danlu)
    example.ends_as_expected(danlu)
    danlu.kubectl("delete", example.job)
    danlu.kubectl("exec", "notebook", "--", "rm", "-r", "/mnt/log")  # root's; the next job runs as another user


def test_seed_004_as_printed(danlu: Danlu) -> None:
    need("tensorflow")
    few = shortened(EXAMPLES / "04-tensorflow-job/keras_mnist_trainingjob.py", PICTURES="6000", EPOCHS="1")
    put(danlu, "keras_mnist_trainingjob.py", few)
    danlu.kubectl("apply", "-f", str(EXAMPLES / "04-tensorflow-job/job.yaml"))
    status = succeeded(danlu, "tensorflowjob/mnist", TRAINING_S)
    assert [one["exitCode"] for one in status["tasks"][0]["replicas"][0]["containers"]] == [0]
    assert "saved_model.pb" in danlu.kubectl("exec", "notebook", "--", "ls", "/mnt/saved_model")
    owner = danlu.kubectl("exec", "notebook", "--", "stat", "-c", "%u", "/mnt/saved_model").strip()
    assert owner == "1000"
    shown(danlu, "tensorflowjob/mnist", {"epoch_loss"})
