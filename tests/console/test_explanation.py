"""POST /console/explain: what a page knows in, causes out; what is no object is refused, not a fault of ours."""

from __future__ import annotations

from typing import Any

import pytest
from tests.diagnose.objects import asking, ended, node, unplaced

from danlu.console.explanation import answered, explained
from danlu.errors import BadRequest

BIG = unplaced("0/1 nodes are available: 1 Insufficient memory.", **asking(memory="500Gi"))


def test_causes_come_with_what_they_are_about_and_how_bad_they_are() -> None:
    [cause] = explained({"object": BIG, "nodes": [node(memory="24Gi")]})
    assert (cause["code"], cause["severity"], cause["about"]) == ("DL-NEVER-FITS", "error", "Pod/p")
    assert (cause["params"]["asked"], cause["params"]["most"]) == ("500Gi", "24Gi")


@pytest.mark.parametrize(
    "asked", [None, [], {}, {"object": {}}, {"object": {"metadata": {"name": "p"}, "kind": "Pod", "status": [1]}}]
)
def test_what_is_no_object_is_refused(asked: Any) -> None:
    with pytest.raises(BadRequest):
        explained(asked)


def test_what_is_no_object_among_others_is_left_out() -> None:
    assert [one["code"] for one in explained({"object": BIG, "nodes": [None, "x", {"metadata": {}}]})] == ["DL-ROOM"]


def test_a_quota_that_a_page_knows_is_counted() -> None:
    roles = {"Worker": {"replicas": 4, "template": {"spec": asking(cpu="4")}}}
    job = {"kind": "PyTorchJob", "metadata": {"name": "j"}, "spec": {"pytorchReplicaSpecs": roles}}
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"cpu": "10"}}}
    assert [cause["code"] for cause in explained({"object": job, "quotas": [quota, None]})] == ["DL-QUOTA-NEVER"]


def test_the_rows_of_a_list_are_answered_together_and_in_order() -> None:
    other = ended(137, "OOMKilled", name="q")
    answer = answered({"objects": [BIG, other], "nodes": [node(memory="24Gi")]})
    assert [[one["code"] for one in each] for each in answer["each"]] == [["DL-NEVER-FITS"], ["DL-OOM"]]
    assert answered({"object": other}) == {"causes": explained({"object": other})}


def test_a_claim_is_explained_with_the_classes_that_there_are() -> None:
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "uid": "c"},
        "spec": {"storageClassName": "fast"},
        "status": {"phase": "Pending"},
    }
    [cause] = explained({"object": claim, "classes": [{"metadata": {"name": "slow"}}]})
    assert (cause["code"], cause["params"]["there"]) == ("DL-CLAIM-NO-CLASS", "slow")
    [cause] = explained({"object": claim})
    assert cause["code"] == "DL-CLAIM-PENDING", "what is not known must not look like none"
