"""Jobs: how many pods at a time, which, how often, how long; when they are done and when they have failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.conftest import Kube
from tests.conformance.standin import EXIT, Nodes

Make = Callable[..., dict[str, Any]]


def job(name: str, template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    body = {**template, "spec": {"restartPolicy": "Never", **template["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": body, **spec}}


def program(script: str, **spec: Any) -> dict[str, Any]:
    """A pod template for a node that runs pods."""
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}}


def conditions(kube: Kube, name: str) -> dict[str, dict[str, str]]:
    return {c["type"]: c for c in kube.get("job", name)["status"].get("conditions", [])}


def pods_of(kube: Kube, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kube.get("pods", "-l", f"batch.kubernetes.io/job-name={name}")["items"]
    return found


def live(pods: list[dict[str, Any]]) -> list[str]:
    return [p["metadata"]["name"] for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")]


def test_completions_and_parallelism(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    kube.apply(job("work", nodes.template("work"), completions=3, parallelism=2))
    first = kube.wait("two pods", lambda: len(found := live(pods_of(kube, "work"))) == 2 and found)
    assert all(re.fullmatch(r"work-[a-z0-9]{5}", name) for name in first)
    kube.wait("them to be placed", lambda: all(p["spec"].get("nodeName") for p in pods_of(kube, "work")))
    for name in first:
        nodes.run(name)
    kube.until("job/work", "{.status.ready}", "2")
    assert kube.value("job/work", "{.status.active}") == "2"
    nodes.end(first[0])
    kube.wait("one more pod", lambda: len(pods_of(kube, "work")) == 3)
    kube.until("job/work", "{.status.succeeded}", "1")
    assert kube("get", "job", "work", "--no-headers").split()[:3] == ["work", "Running", "1/3"]
    # Not beside the kubelet of `nodes.kubelet()`: it might start anew what was ended while it looked.
    for name in live(pods_of(kube, "work")):
        nodes.end(name)
    kube("wait", "--for=condition=complete", "job/work", "--timeout=30s")
    found = kube.get("job", "work")
    assert found["status"]["succeeded"] == 3
    assert found["status"]["completionTime"]
    assert found["status"].get("active", 0) == 0
    assert {c["type"]: c["reason"] for c in found["status"]["conditions"]} == {
        "SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached",
    }  # fmt: skip
    assert kube("get", "job", "work", "--no-headers").split()[:3] == ["work", "Complete", "3/3"]
    uid = found["metadata"]["uid"]
    pod = pods_of(kube, "work")[0]["metadata"]
    expected = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "work",
                "controller-uid": uid, "job-name": "work", "app": "work"}  # fmt: skip
    assert pod["labels"] == expected
    assert pod["ownerReferences"][0]["kind"] == "Job"
    assert "finalizers" not in pod  # counted, so no longer held
    kube.wait("the events", lambda: "Job completed" in kube("events", "--for=job/work"))
    assert "SuccessfulCreate" in kube("events", "--for=job/work")


def test_indexed(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    template = nodes.template("ix", annotations={EXIT: "0"})
    kube.apply(job("ix", template, completions=3, parallelism=3, completionMode="Indexed"))
    with nodes.kubelet():
        kube("wait", "--for=condition=complete", "job/ix", "--timeout=30s")
    found = sorted(pods_of(kube, "ix"), key=lambda p: str(p["metadata"]["name"]))
    for index, pod in enumerate(found):
        meta, spec = pod["metadata"], pod["spec"]
        assert re.fullmatch(rf"ix-{index}-[a-z0-9]{{5}}", meta["name"])
        assert meta["labels"]["batch.kubernetes.io/job-completion-index"] == str(index)
        assert meta["annotations"]["batch.kubernetes.io/job-completion-index"] == str(index)
        assert spec["hostname"] == f"ix-{index}"
        variable = spec["containers"][0]["env"][0]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == path
    assert kube.value("job/ix", "{.status.completedIndexes}") == "0-2"


def test_failures(kube: Kube, nodes: Nodes) -> None:
    nodes.add("one")
    bad = nodes.template("bad", annotations={EXIT: "1"})
    policy = {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
    ]}  # fmt: skip
    kube.apply(
        job("limit", bad, backoffLimit=0),
        job("policy", nodes.template("policy", annotations={EXIT: "42"}), backoffLimit=6, podFailurePolicy=policy),
        job("late", {"spec": {**bad["spec"], "nodeSelector": {"no": "such"}}}, activeDeadlineSeconds=1),
        job("gone", nodes.template("gone", annotations={EXIT: "0"}), ttlSecondsAfterFinished=1),
        job("indexes", bad, completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=0),
    )
    with nodes.kubelet():
        for name in ("limit", "policy", "late", "indexes"):
            kube("wait", "--for=condition=failed", f"job/{name}", "--timeout=40s")
        kube.gone("job/gone")
    failed = conditions(kube, "limit")["Failed"]
    assert (failed["reason"], failed["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    assert conditions(kube, "limit")["FailureTarget"]["reason"] == "BackoffLimitExceeded"
    assert kube.value("job/limit", "{.status.failed}") == "1"
    failed = conditions(kube, "policy")["Failed"]
    assert failed["reason"] == "PodFailurePolicy"
    pattern = (
        rf"Container main for pod {kube.namespace}/policy-\w+ failed with exit code 42 matching FailJob rule at index 1"
    )
    assert re.fullmatch(pattern, failed["message"])
    failed = conditions(kube, "late")["Failed"]
    assert (failed["reason"], failed["message"]) == (
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
    )
    assert pods_of(kube, "late") == []
    assert conditions(kube, "indexes")["Failed"]["reason"] == "FailedIndexes"
    assert kube.value("job/indexes", "{.status.failedIndexes}") == "0,1"
    assert kube("get", "job", "limit", "--no-headers").split()[:3] == ["limit", "Failed", "0/1"]
    kube.wait("the event", lambda: "Job has reached the specified backoff limit" in kube("events", "--for=job/limit"))


def test_suspend_and_resume(kube: Kube, nodes: Nodes) -> None:
    template = nodes.template("s", {"nodeSelector": {"no": "such"}})
    kube.apply(job("s", template, parallelism=2, completions=2, suspend=True))
    kube.until("job/s", '{.status.conditions[?(@.type=="Suspended")].status}', "True")
    assert conditions(kube, "s")["Suspended"]["reason"] == "JobSuspended"
    assert pods_of(kube, "s") == []
    assert "startTime" not in kube.get("job", "s")["status"]
    kube("patch", "job", "s", "-p", '{"spec":{"suspend":false}}')
    kube.wait("pods", lambda: len(pods_of(kube, "s")) == 2)
    kube.until("job/s", '{.status.conditions[?(@.type=="Suspended")].status}', "False")
    assert conditions(kube, "s")["Suspended"]["reason"] == "JobResumed"
    assert kube.value("job/s", "{.status.startTime}")
    kube("patch", "job", "s", "-p", '{"spec":{"suspend":true}}')
    kube.wait("no pods", lambda: not pods_of(kube, "s"))
    kube("patch", "job", "s", "-p", '{"spec":{"suspend":false,"parallelism":1}}')
    kube.wait("one pod", lambda: len(pods_of(kube, "s")) == 1)
    problem = kube.fails("patch", "job", "s", "-p", '{"spec":{"completions":5}}')
    assert "field is immutable" in problem


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"completionMode": "Indexed", "parallelism": 2},
         "spec.completions: Required value: when completion mode is Indexed"),
        ({"backoffLimit": -1}, "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        ({"completionMode": "Some"},
         'spec.completionMode: Unsupported value: "Some": supported values: "NonIndexed", "Indexed"'),
        ({"selector": {"matchLabels": {"a": "b"}}}, "`selector` not auto-generated"),
    ],
)  # fmt: skip
def test_bad_jobs_are_refused(kube: Kube, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=job("bad", program("true"), **spec))


def test_jobs_must_end(kube: Kube) -> None:
    made = job("bad", program("true", restartPolicy="Always"))
    problem = kube.fails("create", "-f", "-", stdin=made)
    assert 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"' in problem


@pytest.mark.node
def test_jobs_run(kube: Kube) -> None:
    kube.apply(
        job("indexed", program("echo $JOB_COMPLETION_INDEX of $(hostname)"), completions=3, parallelism=3,
            completionMode="Indexed"),
        job("fails", program("exit 1"), backoffLimit=0),
        job("deadline", program("sleep 600"), activeDeadlineSeconds=1),
        job("short-lived", program("true"), ttlSecondsAfterFinished=0),
        job("exits-42", program("exit 42"), podFailurePolicy={
            "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}),
    )  # fmt: skip
    kube("wait", "--for=condition=complete", "job/indexed", "--timeout=30s")
    said = {kube("logs", p["metadata"]["name"]).strip() for p in pods_of(kube, "indexed")}
    assert said == {f"{i} of indexed-{i}" for i in range(3)}
    for name in ("fails", "deadline", "exits-42"):
        kube("wait", "--for=condition=failed", f"job/{name}", "--timeout=30s")
    assert conditions(kube, "deadline")["Failed"]["reason"] == "DeadlineExceeded"
    assert conditions(kube, "exits-42")["Failed"]["reason"] == "PodFailurePolicy"
    kube.gone("job/short-lived")
    assert "0 of indexed-0" in kube("logs", "job/indexed", "--all-pods")
    kube("delete", "job", "indexed")
    kube.wait("its pods to go", lambda: not pods_of(kube, "indexed"))
