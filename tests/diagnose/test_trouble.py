"""A job's trouble is told once, however the numbers in it change."""

from __future__ import annotations

from danlu.diagnose.cause import Cause, said
from danlu.kinds._training.trouble import Trouble
from danlu.meta import conditions
from danlu.meta.kind import Object


def trouble(running: int, more: int, claim: str = "data") -> Trouble:
    missing = Cause("DL-CLAIM-MISSING", {"pod": "j-3", "claim": claim, "more": more})
    return Trouble("Unschedulable", said([Cause("DL-PARTIAL", {"running": running, "wanted": 4}), missing]))


def test_numbers_that_change_are_the_same_cause_and_another_claim_is_not() -> None:
    present: list[Object] = []
    conditions.set(present, "Running", "False", "Unschedulable", trouble(1, 2).message)
    assert trouble(2, 1).is_told(present)
    assert not trouble(2, 1, "other").is_told(present)
    assert not trouble(2, 1).is_told([])
