"""Parameter servers with real TensorFlow: the chief ends, and whoever would serve for ever is ended."""

from __future__ import annotations

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
