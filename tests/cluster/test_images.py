"""The images of deploy/images: built without a hub by scripts/build-images, run as a cluster's strictest rules want.

Training is built without torch and CUDA: 5 GB prove nothing about the recipe that the rest does not.
"""

from __future__ import annotations

import json

import pytest

from tests.cluster import images
from tests.cluster.building import BASE, Builder
from tests.cluster.cluster import Cluster
from tests.cluster.conftest import Space

pytestmark = [pytest.mark.timeout(900)]
STRICT = {
    "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
PROOF = {
    # accelerate needs torch to be imported.
    "training": "import importlib.util as u, transformers, datasets, wandb, tensorboard; "
    "assert u.find_spec('accelerate'); print('it is there')",
    "notebook": "import jupyterlab, asyncssh, matplotlib; print('it is there')",
    "tensorboard": "import tensorboard.main; print('it is there')",
}
MOST_MB = {"danlu": 200, "tensorboard": 300, "notebook": 500, "training": 1500}  # above the base image


@pytest.fixture(scope="module")
def builder(cluster: Cluster) -> Builder:
    return Builder(images.store(cluster.path), cluster.place)


def size_mb(builder: Builder, image: str) -> float:
    """What its own layers hold, unpacked."""
    sizes = json.loads(builder.buildah("images", "--json", image))
    return float(sizes[0]["size"].split()[0]) if "MB" in sizes[0]["size"] else 1000 * float(sizes[0]["size"].split()[0])


def ended(space: Space, pod: str) -> str:
    """What it printed, however it ended."""
    phase = ("get", "pod", pod, "-o", "jsonpath={.status.phase}")
    space.danlu.wait(f"pod {pod} to end", lambda: space.danlu.kubectl(*phase) in ("Succeeded", "Failed"))
    return space.danlu.kubectl("logs", pod)


@pytest.mark.parametrize("name", PROOF)
def test_an_image_runs_as_nobody(builder: Builder, space: Space, name: str) -> None:
    # One of them is built twice and has to come out the same: all are made alike, and this one is the quickest.
    image = builder.build(name, *(["--twice"] if name == "tensorboard" else []))
    assert size_mb(builder, image) - size_mb(builder, BASE) < MOST_MB[name]
    container = {
        "name": "c", "image": image, "imagePullPolicy": "Always", "securityContext": STRICT,
        "command": ["python3", "-c", PROOF[name]],
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }  # fmt: skip
    space.danlu.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    assert "it is there" in ended(space, name)


def test_danlu_itself_needs_no_rights_and_no_disk(builder: Builder, space: Space) -> None:
    image = builder.build("danlu")
    assert size_mb(builder, image) - size_mb(builder, BASE) < MOST_MB["danlu"]
    container = {
        "name": "c", "image": image, "args": ["install", "--help"],
        "securityContext": {**STRICT, "readOnlyRootFilesystem": True},
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "danlu"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }  # fmt: skip
    space.danlu.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    assert "--without-kinds" in ended(space, "danlu")
