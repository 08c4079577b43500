"""Parameter servers with real TensorFlow: the chief ends, and whoever would serve for ever is ended."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.e2e.expecting import Example, get, need, need_mnist
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    need("tensorflow")
    found = make_danlu()
    need_mnist(found)
    return found


def test_parameter_servers_train_and_go(danlu: Danlu) -> None:
    example = Example("05-parameter-server")
    example.submit(danlu)
    example.ends_as_expected(danlu)
    left = danlu.kubectl("get", "pods", "-l", "tensorstack.dev/owner-name=mnist-ps", "-o", "name").split()
    assert left == [f"pod/{example.master(danlu)}"], "only the chief's pod stays, with its log"
    phases = {
        one["name"].rsplit("-", 2)[1]: one["phase"]
        for task in get(danlu, example.job)["status"]["tasks"]
        for one in task["replicas"]
    }
    assert phases == {"chief": "Succeeded", "worker": "Deleted", "ps": "Deleted"}


LOAD = """
import os
from tensorflow.keras import datasets
for _ in range(2):  # fetched, and found again
    (pictures, answers), (_, tested) = datasets.mnist.load_data(path=os.path.join(os.getcwd(), "mnist.npz"))
    print(pictures.shape, tested[:3], os.path.exists("mnist.npz"))
"""


def test_keras_finds_its_data_without_a_network(danlu: Danlu) -> None:
    """As tutorials load it; Keras itself would only take one particular file from one particular site."""
    container = {"name": "c", "image": "tensorflow/tensorflow:2.14.0", "workingDir": "/tmp"}
    spec = {"restartPolicy": "Never", "containers": [{**container, "command": ["python", "-c", LOAD]}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "loads"}, "spec": spec}
    danlu.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    done = "--for=jsonpath={.status.phase}=Succeeded"
    danlu.kubectl("wait", done, "pod/loads", "--timeout=100s", timeout=120)
    assert danlu.kubectl("logs", "loads").count("(60000, 28, 28) [7 2 1] True") == 2
