"""What ResourceQuotas leave, in numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.diagnose.objects import asking, event, running

from danlu.diagnose import Evidence, explain
from danlu.diagnose.refusals import explained
from danlu.meta.kind import Object

REFUSAL = 'pods "j-2" is forbidden: exceeded quota: team, requested: cpu=4, used: cpu=8, limited: cpu=10'


def job(workers: int, *, elastic: bool = False, **requests: str) -> Object:
    template = {"spec": asking(**requests)}
    spec: Object = {"pytorchReplicaSpecs": {"Worker": {"replicas": workers, "template": template}}}
    return {
        "kind": "PyTorchJob",
        "metadata": {"name": "j", "namespace": "demo", "uid": "j"},
        "spec": {**spec, **({"elasticPolicy": {"minReplicas": 1}} if elastic else {})},
        "status": {"conditions": [{"type": "Created", "status": "True"}]},
    }


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "team"}, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used or {}}}


def there(*names: str, **requests: str) -> list[Object]:
    return [{**running(name), "spec": asking(**requests)} for name in names]


def test_what_a_quota_never_allows_is_said_before_anybody_refuses_it() -> None:
    [cause] = explain(job(4, cpu="4"), Evidence(quotas=[quota({"cpu": "10", "memory": "64Gi"})]))
    assert (cause.code, cause.severity, cause.about) == ("DL-QUOTA-NEVER", "error", "PyTorchJob/j")
    assert (
        cause.sentence()
        == "j can never run whole in this project: its 4 replica(s) ask for 16 cpu together, and quota team allows 10, "
        "which is enough for 2"
    )
    assert (
        cause.sentence("zh") == "j 在本项目中永远无法完整运行：4 个副本共需 cpu 16，而配额 team 只有 10，只够 2 个副本"
    )
    assert "请减少副本或请求值（合计不超过 10）" in cause.remedy("zh")


def test_what_is_used_by_others_is_waited_for_with_numbers() -> None:
    evidence = Evidence(there("j-0", cpu="4"), quotas=[quota({"cpu": "10"}, {"cpu": "8"})])
    [partial, cause] = explain(job(2, cpu="4"), evidence)
    assert partial.code == "DL-PARTIAL"
    told = {"quota": "team", "requested": "cpu=4", "used": "cpu=8", "limited": "cpu=10", "left": "cpu 2"}
    assert (cause.code, cause.params) == ("DL-QUOTA", told)
    assert cause.remedy().startswith("take no more than is left: cpu 2; `kubectl describe quota`")
    assert cause.remedy("zh").startswith("不要超过剩余的配额（cpu 2）；")


def test_the_server_s_own_words_stay_where_it_has_refused() -> None:
    evidence = Evidence(events=[event(job(2), "FailedCreatePod", REFUSAL)])
    [cause] = explain(job(2, cpu="4"), evidence)
    assert (cause.code, cause.params["message"], cause.params["left"]) == ("DL-QUOTA", REFUSAL, "cpu 2")


def test_that_it_never_can_goes_before_that_it_was_refused() -> None:
    evidence = Evidence(events=[event(job(4), "FailedCreatePod", REFUSAL)], quotas=[quota({"cpu": "10"}, {"cpu": "8"})])
    assert [cause.code for cause in explain(job(4, cpu="4"), evidence)] == ["DL-QUOTA-NEVER"]


@pytest.mark.parametrize(
    ("wanted", "evidence"),
    [
        (job(2, cpu="4"), Evidence(quotas=[quota({"cpu": "10"}, {"cpu": "0"})])),
        (job(2, cpu="4"), Evidence(there("j-0", "j-1", cpu="4"), quotas=[quota({"cpu": "4"}, {"cpu": "4"})])),
        (job(4, cpu="4", elastic=True), Evidence(there("j-0", cpu="4"), quotas=[quota({"cpu": "10"})])),
        (job(4, cpu="4"), Evidence(quotas=[quota({"cpu": "10"}, scopes=["Terminating"])])),
        (job(4, cpu="4"), Evidence(quotas=[quota({"cpu": "much"})])),
    ],
    ids=["fits", "is there", "works with fewer", "is for other pods", "cannot be read"],
)
def test_nothing_is_said_of_what(wanted: Object, evidence: Evidence) -> None:
    assert not {"DL-QUOTA", "DL-QUOTA-NEVER"} & {cause.code for cause in explain(wanted, evidence)}


def test_a_refusal_that_a_controller_stores_says_what_is_left() -> None:
    told = explained(REFUSAL)
    assert told.causes[0]["params"]["left"] == "cpu 2"
    assert told.startswith(
        f"{REFUSAL}; take no more than is left: cpu 2; `kubectl describe quota` shows what uses it up"
    )
