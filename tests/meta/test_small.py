"""clock, conditions, fieldselector, objects, owners: one screen each."""

from __future__ import annotations

import pytest

from danlu.meta import clock, conditions, fieldselector, objects, owners
from danlu.meta.wellknown import JOB


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (303, "5m3s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages(seconds: int, shown: str) -> None:
    assert clock.human_duration(seconds) == shown


def test_times() -> None:
    moment = clock.parse_time("2026-01-02T03:04:05Z")
    assert clock.rfc3339(moment) == "2026-01-02T03:04:05Z"
    assert clock.rfc3339_micro(moment) == "2026-01-02T03:04:05.000000Z"
    assert clock.age("2026-01-02T03:04:05Z", clock.parse_time("2026-01-02T03:09:08Z")) == "5m3s"
    assert clock.age(None) == "<unknown>"
    with pytest.raises(ValueError):
        clock.parse_time("2026-01-02")


def test_conditions_keep_their_transition_time() -> None:
    found: list[dict[str, object]] = []
    assert conditions.set(found, "Ready", "False", "Why", "text", "t1")
    assert not conditions.set(found, "Ready", "False", "Why", "text", "t2")
    assert conditions.set(found, "Ready", "False", "Other", "text", "t2")
    assert found[0]["lastTransitionTime"] == "t1"
    assert conditions.set(found, "Ready", "True", now="t3")
    assert found == [{"type": "Ready", "status": "True", "lastTransitionTime": "t3"}]
    assert conditions.is_true(found, "Ready")


def test_field_selectors() -> None:
    chosen = fieldselector.parse("status.phase!=Failed,spec.nodeName=a\\,b")
    assert chosen.matches({"spec.nodeName": "a,b", "status.phase": "Running"})
    assert not chosen.matches({"spec.nodeName": "a,b", "status.phase": "Failed"})
    assert chosen.exact("spec.nodeName") == "a,b"
    assert str(chosen) == "spec.nodeName=a\\,b,status.phase!=Failed"
    with pytest.raises(fieldselector.FieldSelectorError, match="can't understand 'x'"):
        fieldselector.parse("x")
    with pytest.raises(fieldselector.FieldSelectorError, match="invalid escape sequence"):
        fieldselector.parse("a=\\x")


def test_objects() -> None:
    obj: dict[str, object] = {}
    objects.put(obj, "a.b.c", 1)
    assert objects.get(obj, "a.b.c") == 1
    assert objects.get(obj, "a.x.c", 2) == 2
    copied = objects.copy(obj)
    assert objects.remove(copied, "a.b.c")
    assert not objects.remove(copied, "a.b.c")
    assert objects.get(obj, "a.b.c") == 1


def test_owners() -> None:
    owner = {"metadata": {"name": "j", "uid": "u"}}
    child = {"metadata": {"ownerReferences": [owners.reference(owner, JOB)]}}
    assert owners.is_controlled_by(child, owner)
    assert owners.controller_of(child) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "j",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert owners.without(child, "u") == []
