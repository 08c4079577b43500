"""Only what differs is written."""

from __future__ import annotations

import pytest

from danlu.meta.kind import Object
from danlu.runtime.outcomewriter import differs


def live(spec: Object, owned: Object, labels: dict[str, str] | None = None) -> Object:
    entry = {"manager": "me", "operation": "Apply", "fieldsV1": owned}
    return {"metadata": {"name": "a", "labels": labels or {}, "managedFields": [entry]}, "spec": spec}


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        ({"spec": {"a": 1}}, live({"a": 1, "defaulted": True}, {"f:spec": {"f:a": {}}}), False),
        ({"spec": {"a": 2}}, live({"a": 1}, {"f:spec": {"f:a": {}}}), True),
        ({"spec": {"a": 1}}, live({"a": 1, "b": 2}, {"f:spec": {"f:a": {}, "f:b": {}}}), True),
        ({"spec": {"l": [{"n": 1}]}}, live({"l": [{"n": 1, "d": 0}]}, {"f:spec": {"f:l": {}}}), False),
        ({"spec": {"l": [{"n": 1}]}}, live({"l": [{"n": 1}, {"n": 2}]}, {"f:spec": {"f:l": {}}}), True),
        ({"spec": {"a": 1}}, {"metadata": {"name": "a"}, "spec": {"a": 1}}, True),
    ],
    ids=["same", "changed", "no longer wanted", "defaults inside lists", "longer list", "never applied"],
)
def test_whether_applying_would_change_anything(wanted: Object, there: Object, expected: bool) -> None:
    assert differs(wanted, there, "me") is expected
