"""Kubeflow's first example, as its document tells it: the commands, the form of the log, the accuracy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.running import ROOT, Danlu

from danlu.environments import datasets
from danlu.environments.catalogue import Catalogue, data_folder

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLE = ROOT / "examples/03-kubeflow-pytorchjob"
IN = ("-n", "kubeflow")
ACCURACY = 0.7313  # what the document reached


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    if not Catalogue(Path("/nonexistent")).environments()["torch"].is_built:
        pytest.skip("the environment `torch` is not built; `danlu images build torch` makes it")
    if not datasets.complete(data_folder() / "fashion-mnist"):
        pytest.skip("Fashion-MNIST is not here; `danlu data get fashion-mnist` fetches it")
    return make_danlu()


def test_the_document_as_written(danlu: Danlu) -> None:
    assert "pytorchjobs.kubeflow.org" in danlu.kubectl("get", "crd")
    danlu.kubectl("create", "namespace", "kubeflow")
    made = danlu.kubectl("create", "-f", str(EXAMPLE / "job.yaml"))
    assert made == "pytorchjob.kubeflow.org/pytorch-simple created\n"

    def pods() -> list[str]:
        return danlu.kubectl("get", "pods", "-l", "job-name=pytorch-simple", *IN, "-o", "name").split()

    danlu.wait("both pods", lambda: pods() == ["pod/pytorch-simple-master-0", "pod/pytorch-simple-worker-0"])
    running = "--for=jsonpath={.status.phase}=Running"
    danlu.kubectl("wait", running, "pod/pytorch-simple-master-0", *IN, "--timeout=60s")
    log = danlu.kubectl("logs", "-f", "pod/pytorch-simple-master-0", *IN, timeout=500)
    assert "Using distributed PyTorch with gloo backend" in log
    lines = re.findall(
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ INFO     Train Epoch: 1 \[(\d+)/60000 \((\d+)%\)\]\tloss=", log, re.M
    )
    assert [int(done) for done, _ in lines] == list(range(0, 60000, 640))
    last = log.strip().splitlines()[-1]
    found = re.search(
        r"\{metricName: accuracy, metricValue: (0\.\d{4})\};\{metricName: loss, metricValue: \d\.\d{4}\}$", last
    )
    assert found, last
    assert float(found[1]) >= ACCURACY
    danlu.wait(
        "the job's success",
        lambda: danlu.kubectl("get", "pytorchjob", "pytorch-simple", *IN, "--no-headers").split()[1] == "Succeeded",
    )
