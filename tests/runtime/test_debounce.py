"""A status that tells of nothing but counts waits for more of them, and not for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from danlu.meta.kind import Object
from danlu.runtime import Outcome
from danlu.runtime.debounce import LONGEST_DELAY_S, StatusDebounce
from danlu.runtime.reconcile import COUNTS_DELAY_S, START_DELAY_S

JOB: Object = {"metadata": {"uid": "u"}, "status": {"active": 1}}


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: found)
    return found


def counts(delay_s: float = COUNTS_DELAY_S, **more: Any) -> Outcome:
    return Outcome(status={"active": 2}, status_delay_s=delay_s, **more)


def test_it_waits_once_and_says_when_to_come_back(clock: Time) -> None:
    debounce = StatusDebounce(lambda: True)
    first = counts(requeue_after=60.0)
    assert debounce.holds(JOB, first)
    assert first.requeue_after == COUNTS_DELAY_S
    clock.now += 0.75
    again = counts()
    assert debounce.holds(JOB, again)
    assert again.requeue_after == 0.25, "later counts do not put it off"
    clock.now += 0.25
    assert not debounce.holds(JOB, counts())
    assert debounce.holds(JOB, counts()), "what comes after the write waits anew"


@pytest.mark.usefixtures("clock")
def test_what_is_new_does_not_wait_and_what_is_known_is_not_waited_for() -> None:
    debounce = StatusDebounce(lambda: True)
    assert not debounce.holds(JOB, counts(0.0))
    assert not debounce.holds(JOB, Outcome(status={"active": 1}, status_delay_s=COUNTS_DELAY_S))


def test_in_a_rush_counts_wait_longer_and_a_start_does_not(clock: Time) -> None:
    debounce = StatusDebounce(lambda: False)
    assert debounce.holds(JOB, counts(START_DELAY_S))
    clock.now += START_DELAY_S
    assert not debounce.holds(JOB, counts(START_DELAY_S))
    assert debounce.holds(JOB, counts())
    clock.now += LONGEST_DELAY_S - 0.5
    late = counts()
    assert debounce.holds(JOB, late)
    assert late.requeue_after == COUNTS_DELAY_S
    clock.now += 0.5
    assert not debounce.holds(JOB, counts())


def test_an_object_that_is_gone_is_forgotten(clock: Time) -> None:
    debounce = StatusDebounce(lambda: True)
    debounce.holds(JOB, counts())
    debounce.forget("u")
    clock.now += COUNTS_DELAY_S
    assert debounce.holds(JOB, counts())
