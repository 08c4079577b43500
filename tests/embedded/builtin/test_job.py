"""Jobs. Texts are those of a real 1.36 server."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.embedded.builtin.batch.job import SERVED
from danlu.meta.objects import copy

STARTED, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:05:03Z"


def job(name: str = "train", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    if labels:
        template["metadata"] = {"labels": labels}
    obj: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "uid": "u-1"},
        "spec": {"template": template, **spec},
    }
    SERVED.default(obj)
    SERVED.prepare_create(obj)
    return obj


def messages(**spec: Any) -> list[str]:
    return [error.message() for error in SERVED.validate(job(**spec))]


def changes(old: dict[str, Any], **spec: Any) -> list[str]:
    new = copy(old)
    new["spec"].update(spec)
    SERVED.default(new)
    SERVED.prepare_update(new, old)
    return [error.message() for error in SERVED.validate_update(new, old)]


def template_with(old: dict[str, Any], **pod: Any) -> dict[str, Any]:
    template: dict[str, Any] = copy(old["spec"]["template"])
    template["spec"].update(pod)
    return template


def status_messages(before: dict[str, Any], after: dict[str, Any], **spec: Any) -> list[str]:
    old, new = job(**spec), job(**spec)
    old["status"], new["status"] = before, after
    SERVED.prepare_status(new, old)
    return [error.message() for error in SERVED.validate_status(new, old)]


def conditions(*types: str) -> list[dict[str, str]]:
    return [{"type": type, "status": "True"} for type in types]


def test_defaults() -> None:
    spec = job()["spec"]
    assert {key: spec[key] for key in spec if key not in ("template", "selector")} == {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
    }
    assert job(completionMode="Indexed", completions=2, backoffLimitPerIndex=1)["spec"]["backoffLimit"] == 2**31 - 1
    assert "completions" not in job(parallelism=3)["spec"]
    assert job(podFailurePolicy={"rules": []})["spec"]["podReplacementPolicy"] == "Failed"


def test_the_selector_is_made_from_the_uid() -> None:
    obj = job()
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    made = {
        "job-name": "train",
        "batch.kubernetes.io/job-name": "train",
        "controller-uid": "u-1",
        "batch.kubernetes.io/controller-uid": "u-1",
    }
    assert obj["spec"]["template"]["metadata"]["labels"] == made
    assert obj["metadata"]["labels"] == made
    labelled = job(labels={"app": "x"})
    assert labelled["metadata"]["labels"] == {"app": "x", **made}
    assert labelled["metadata"]["labels"] is not labelled["spec"]["template"]["metadata"]["labels"]
    assert messages(selector={"matchLabels": {"a": "b"}})[0] == (
        'spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"u-1"}}: '
        "`selector` not auto-generated"
    )
    assert messages(manualSelector=True) == [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"parallelism": -1}, ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {"completionMode": "Bad"},
            ['spec.completionMode: Unsupported value: "Bad": supported values: "NonIndexed", "Indexed"'],
        ),
        (
            {"completionMode": "Indexed", "parallelism": 3},
            ["spec.completions: Required value: when completion mode is Indexed"],
        ),
        (
            {"backoffLimitPerIndex": 1},
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1, "maxFailedIndexes": 3},
            ["spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions"],
        ),
        (
            {"managedBy": "nope"},
            ['spec.managedBy: Invalid value: "nope": must be a domain-prefixed path (such as "acme.io/foo")'],
        ),
        (
            {"podReplacementPolicy": "X"},
            ['spec.podReplacementPolicy: Unsupported value: "X": supported values: "Failed", "TerminatingOrFailed"'],
        ),
        (
            {
                "completionMode": "Indexed",
                "completions": 3,
                "successPolicy": {"rules": [{"succeededIndexes": "0,2-1"}]},
            },
            [
                'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0,2-1": error parsing '
                "succeededIndexes: non-increasing order, previous: 2, current: 1"
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": [{"succeededCount": 4}]}},
            [
                "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 "
                "(the number of specified completions)"
            ],
        ),
    ],
)
def test_rules(spec: dict[str, Any], expected: list[str]) -> None:
    assert messages(**spec) == expected


def test_restart_policies() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert messages(template=template) == [
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    ]


def test_indexed_pods_need_a_name_that_fits() -> None:
    assert messages(name="y" * 60, completionMode="Indexed", completions=1000) == [
        f'metadata.name: Invalid value: "{"y" * 60}": will not able to create pod with invalid DNS label: '
        f"{'y' * 60}-999"
    ]


def test_pod_failure_policies() -> None:
    codes = {"operator": "In", "values": [0, 3, 2, 2], "containerName": "zz"}
    rules = [{"action": "FailJob", "onExitCodes": codes}, {"action": "FailIndex"}, {"action": ""}]
    path = "spec.podFailurePolicy.rules"
    assert messages(podFailurePolicy={"rules": rules}) == [
        f'{path}[0].onExitCodes.containerName: Invalid value: "zz": must be one of the container or initContainer '
        "names in the pod template",
        f"{path}[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        f"{path}[0].onExitCodes.values[3]: Duplicate value: 2",
        f"{path}[0].onExitCodes.values: Invalid value: [0,3,2,2]: must be ordered",
        f'{path}[1].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
        f"{path}[1]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
        f'{path}[2].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
        f"{path}[2]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
    ]
    obj = job(podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]})
    assert obj["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"] == [
        {"type": "DisruptionTarget", "status": "True"}
    ]
    assert SERVED.validate(obj) == []


def test_what_never_changes() -> None:
    old = job()
    assert changes(old, parallelism=5, backoffLimit=1, suspend=True, activeDeadlineSeconds=9) == []
    assert changes(old, completions=3) == ["spec.completions: Invalid value: 3: field is immutable"]
    assert changes(old, completionMode="Indexed") == [
        'spec.completionMode: Invalid value: "Indexed": field is immutable'
    ]
    (error,) = changes(old, template=template_with(old, nodeSelector={"a": "b"}))
    assert error.startswith("spec.template: Invalid value: {")
    assert error.endswith(": field is immutable")


def test_indexed_jobs_scale_in_step() -> None:
    old = job(completionMode="Indexed", completions=2, parallelism=2)
    assert changes(old, completions=4, parallelism=4) == []
    assert changes(old, completions=4) == [
        "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"
    ]


def test_a_suspended_job_may_be_placed_and_sized_anew() -> None:
    old = job(suspend=True)
    node_affinity: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    for pod in (
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"schedulingGates": [{"name": "a/b"}]},
        {"affinity": {"nodeAffinity": node_affinity}},
    ):
        assert not [error for error in changes(old, template=template_with(old, **pod)) if "immutable" in error], pod
    containers = copy(old["spec"]["template"]["spec"]["containers"])
    containers[0]["resources"] = {"limits": {"cpu": "1"}}
    assert changes(old, template=template_with(old, containers=containers)) == []
    containers[0]["image"] = "other"
    (error,) = changes(old, template=template_with(old, containers=containers))
    assert error.startswith("spec.template.spec: Invalid value: {")
    assert any("immutable" in error for error in changes(old, template=template_with(old, hostNetwork=True)))
    running = copy(old)
    running["status"] = {"startTime": STARTED, "active": 1}
    assert changes(running, template=template_with(old, nodeSelector={"a": "b"}))


def test_generation_and_status() -> None:
    old = job()
    new = copy(old)
    new["spec"]["parallelism"] = 2
    new["status"] = {"succeeded": 9}
    SERVED.prepare_update(new, old)
    assert new["metadata"]["generation"] == 2
    assert new["status"] == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"active": 1, "ready": 1, "startTime": STARTED}, []),
        ({}, {"active": -1}, ["status.active: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {},
            {"conditions": conditions("Complete")},
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.conditions: Invalid value: cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true condition",
                "status.startTime: Required value: startTime is required for finished job",
            ],
        ),
        (
            {"startTime": STARTED},
            {"startTime": STARTED, "completionTime": ENDED, "conditions": conditions("SuccessCriteriaMet", "Complete")},
            [],
        ),
        (
            {"startTime": STARTED},
            {"startTime": STARTED, "conditions": conditions("Failed")},
            [
                "status.conditions: Invalid value: cannot set Failed=True condition without the "
                "FailureTarget=true condition"
            ],
        ),
        ({}, {"active": 1, "ready": 2}, ["status.ready: Invalid value: 2: cannot set more ready pods than active"]),
        (
            {"failed": 2, "succeeded": 2},
            {"failed": 1, "succeeded": 1},
            [
                "status.failed: Invalid value: 1: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
            ],
        ),
        (
            {"startTime": STARTED},
            {"startTime": ENDED},
            [f'status.startTime: Invalid value: "{ENDED}": field is immutable for unsuspended job once set'],
        ),
        (
            {"startTime": STARTED, "conditions": conditions("FailureTarget", "Failed")},
            {"startTime": STARTED},
            [
                "status.conditions: Invalid value: cannot disable the terminal Failed=True condition",
                "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
            ],
        ),
        (
            {},
            {"completedIndexes": "0"},
            [
                'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
                "completion mode"
            ],
        ),
    ],
)
def test_statuses(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert status_messages(before, after) == expected


def test_indexes_in_a_status() -> None:
    spec = {"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 1}
    assert status_messages({}, {"completedIndexes": "0,2-3", "failedIndexes": "1"}, **spec) == []
    assert status_messages({}, {"completedIndexes": "0-2", "failedIndexes": "2"}, **spec) == [
        'status.failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2'
    ]
    assert status_messages({}, {"completedIndexes": "7"}, **spec) == [
        'status.completedIndexes: Invalid value: "7": error parsing completedIndexes: too large index: "7"'
    ]


def test_columns() -> None:
    obj = job(parallelism=4)
    obj["status"] = {
        "startTime": STARTED,
        "completionTime": ENDED,
        "succeeded": 2,
        "conditions": conditions("Complete"),
    }
    shown = {column.name: column.value(obj) for column in SERVED.columns}
    assert shown["Status"] == "Complete"
    assert shown["Completions"] == "2/1 of 4"
    assert shown["Duration"] == "5m3s"
    assert shown["Selector"] == "batch.kubernetes.io/controller-uid=u-1"
    assert SERVED.selectable(obj) == {"status.successful": "2"}
    fresh = {column.name: column.value(job()) for column in SERVED.columns}
    assert (fresh["Status"], fresh["Completions"], fresh["Duration"]) == ("Running", "0/1", "")
