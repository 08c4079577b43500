"""Gangs by kube-scheduler's own support, on nodes with made-up GPUs: all pods of a job, or none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.conftest import GPU, Space
from tests.kinds.jobs import job, role

pytestmark = pytest.mark.timeout(300)


def gang(space: Space, name: str, workers: int, *, ends: bool = False) -> dict[str, Any]:
    """One master and workers, a GPU for each; with `ends` they end a second after they all run."""
    greedy = {"resources": {"limits": {GPU: 1}}}
    roles = {
        "Master": role("PyTorchJob", "", container=greedy, **space.on_fake_nodes()),
        "Worker": role("PyTorchJob", "", workers, container=greedy, **space.on_fake_nodes()),
    }
    if ends:
        for one in roles.values():
            one["template"]["metadata"] = {"labels": {"benchmark/ends": "yes"}}
    return job("PyTorchJob", name, roles, runPolicy={"cleanPodPolicy": "None"})


def refused(space: Space, name: str) -> list[str]:
    """What the scheduler told the pods of a job that it would not place."""
    return [
        one.get("message", "")
        for pod in space.all_pods()
        if pod["metadata"]["name"].startswith(f"{name}-")
        for one in pod["status"].get("conditions") or ()
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]


def test_a_gang_that_does_not_fit_starts_nothing(space: Space) -> None:
    space.add_fake_node("a", gpus=2)
    what = space.submit(gang(space, "big", workers=2))
    space.danlu.wait("all three to be refused", lambda: len(refused(space, "big")) == 3)
    assert space.bound() == {}
    assert space.until_condition(what, "Blocked")["reason"] == "Unschedulable"
    space.add_fake_node("b", gpus=1)
    space.until(what, "Running")
    assert len(space.bound()) == 3


def test_two_gangs_that_fit_one_at_a_time_do_not_stop_each_other(space: Space) -> None:
    """Four GPUs, two gangs of three: if each took two, neither would ever run."""
    space.add_fake_node("a", gpus=2)
    space.add_fake_node("b", gpus=2)
    whats = [space.submit(gang(space, name, workers=2, ends=True)) for name in ("first", "second")]
    seen: set[tuple[int, int]] = set()

    def both_done() -> bool:
        names = [*space.bound()]
        seen.add((sum(name.startswith("first-") for name in names), sum(name.startswith("second-") for name in names)))
        return all(space.state(what) == "Succeeded" for what in whats)

    space.danlu.wait("both gangs to have had their turn", both_done, 120)
    assert len(space.bound()) == 6
    for count in seen:
        assert count[0] == 3 or count[1] == 3 or 0 in count, f"pods of both gangs were placed at once: {seen}"
