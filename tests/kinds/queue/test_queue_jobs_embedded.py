"""Jobs in queues, with real processes: a gang waits, is preempted, comes back and ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# Ends as soon as the file is there, so that nothing depends on how quick the machine is.
UNTIL_TOLD = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu("--nodes", "a:cpu=8,memory=8Gi;b:cpu=8,memory=8Gi", "--fake-gpus", "4")


def training_job(name: str, queue: str, replicas: int, **more: Any) -> dict[str, Any]:
    container = {
        "name": "pytorch",
        "image": "python",
        "command": ["python3", "-c", UNTIL_TOLD, f"/data/{name}"],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "signals"}}
    template = {"spec": {"containers": [container], "volumes": [volume]}}
    worker = {"type": "worker", "replicas": replicas, "restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": name},
        "spec": {"scheduler": {"t9kScheduler": {"queue": queue}}, "replicaSpecs": [worker], **more},
    }


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduler.tensorstack.dev/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "namespace": "t9k-system"},
        "spec": {"namespaceSelector": {}, **spec},
    }


SIGNALS = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "signals"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


def apply(danlu: Danlu, *objects: dict[str, Any]) -> None:
    danlu.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


def status(danlu: Danlu, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(danlu.kubectl("get", "pj", name, "-o", "json")).get("status") or {}
    return found


def phase_is(danlu: Danlu, name: str, phase: str) -> None:
    danlu.wait(f"{name} to be {phase}", lambda: status(danlu, name).get("phase") == phase)


def tell(danlu: Danlu, name: str) -> None:
    """Lets a job end."""
    pod = danlu.kubectl("get", "pods", "-l", f"tensorstack.dev/owner-name={name}", "-o", "name").split()[0]
    danlu.kubectl("exec", pod, "--", "touch", f"/data/{name}")


def test_a_gang_waits_is_preempted_and_comes_back(danlu: Danlu) -> None:
    apply(danlu, SIGNALS, queue("prod", priority=80), training_job("low", "default", 4))
    phase_is(danlu, "low", "Running")
    apply(danlu, training_job("next", "default", 2))

    def why() -> str:
        path = "jsonpath={.status.conditions[?(@.type=='GroupScheduled')].message}"
        return danlu.kubectl("get", "pg", "next", "-o", path)

    words = "0/2 nodes are available for all 2 pods of group next: 2 nvidia.com/gpu asked at once, 0 free."
    danlu.wait("the reason", lambda: why() == words)
    assert words in danlu.kubectl("describe", "pj", "next")
    apply(danlu, training_job("high", "prod", 3))
    phase_is(danlu, "high", "Running")
    danlu.wait("low to wait again", lambda: status(danlu, "low")["aggregate"]["creating"] == 4)
    assert status(danlu, "low").get("backoffCount", 0) == 0
    tell(danlu, "high")
    phase_is(danlu, "high", "Succeeded")
    for name in ("low", "next"):  # whichever of the two is first: both have their turn
        danlu.kubectl("get", "pj", name)
    first = str(danlu.wait("one of them", lambda: next((n for n in ("low", "next") if _runs(danlu, n)), "")))
    tell(danlu, first)
    phase_is(danlu, first, "Succeeded")
    second = "next" if first == "low" else "low"
    phase_is(danlu, second, "Running")
    tell(danlu, second)
    phase_is(danlu, second, "Succeeded")
    danlu.wait("the groups to go", lambda: not danlu.kubectl("get", "pg", "-o", "name").strip())


def _runs(danlu: Danlu, name: str) -> bool:
    return bool(status(danlu, name).get("phase") == "Running")


def test_an_elastic_job_begins_with_what_there_is(danlu: Danlu) -> None:
    elastic = {"enabled": True, "minReplicas": 2, "maxReplicas": 8, "expectedReplicas": 6}
    made = training_job("elastic", "default", 6, elastic=elastic, torchrunConfig={"enabled": True})
    made["spec"]["runMode"] = {"debug": {"enabled": True}}  # they sleep: it is the number of pods that counts here
    made["spec"]["replicaSpecs"][0]["scalingWeight"] = 1
    apply(danlu, made)
    pods = ("get", "pods", "-l", "scheduler.tensorstack.dev/group-name=elastic", "-o")
    nodes = "jsonpath={range .items[*]}{.spec.nodeName}{'\\n'}{end}"
    danlu.wait("four to be placed", lambda: len(danlu.kubectl(*pods, nodes).split()) == 4)
    assert len(danlu.kubectl(*pods, "name").split()) == 6
    danlu.kubectl("delete", "pj", "elastic")


def test_a_job_that_ran_too_long_is_paused(danlu: Danlu) -> None:
    apply(danlu, SIGNALS, queue("short", maxDuration="1s"), training_job("long", "short", 1))
    phase_is(danlu, "long", "Paused")
    told = danlu.kubectl("describe", "pj", "long")
    assert "MaxDurationExceeded" in told
    assert "Set spec.runMode.pause.enabled to true: pod" in told
