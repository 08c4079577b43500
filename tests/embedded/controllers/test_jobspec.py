"""What a Job's spec says about single pods, single moments and sets of indexes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from danlu.embedded.controllers.job import jobspec
from danlu.embedded.controllers.job.indexes import ANNOTATION, Indexes
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job(**spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}
    base = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template}
    return {"metadata": {"name": "j", "namespace": "ns", "uid": "job"}, "spec": {**base, **spec}}


def pod(
    phase: str = "Running", *, index: int | None = None, code: int | None = None, ended: datetime = NOW, **meta: Any
) -> Object:
    annotations = {ANNOTATION: str(index)} if index is not None else {}
    made: Object = {
        "metadata": {
            "name": meta.pop("name", "p"),
            "namespace": "ns",
            "uid": "u",
            "creationTimestamp": rfc3339(NOW),
            "annotations": {**annotations, **meta.pop("annotations", {})},
            **meta,
        },
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": phase},
    }
    if code is not None:
        terminated = {"exitCode": code, "finishedAt": rfc3339(ended)}
        made["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
    return made


@pytest.mark.parametrize(
    ("text", "completions", "back"),
    [("", 5, ""), ("0", 5, "0"), ("0,1", 5, "0,1"), ("0-2", 5, "0-2"), ("0,1,2,4", 9, "0-2,4"), ("1-9", 4, "1-3")],
)
def test_indexes_are_written_as_kubernetes_does(text: str, completions: int, back: str) -> None:
    assert str(Indexes.parse(text, completions)) == back


def test_sets_of_indexes() -> None:
    some = Indexes.parse("1-3,7", 10)
    assert len(some) == 4
    assert 2 in some
    assert 4 not in some
    assert str(some.adding([4, 0])) == "0-4,7"
    assert some.first_missing(3, 10) == [0, 4, 5]
    assert some.first_missing(99, 9) == [0, 4, 5, 6, 8]
    assert some.overlap(Indexes.parse("3-7", 10)) == 2
    assert str(some | Indexes.parse("4-6", 10)) == "1-7"


def test_the_first_rule_that_matches_decides() -> None:
    policy = {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [1]}},
        ]
    }
    spec = job(podFailurePolicy=policy)
    verdict = jobspec.judge(spec, pod("Failed", code=42))
    assert verdict.action == "FailJob"
    assert verdict.message == "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 1"
    disrupted = pod("Failed", code=42)
    disrupted["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    assert not jobspec.judge(spec, disrupted).counts
    assert jobspec.judge(spec, pod("Failed", code=3)).action == "Count"
    assert jobspec.judge(spec, pod("Failed", code=1)) == jobspec.PodVerdict()
    assert jobspec.judge(spec, pod("Failed", code=0)) == jobspec.PodVerdict()


def test_a_deleted_pod_counts_as_failed_unless_only_failed_ones_are_replaced() -> None:
    ending = pod(deletionTimestamp=rfc3339(NOW))
    assert jobspec.has_failed(ending, job())
    assert not jobspec.has_failed(ending, job(podReplacementPolicy="Failed"))


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededIndexes": "0,2"}, "0-1", False),
        ({"succeededIndexes": "0,2"}, "0-2", True),
        ({"succeededIndexes": "0-4", "succeededCount": 2}, "3,4", True),
        ({"succeededCount": 3}, "0,1", False),
        ({"succeededCount": 2}, "0,1", True),
    ],
)
def test_success_policy(rule: Object, succeeded: str, met: bool) -> None:
    spec = job(completions=5, successPolicy={"rules": [{"succeededCount": 99}, rule]})
    message = jobspec.success_message(spec, Indexes.parse(succeeded, 5))
    assert message == ("Matched rules at index 1" if met else "")


def test_back_off_doubles_after_each_failure_and_ends_with_a_success() -> None:
    backoff = jobspec.Backoff().after([], [pod("Failed", code=1)])
    assert backoff.remaining(NOW) == 10
    backoff = backoff.after([], [pod("Failed", code=1)])
    assert backoff.remaining(NOW + timedelta(seconds=5)) == 15
    for _ in range(20):
        backoff = backoff.after([], [pod("Failed", code=1)])
    assert backoff.remaining(NOW) == 600
    later = NOW + timedelta(seconds=60)
    both = backoff.after([pod("Succeeded", code=0)], [pod("Failed", code=1, ended=later)])
    assert (both.failures, both.last) == (1, later)
    assert backoff.after([pod("Succeeded", code=0)], []) == jobspec.Backoff()


def test_restarts_count_with_on_failure() -> None:
    spec = job(backoffLimit=2, template={"spec": {"restartPolicy": "OnFailure"}})
    running = pod("Running")
    running["status"]["containerStatuses"] = [{"name": "main", "restartCount": 1}]
    assert not jobspec.restarts_exceed_limit(spec, [running])
    assert jobspec.restarts_exceed_limit(spec, [running, running])
    assert not jobspec.restarts_exceed_limit(job(backoffLimit=0), [running])


def test_failures_of_an_index_travel_from_pod_to_pod() -> None:
    spec = job(backoffLimitPerIndex=1, completionMode="Indexed")
    assert jobspec.failure_counts(spec, None) == {jobspec.FAILURE_COUNT: "0"}
    first = pod("Failed", index=0, code=1, annotations={jobspec.FAILURE_COUNT: "0"})
    assert not jobspec.index_has_failed(spec, first)
    assert jobspec.failure_counts(spec, first) == {jobspec.FAILURE_COUNT: "1"}
    second = pod("Failed", index=0, code=1, annotations={jobspec.FAILURE_COUNT: "1"})
    assert jobspec.index_has_failed(spec, second)
    assert jobspec.index_backoff_left(second, NOW) == 20


def test_surplus_pods_of_an_indexed_job() -> None:
    spec = job(completionMode="Indexed", completions=3)
    older = pod(index=1, name="older", uid="1")
    newer = pod("Pending", index=1, name="newer", uid="2")
    beyond, without = pod(index=7, name="beyond", uid="3"), pod(name="without", uid="4")
    removed = jobspec.surplus(spec, [older, newer, beyond, without, pod(index=0, uid="5")], 0)
    assert {one["metadata"]["name"] for one in removed} == {"newer", "beyond", "without"}


def test_the_deadline_rests_while_suspended() -> None:
    started = {"startTime": rfc3339(NOW)}
    assert jobspec.deadline_in(job(activeDeadlineSeconds=30), started, NOW + timedelta(seconds=10)) == 20
    assert jobspec.deadline_in(job(activeDeadlineSeconds=30, suspend=True), started, NOW) is None
    assert jobspec.deadline_in(job(activeDeadlineSeconds=30), {}, NOW) is None
