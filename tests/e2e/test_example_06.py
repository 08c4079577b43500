"""Elastic training with real torchrun: workers are killed, the others go on from the checkpoint, and the job ends."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.expecting import Example, get, need, need_mnist
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]
BEGINS = re.compile(r"Process (\d) of (\d) begins after (\d+) pictures")


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    need("torch")
    found = make_danlu()
    need_mnist(found)
    return found


def kill(danlu: Danlu, pod: str) -> None:
    """Its torchrun, as a machine that runs out of memory would."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            is_ours = str(danlu.data) in (folder / "mountinfo").read_text()
        except OSError:
            continue
        if is_ours and f"HOSTNAME={pod}" in variables and any(word.endswith("/torchrun") for word in words):
            os.kill(int(folder.name), signal.SIGKILL)
            return
    raise AssertionError(f"no torchrun of {pod} runs here")


def kill_after_checkpoint(danlu: Danlu, jobs: list[list[str]]) -> None:
    """The last worker of each job, as soon as its first one has saved: neither job waits for the other."""

    def look() -> bool:
        for workers in list(jobs):
            if re.search(r"of \d+ pictures \[", danlu.kubectl("logs", workers[0], check=False)):
                kill(danlu, workers[-1])
                jobs.remove(workers)
        return not jobs

    danlu.wait("a checkpoint of each job", look, timeout=180)


def went_on(said: str) -> None:
    begun = [(int(world), int(seen)) for _, world, seen in BEGINS.findall(said)]
    assert begun[0] == (3, 0), said
    assert begun[-1][0] == 3, said
    assert begun[-1][1] > 0, f"it began again at the checkpoint:\n{said}"


def test_killed_workers_are_replaced_and_training_goes_on(danlu: Danlu) -> None:
    """TensorStack's elastic job and Kubeflow's, at the same time."""
    own, kubeflow = Example("06-elastic"), Example("06-elastic", "expect-kubeflow.yaml")
    for example in (own, kubeflow):
        example.submit(danlu)
    danlu.wait("its replicas", lambda: (get(danlu, own.job).get("status") or {}).get("tasks"))
    names = [one["name"] for one in get(danlu, own.job)["status"]["tasks"][0]["replicas"]]
    kill_after_checkpoint(danlu, [names, [f"mnist-elastic-worker-{index}" for index in range(3)]])
    went_on(own.ends_as_expected(danlu))
    assert get(danlu, own.job)["status"]["backoffCount"] == 1, "one replica was made anew"
    went_on(kubeflow.ends_as_expected(danlu))
    restarts = "jsonpath={.status.containerStatuses[0].restartCount}"
    assert danlu.kubectl("get", "pod", "mnist-elastic-worker-2", "-o", restarts) == "1"
