"""`make train` as somebody who has just cloned the repository sees it; with fewer pictures."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from tests.e2e.expecting import EXAMPLES, board_address, need
from tests.running import ROOT, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]
EXAMPLE = EXAMPLES / "02-parallel-training"


@pytest.fixture
def danlu(tmp_path: Path) -> Iterator[Danlu]:
    found = Danlu(tmp_path, variables={"DANLU_HOME": str(tmp_path / "data")})
    yield found
    found.command("down", check=False)


def test_from_nothing_to_a_model(danlu: Danlu, tmp_path: Path) -> None:
    need("torch")
    shorter = tmp_path / "example"
    shutil.copytree(EXAMPLE, shorter)
    job = yaml.safe_load((shorter / "job.yaml").read_text())
    container = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "PICTURES", "value": "4000"}, {"name": "EPOCHS", "value": "1"}]
    (shorter / "job.yaml").write_text(yaml.safe_dump(job))
    said = danlu.terminal(f"{ROOT}/scripts/train {shorter}/job.yaml", timeout=500)
    plain = re.sub(r"\r\x1b\[K|\[[█·]+\][^\n]*?(?=\r|$)", "\n", said)
    assert "created PyTorchTrainingJob mnist-parallel" in plain
    assert re.search(r"^Epoch 1/1 \[ *\d+%\] loss=", plain, re.M), plain
    assert re.search(r"^PyTorchTrainingJob mnist-parallel: Succeeded after \d+\.\d s$", plain, re.M), plain
    assert re.search(r"\[█+·*\] epoch 1 of 1, \d+ s, about \d+ s left", said), "a bar says how far it is"
    accuracy = re.search(r"^  accuracy +(0\.\d+)", plain, re.M)
    assert accuracy is not None, plain
    assert float(accuracy[1]) > 0.5
    model = re.search(r"^  model +(\S+\.pt) \(\d+ KiB\)", plain, re.M)
    assert model is not None, plain
    assert os.path.getsize(model[1]) > 100_000
    board = re.search(r"^  TensorBoard +http://\S+/t9k/tensorboards/projects/default/name/(\S+)/$", plain, re.M)
    assert board is not None, plain
    with urlopen(board_address(danlu, board[1]), timeout=30) as answer:
        assert answer.status == 200
    assert re.search(r"^  console +http://\S+token=", plain, re.M), plain
