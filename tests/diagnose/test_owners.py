"""Why what makes pods does not run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.diagnose.objects import ended, event, running, unplaced

from danlu.diagnose import Cause, Evidence, explain, say, stated
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.said import Said

ROOM = "0/1 nodes are available: 1 Insufficient cpu."
TEMPLATE: Object = {"spec": {"containers": []}}


def kubeflow(*told: Object) -> Object:
    roles = {"Master": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 3, "template": TEMPLATE}}
    return {
        "kind": "PyTorchJob",
        "metadata": {"name": "j", "namespace": "demo", "uid": "j"},
        "spec": {"pytorchReplicaSpecs": roles},
        "status": {"conditions": [*told]},
    }


def tensorstack(phase: str, *told: Object) -> Object:
    return {
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": "j", "namespace": "demo", "uid": "j"},
        "spec": {"replicaSpecs": [{"type": "worker", "replicas": 4, "template": TEMPLATE}]},
        "status": {"phase": phase, "conditions": [*told]},
    }


def condition(type: str, status: str, message: str = "", **more: Any) -> Object:
    found: list[Object] = []
    conditions.set(found, type, status, "Because", message, **more)
    return found[0]


@pytest.mark.parametrize(
    "job", [kubeflow(condition("Running", "True")), tensorstack("Running")], ids=lambda one: one["kind"]
)
def test_a_job_that_runs_in_part_says_so_and_why(job: Object) -> None:
    pods = [running("j-0"), running("j-1"), unplaced(ROOM, "j-2"), unplaced(ROOM, "j-3")]
    first, second = explain(job, Evidence(pods=pods))
    assert (first.code, first.params) == ("DL-PARTIAL", {"running": 2, "wanted": 4})
    assert (second.code, second.params["pod"], second.params["more"]) == ("DL-ROOM", "j-2", 1)
    assert second.sentence("zh").endswith("（另有 1 个相同）")


def test_in_a_list_its_condition_says_it() -> None:
    told = say("DL-PARTIAL", running=2, wanted=4)
    assert [cause.code for cause in explain(tensorstack("Running", condition("Running", "False", told)))] == [
        "DL-PARTIAL"
    ]


def test_a_job_whose_replicas_all_run_or_start_says_nothing_of_the_kind() -> None:
    job = tensorstack("Running")
    assert explain(job, Evidence(pods=[running(f"j-{n}") for n in range(4)])) == []
    starting = {**running("j-3"), "status": {"phase": "Pending"}}
    pods = [*(running(f"j-{n}") for n in range(3)), starting]
    assert [cause.code for cause in explain(job, Evidence(pods=pods))] == ["DL-STARTING"]


def test_the_worst_speaks_first() -> None:
    pods = [unplaced(ROOM, "j-0"), ended(2, name="j-1")]
    assert [cause.code for cause in explain(tensorstack("Pending"), Evidence(pods=pods))] == ["DL-EXIT", "DL-ROOM"]


def test_over_quota_the_quota_is_blamed() -> None:
    job = tensorstack("Pending")
    refused = event(
        job,
        "FailedCreatePod",
        'Error creating: pods "j-0" is forbidden: exceeded quota: q, requested: cpu=4, used: cpu=8, limited: cpu=10',
    )
    [cause] = explain(job, Evidence(events=[refused]))
    assert (cause.code, cause.params["limited"]) == ("DL-QUOTA", "cpu=10")
    assert cause.sentence("zh") == "超出配额 q：申请 cpu=4，已用 cpu=8，上限 cpu=10"


def test_a_quota_that_keeps_a_stateful_set_from_making_the_pod_of_a_notebook() -> None:
    notebook = {
        "kind": "Notebook",
        "metadata": {"name": "nb", "uid": "n"},
        "status": {"conditions": [condition("Ready", "False", say("DL-SERVED-CREATING", word="Notebook"))]},
    }
    other = {"metadata": {"uid": "s"}}
    refused = event(
        other,
        "FailedCreate",
        'create Pod nb-0 failed: pods "nb-0" is forbidden: failed quota: q: must specify requests.cpu',
    )
    assert [cause.code for cause in explain(notebook, Evidence(events=[refused]))] == ["DL-QUOTA-ASKS"]


def test_jobs_that_ended_or_rest() -> None:
    assert explain(tensorstack("Succeeded")) == []
    assert [cause.code for cause in explain(tensorstack("Paused"))] == ["DL-PAUSED"]
    died = condition("Failed", "True", say("DL-OOM", pod="j-0", container="main", limit="220Mi"))
    assert [cause.code for cause in explain(kubeflow(died))] == ["DL-OOM"]


def test_nothing_is_known_yet() -> None:
    assert [cause.code for cause in explain(tensorstack("Pending"))] == ["DL-NO-PODS"]


def test_a_code_of_a_later_version_is_left_alone() -> None:
    told = condition("Running", "False", "what is said", causes=[{"code": "DL-OF-TOMORROW", "params": {}}])
    assert [cause.code for cause in explain(tensorstack("Pending", told))] == ["DL-SAID"]


def test_what_nobody_used_says_so_while_it_rests() -> None:
    told = {
        "type": "Suspended",
        "status": "True",
        "causes": [{"code": "DL-IDLE-SUSPENDED", "params": {"unused": "3h"}}],
    }
    notebook = {"kind": "Notebook", "metadata": {"name": "n"}, "status": {"phase": "Suspended", "conditions": [told]}}
    assert [cause.code for cause in explain(notebook)] == ["DL-IDLE-SUSPENDED"]


def test_a_replaced_image_is_told_whatever_becomes_of_the_job_and_once() -> None:
    image = {"code": "DL-IMAGE-UNKNOWN", "params": {"image": "nope:1", "environment": "default"}}
    noted = {"type": "ImageSubstituted", "status": "True", "causes": [image]}
    for phase in ("Running", "Succeeded"):
        done = {
            "kind": "PyTorchTrainingJob",
            "metadata": {"name": "j"},
            "status": {"phase": phase, "conditions": [noted]},
        }
        assert [cause.code for cause in explain(done)] == ["DL-IMAGE-UNKNOWN"]
    lost = {"code": "DL-COMMAND", "params": {"pod": "j-0", "container": "main", "replaced": image}}
    failed = {"type": "Failed", "status": "True", "causes": [lost]}
    job = {"kind": "PyTorchJob", "metadata": {"name": "j"}, "status": {"conditions": [noted, failed]}}
    assert [cause.code for cause in explain(job)] == ["DL-COMMAND"]


def test_what_became_of_a_job_explains_nothing_beside_why() -> None:
    became = stated("DL-JOB-IS-FAILED", kind="PyTorchJob", name="j", count=1, role="Master")
    why = Cause("DL-OOM", {"pod": "j-0", "container": "main", "limit": "220Mi"})
    message = Said(f"{became}\n{why.text()}", [*became.causes, why.carried()])
    assert explain(kubeflow(condition("Failed", "True", message))) == [Cause(why.code, why.params, "PyTorchJob/j")]


def test_that_its_restarts_are_spent_is_a_cause_by_itself() -> None:
    [cause] = explain(kubeflow(condition("Failed", "True", stated("DL-JOB-BACKOFF", name="j"))))
    assert (cause.code, cause.severity) == ("DL-JOB-BACKOFF", "error")


def test_a_job_on_its_way_says_how_far_it_is() -> None:
    waits = condition("Running", "False", stated("DL-JOB-PODS-RUN", running=0, all=4))
    assert [cause.sentence("zh") for cause in explain(tensorstack("Pending", waits))] == ["4 个副本中有 0 个在运行"]
