"""OMP_NUM_THREADS of a training container: from its cpu limit on a cluster, from the shared cores on one machine."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.kinds._training import children
from danlu.kinds.pytorchjob.reconcile import JOB, processes


def threads(limit: str | None, env: list[dict[str, Any]] | None = None, **where: int) -> list[str]:
    container: dict[str, Any] = {"name": "pytorch", "resources": {"limits": {"cpu": limit} if limit else {}}}
    if env is not None:
        container["env"] = env
    children.set_threads(container, **{"cores": 0, "replicas": 2, "processes": 1, **where})
    return [one["value"] for one in container.get("env") or () if one["name"] == "OMP_NUM_THREADS"]


@pytest.mark.parametrize(("limit", "expected"), [("1", "1"), ("250m", "1"), ("1500m", "2"), ("16", "16")])
def test_a_limit_counts_on_a_cluster(limit: str, expected: str) -> None:
    assert threads(limit) == [expected]
    assert threads(limit, cores=8) == [], "the embedded node does that, and knows its cores"


def test_processes_share_a_limit() -> None:
    assert threads("8", processes=4) == ["2"]
    assert threads("2", processes=4) == ["1"]
    assert threads("8", processes=0) == []


def test_without_a_limit_replicas_on_one_machine_share_its_cores() -> None:
    assert threads(None, cores=8, replicas=3) == ["2"]
    assert threads(None, cores=8, replicas=1) == []
    assert threads(None) == [], "a cluster's nodes are not known"


def test_what_the_user_says_counts() -> None:
    said = {"name": "OMP_NUM_THREADS", "value": "7"}
    assert threads("1", [said]) == threads(None, [said], cores=8) == ["7"]


@pytest.mark.parametrize(
    ("spec", "command", "expected"),
    [
        ({}, ["python", "train.py"], 1),
        ({"nprocPerNode": "4"}, ["torchrun", "train.py"], 4),
        ({"elasticPolicy": {"nProcPerNode": 2}}, [], 2),
        ({"nprocPerNode": "gpu"}, [], 0),
        ({"elasticPolicy": {}}, [], 0),
        ({}, ["torchrun", "train.py"], 0),
        ({}, ["python", "-m", "torch.distributed.run", "train.py"], 0),
    ],
)
def test_how_many_processes_a_pytorchjob_starts(spec: dict[str, Any], command: list[str], expected: int) -> None:
    replicas = {"Worker": {"template": {"spec": {"containers": [{"name": "pytorch"}]}}}}
    job = JOB.job({"metadata": {"name": "j", "uid": "u"}, "spec": {"pytorchReplicaSpecs": replicas, **spec}})
    assert processes(job, {"command": command}) == expected
