"""JupyterLab, torch and TensorBoard as an ordinary account, in an environment that an administrator has shared.

Run by root, the tests become an account that nobody has, and root's own environment lies where it may not go.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.kinds.notebooks import run_cell, token
from tests.running import ORDINARY, ROOT, Danlu

from danlu.environments.catalogue import Catalogue
from danlu.environments.sharing import share

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]
KINDS = ROOT / "src/danlu/kinds"

TRAIN = """
import torch, torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print("together", int(total.item()))
if dist.get_rank() == 0:
    with SummaryWriter("/mnt/log") as writer:
        writer.add_scalar("loss", 0.5, 1)
"""
JOB = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "PyTorchTrainingJob",
    "metadata": {"name": "trains"},
    "spec": {
        "tensorboardSpec": {"image": "pytorch/pytorch", "trainingLogFilesets": ["t9k://pvc/mnist/log"]},
        "replicaSpecs": [{"type": "worker", "replicas": 2, "template": {"spec": {
            "containers": [{
                "name": "pytorch", "image": "pytorch/pytorch", "command": ["python", "-c", TRAIN],
                "volumeMounts": [{"name": "d", "mountPath": "/mnt"}],
            }],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "mnist"}}],
        }}}],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    torch = Catalogue(Path("/nonexistent")).environments()["torch"]
    if not torch.is_built:
        pytest.skip("the environment `torch` is not built; `danlu images build torch` makes it")
    if os.geteuid() != 0:
        pytest.skip("only root can become another account")
    folder = Path(tempfile.mkdtemp(prefix="danlu-shared-"))
    folder.chmod(0o755)
    try:
        share(torch, folder)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu], shared: Path) -> Danlu:
    """A node may promise more than the machine has."""
    found = make_danlu(
        "--no-console", "--nodes", "big:cpu=16,memory=16Gi", user=ORDINARY, variables={"DANLU_CACHE": str(shared)}
    )
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mnist"}, "spec": claim}
    found.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    return found


def get(danlu: Danlu, what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(danlu.kubectl("get", what, "-o", "json"))
    return found


def status(danlu: Danlu, what: str) -> dict[str, Any]:
    found: dict[str, Any] = get(danlu, what).get("status") or {}
    return found


async def test_a_notebook_answers_and_runs_torch(danlu: Danlu) -> None:
    danlu.kubectl("apply", "-f", "-", stdin=(KINDS / "notebook/example.yaml").read_text())
    danlu.wait("JupyterLab", lambda: status(danlu, "nb/mnist").get("phase") == "Running", timeout=120)
    notebook = get(danlu, "nb/mnist")
    code = "import os, torch; print(torch.ones(2).sum().item(), os.path.isdir('/t9k/mnt'))"
    assert await run_cell(notebook, token(danlu, notebook), code) == "2.0 True\n"
    danlu.kubectl("delete", "nb", "mnist")


def test_two_workers_train_together_and_their_tensorboard_shows_it(danlu: Danlu) -> None:
    danlu.kubectl("create", "-f", "-", stdin=json.dumps(JOB))

    def ended() -> bool:
        found = status(danlu, "pj/trains")
        assert found.get("phase") != "Failed", found
        return found.get("phase") == "Succeeded"

    danlu.wait("the job to succeed", ended, timeout=120)
    said = danlu.kubectl("logs", "-l", "tensorstack.dev/owner-name=trains,job-role=master")
    assert said.splitlines()[-1] == "together 2"
    board = f"tb/{status(danlu, 'pj/trains')['tensorboard']['name']}"
    danlu.wait("TensorBoard", lambda: status(danlu, board).get("phase") == "Running", timeout=120)

    def tags() -> dict[str, Any]:
        with urlopen(f"{status(danlu, board)['url']}data/plugin/scalars/tags", timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    danlu.wait("the scalars", lambda: any("loss" in one for one in tags().values()), timeout=60)
