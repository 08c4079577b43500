"""The conditions of Kubeflow jobs: their order is what STATE shows."""

from __future__ import annotations

from danlu.kinds._training.kubeflow.conditions import JobConditions
from danlu.kinds._training.trouble import Trouble
from danlu.meta.said import Said


def told(conditions: JobConditions) -> list[str]:
    return [f"{one['type']}={one['status']}" for one in conditions.items]


def test_one_of_a_type_and_the_changed_one_last() -> None:
    found = JobConditions([], "PyTorchJob", "now")
    assert found.add("Created", "a")
    assert not found.add("Created", "another text")
    assert found.items[0]["message"] == "a"
    found.add("Suspended", "s")
    found.add("Running", "r")
    found.add("Suspended", "s", status="False", reason="Resumed")
    assert told(found) == ["Created=True", "Running=True", "Suspended=False"]
    assert found.items[-1]["reason"] == "PyTorchJobResumed"


def test_running_and_restarting_take_each_others_place() -> None:
    found = JobConditions([], "TFJob", "now")
    found.add("Running", "")
    found.add("Restarting", "")
    assert told(found) == ["Restarting=True"]
    found.add("Running", "")
    assert told(found) == ["Running=True"]


def test_the_end_turns_running_to_false_and_after_failed_there_is_nothing() -> None:
    found = JobConditions([], "TFJob", "now")
    found.add("Running", "")
    found.add("Failed", "")
    assert told(found) == ["Running=False", "Failed=True"]
    assert not found.add("Succeeded", "")
    assert found.finished


def test_blocked_stands_first_and_goes_when_it_is_over() -> None:
    found = JobConditions([], "TFJob", "one")
    found.add("Created", "")
    assert found.block(Trouble("FailedMount", Said("a")))
    later = JobConditions(found.items, "TFJob", "two")
    assert not later.block(Trouble("FailedMount", Said("b"))), "the same reason again is no news"
    assert later.items[0]["message"] == "b"
    assert later.items[0]["lastTransitionTime"] == "one"
    assert told(later) == ["Blocked=True", "Created=True"]
    later.block(None)
    assert told(later) == ["Created=True"]


def test_what_was_there_is_not_changed() -> None:
    before = [{"type": "Running", "status": "True", "reason": "TFJobRunning", "lastTransitionTime": "one"}]
    JobConditions(before, "TFJob", "two").add("Failed", "")
    assert before[0]["status"] == "True"
