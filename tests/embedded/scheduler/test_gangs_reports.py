"""What is said of gangs, and how often."""

from __future__ import annotations

import asyncio

import pytest

from danlu.embedded.scheduler.gangs import GangRefusal
from danlu.embedded.scheduler.placementreport import GangReports
from danlu.embedded.scheduler.podinfo import PodInfo

from .worlds import pod


class Listener:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(GangReports, "FIRST_S", 0.03)
        monkeypatch.setattr(GangReports, "AGAIN_S", 0.06)
        self.heard: list[str] = []
        # A clock that stands still: however slow the machine, no time passes between two things that are told.
        self.reports = GangReports(lambda pod, message: self.heard.append(f"{pod.name}: {message}"), lambda: 100.0)
        self.pods = [PodInfo(pod("a")), PodInfo(pod("b"))]

    def tell(self, message: str, *, room: bool = False, passing: bool = False) -> None:
        self.reports.tell("d/g", self.pods, GangRefusal(message, room=room, passing=passing))


async def test_what_is_over_in_a_moment_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(monkeypatch)
    listener.tell("2 of 4", passing=True)
    listener.tell("3 of 4", passing=True)
    listener.reports.settled("d/g")
    await asyncio.sleep(0.05)
    assert not listener.heard


async def test_what_lasts_is_said_once_in_its_newest_words(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(monkeypatch)
    listener.tell("1 free", room=True)
    listener.tell("2 free", room=True)
    await asyncio.sleep(0.05)
    assert listener.heard == ["a: 2 free", "b: 2 free"]
    listener.tell("3 free", room=True)
    listener.tell("4 free", room=True)
    assert len(listener.heard) == 2
    await asyncio.sleep(0.1)
    assert listener.heard[2:] == ["a: 4 free", "b: 4 free"]
    listener.reports.stop()


async def test_what_will_not_change_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(monkeypatch)
    listener.tell("never: 32 asked, 16 exist")
    assert listener.heard == ["a: never: 32 asked, 16 exist", "b: never: 32 asked, 16 exist"]
