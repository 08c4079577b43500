"""What becomes of a replica that failed, and how failures are counted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from danlu.kinds._training import replicas, restarts
from danlu.kinds._training.job import ALWAYS, EXIT_CODE, NEVER, ON_FAILURE, Job, Role, RunPolicy
from danlu.kinds._training.kubeflow.dialect import KubeflowKind
from danlu.kinds._training.replicas import ReplicaState
from danlu.kinds._training.tensorstack.dialect import TensorStackKind
from danlu.meta.kind import Kind

NOW = datetime(2026, 1, 2, 3, 5, 0, tzinfo=UTC)
KIND = Kind("example.org", "v1", "Job", "jobs")


def a_job(restart: str, limit: int | None = None, count: int = 1) -> Job:
    obj = {"metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": {}}
    return Job(KIND, obj, (Role("Worker", count, {}, restart),), RunPolicy(backoff_limit=limit))


def state(
    restart: str, phase: str, container: dict[str, Any] | None = None, notes: dict[str, str] | None = None
) -> ReplicaState:
    job = a_job(restart)
    pod = {
        "metadata": {"name": "j-worker-0", "uid": "now"},
        "status": {"phase": phase, "containerStatuses": [{"name": "train", **container}] if container else []},
    }
    service = {"metadata": {"name": "j-worker-0", "annotations": notes or {}}}
    return replicas.observe(job, [pod], [service], {"Worker": "train"})[0]


def ended(code: int, at: str = "2026-01-02T03:04:59Z") -> dict[str, Any]:
    return {"state": {"terminated": {"exitCode": code, "finishedAt": at}}}


@pytest.mark.parametrize(
    ("restart", "code", "permanent"),
    [
        (NEVER, 1, True), (NEVER, 137, True), (EXIT_CODE, 1, True), (EXIT_CODE, 127, True), (EXIT_CODE, 128, False),
        (EXIT_CODE, 143, False), (ON_FAILURE, 1, False), (ALWAYS, 1, False),
    ],
)  # fmt: skip
def test_what_is_for_good(restart: str, code: int, permanent: bool) -> None:
    failed = state(restart, "Failed", ended(code))
    found = restarts.sort(a_job(restart), [failed], KubeflowKind.rules, "")
    assert (found.again, found.lost) == (([], [failed]) if permanent else ([failed], []))


def test_a_pod_of_which_nobody_knows_how_it_ended_is_made_again() -> None:
    unknown = state(EXIT_CODE, "Failed")
    assert restarts.sort(a_job(EXIT_CODE), [unknown], KubeflowKind.rules, "").again == [unknown]


def test_kinds_may_have_a_rule_of_their_own() -> None:
    assert restarts.is_permanent(state(EXIT_CODE, "Failed", ended(139)), lambda code: code == 138)


def test_a_replaced_pod_is_counted_once() -> None:
    fresh = state(EXIT_CODE, "Failed", ended(137))
    assert fresh.failures == 1
    note = restarts.note_replaced(a_job(EXIT_CODE), fresh)
    assert note is not None
    again = state(EXIT_CODE, "Failed", ended(137), note["metadata"]["annotations"])
    assert again.failures == 1, "written down, and the pod is still there"
    assert restarts.note_replaced(a_job(EXIT_CODE), again) is None
    another = state(EXIT_CODE, "Failed", ended(137), {replicas.RESTARTS: "1", replicas.LAST_REPLACED: "before"})
    assert another.failures == 2


def test_the_first_time_at_once_then_longer_each_time() -> None:
    def wait(restarted: int) -> float:
        notes = {replicas.RESTARTS: str(restarted), replicas.LAST_REPLACED: "before"} if restarted else {}
        return restarts.pause_s(state(EXIT_CODE, "Failed", ended(137), notes), NOW)

    assert [wait(count) for count in range(4)] == [0, 9, 19, 39]
    assert wait(50) == restarts.LONGEST_PAUSE_S - 1


def test_restarts_in_place() -> None:
    down = {"restartCount": 1, "state": {"waiting": {}}, "lastState": ended(1)["state"]}
    up = {"restartCount": 1, "state": {"running": {}}, "lastState": ended(1)["state"]}
    fine = {"restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert [state(ON_FAILURE, "Running", one).failures for one in (down, up, fine)] == [2, 1, 0]


@pytest.mark.parametrize(("limit", "over"), [(None, False), (0, True), (1, True), (2, False)])
def test_the_limit_is_the_number_of_restarts(limit: int | None, over: bool) -> None:
    down = {"restartCount": 1, "state": {"waiting": {}}, "lastState": ended(1)["state"]}
    assert restarts.over_limit(a_job(ON_FAILURE, limit), [state(ON_FAILURE, "Running", down)]) is over


def test_a_limit_may_be_a_budget() -> None:
    """What is left of it goes to the first that fail; one that is counted already needs none."""
    job = a_job(ON_FAILURE, 2)
    spent = {replicas.RESTARTS: "1", replicas.LAST_REPLACED: "before"}
    counted = {replicas.RESTARTS: "0", replicas.LAST_REPLACED: "now"}
    one, two, three = (state(ON_FAILURE, "Failed", ended(1), notes) for notes in (spent, {}, counted))
    found = restarts.sort(job, [one, two, three], TensorStackKind.rules, "")
    assert found.again == [one, three]
    assert found.lost == [two]
    assert restarts.sort(job, [one, two, three], KubeflowKind.rules, "").again == [one, two, three]


def test_always_may_mean_after_success_too_but_not_of_the_master() -> None:
    done = state(ALWAYS, "Succeeded", ended(0))
    assert restarts.sort(a_job(ALWAYS, 1), [done], TensorStackKind.rules, "another").again == [done]
    assert restarts.sort(a_job(ALWAYS, 1), [done], TensorStackKind.rules, done.name) == restarts.Failures([], [])


def test_replicas_that_are_never_restarted_do_not_count() -> None:
    assert restarts.failures([state(NEVER, "Failed", ended(1))]) == 0
