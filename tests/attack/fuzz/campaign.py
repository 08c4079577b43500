"""Plays episodes for a while; what fails is reduced to the steps that matter and written down."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attack.fuzz.execute import Stage
from tests.attack.fuzz.generate import episode
from tests.attack.fuzz.oracle import Finding
from tests.attack.fuzz.process import Server, StartFailed
from tests.attack.fuzz.steps import Step

DEADLY = ("crash", "memory", "hang", "restart")  # the server is of no use any more
REDUCE_TRIES, REDUCE_SECONDS = 30, 120.0
SETTLE_SECONDS = 8.0  # controllers and the node come to a new object within this time
HEAVY, HEAVY_TRIES = ("counts", "nesting", "patches"), 4  # suspected first of what takes its time
PROGRESS_SECONDS = 300.0
FRESH_AFTER = 40  # episodes on one server: what grows slowly is seen, and what was left behind goes


@dataclass(slots=True)
class Found:
    finding: Finding
    steps: list[Step]
    episode: int
    requests: int  # sent until it was found
    seconds: float
    confirmed: bool = False  # the reduced steps do it on a new server, too
    survives: str = ""  # what a restart on the same data came to

    @property
    def signature(self) -> str:
        """By the step that does it, which for what takes its time is not the one at which it showed."""
        return f"{self.finding.kind}: {self.steps[-1].shape}"

    def written(self, seed: int) -> dict[str, Any]:
        return {
            "kind": self.finding.kind,
            "text": self.finding.text,
            "signature": self.signature,
            "seed": seed,
            "episode": self.episode,
            "found after": {"requests": self.requests, "seconds": round(self.seconds, 1)},
            "confirmed": self.confirmed,
            **({"after a restart": self.survives} if self.survives else {}),
            "steps": [step.written() for step in self.steps],
        }


@dataclass(slots=True)
class Campaign:
    seed: int
    mutants: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)
    stop_at: Callable[[Finding], bool] = lambda finding: False  # the first such ends the campaign, unreduced
    wanted: Callable[[Step], bool] = lambda step: True
    found: list[Found] = field(default_factory=list)
    requests: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    episodes: int = 0
    starts: int = 0
    _stage: Stage | None = None
    _begun: float = 0.0
    _told: float = 0.0
    _age: int = 0
    _known: set[str] = field(default_factory=set)
    _folder: Path | None = None  # of the servers; there while one is

    def run(self, seconds: float, most_requests: int = sys.maxsize, first: int = 0) -> list[Found]:
        self._begun = time.monotonic()
        number = first
        try:
            while time.monotonic() - self._begun < seconds and self.requests < most_requests:
                steps = [step for step in episode(self.seed, number) if self.wanted(step)]
                finding = self._play(self.stage(), steps, skip=lambda step: step.shape in self._known)
                self.episodes += 1
                self._tell_progress()
                if finding is not None and self._take(finding, steps, number):
                    break
                number += 1
        finally:
            self.close()
        return self.found

    def _tell_progress(self) -> None:
        """So that a run which somebody ends has said how far it came."""
        passed = time.monotonic() - self._begun
        if passed - self._told >= PROGRESS_SECONDS:
            self._told = passed
            self.say(
                f"{passed:6.0f} s {self.requests:6} requests in {self.episodes} episodes, {len(self.found)} findings"
            )

    def replay(self, steps: list[Step]) -> Finding | None:
        """On a new server, looking at everything after each step."""
        try:
            return self._play(self.stage(), steps, thaw_every=1, settle_s=SETTLE_SECONDS)
        finally:
            self.close()

    # -- the server

    def stage(self) -> Stage:
        """The server of now, or a new one. Raises StartFailed."""
        if self._stage is not None and self._age < FRESH_AFTER and not self._stage.world.is_worn:
            self._age += 1
            return self._stage
        self.close()
        self.starts += 1
        self._age = 0
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="danlu-fuzz-"))
        server = Server(self._folder / str(self.starts), mutants=self.mutants, flags=self.flags)
        server.start()
        self._stage = Stage(server, self.seed)
        return self._stage

    def _play(self, stage: Stage, steps: list[Step], **how: Any) -> Finding | None:
        before = stage.requests
        finding = stage.play(steps, **how)
        self.requests += stage.requests - before
        for status, count in stage.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        stage.statuses.clear()
        return finding

    def close(self) -> None:
        if self._stage is not None:
            self._stage.server.stop()
            shutil.rmtree(self._stage.server.folder, ignore_errors=True)
            self._stage = None
        if self._folder is not None and not any(self._folder.iterdir()):
            self._folder.rmdir()
            self._folder = None

    # -- what was found

    def _take(self, finding: Finding, steps: list[Step], number: int) -> bool:
        """Whether the campaign ends with it."""
        seconds, requests = time.monotonic() - self._begun, self.requests
        self.say(f"{seconds:6.0f} s {requests:6} requests  {finding.signature}: {finding.text[:300]}")
        survives = self._after_a_restart() if finding.kind in ("memory", "hang") else ""
        if finding.kind in DEADLY:
            self.close()
        played = [step for step in steps[: finding.index + 1] if step.shape not in self._known]
        found = Found(finding, played or steps, number, requests, seconds, survives=survives)
        if self.stop_at(finding):
            self.found.append(found)
            return True
        self._reduce(found)
        self._known |= {finding.step.shape, found.steps[-1].shape}
        if found.signature not in {one.signature for one in self.found}:
            self.found.append(found)
        return False

    def _after_a_restart(self) -> str:
        assert self._stage is not None
        problem = self._stage.restart()
        if problem is None:
            return "ready again"
        return f"{problem[0]}: {problem[1][:300]}"

    def _reduce(self, found: Found) -> None:
        """Leaves out what the finding does not need; then tries the rest on a new server."""
        ends = time.monotonic() + REDUCE_SECONDS
        tries = 0

        def fails(steps: list[Step]) -> bool:
            nonlocal tries
            tries += 1
            settle = SETTLE_SECONDS if found.finding.kind in DEADLY else 0.0
            again = self._play(self.stage(), steps, thaw_every=1, settle_s=settle)
            if again is not None and again.kind in DEADLY:
                self.close()
            return again is not None and _alike(again.kind, found.finding.kind)

        def can_go_on() -> bool:
            return tries < REDUCE_TRIES and time.monotonic() < ends

        try:
            found.steps = reduce(found.steps, fails, can_go_on)
            self.close()
            found.confirmed = fails(found.steps)
            if found.finding.kind in DEADLY:
                self.close()
        except StartFailed as error:
            self.say(f"while reducing: {error}")
        last = found.steps[-1].shape
        self.say(
            f"       reduced to {len(found.steps)} steps, {'confirmed' if found.confirmed else 'not confirmed'}: {last}"
        )


def _alike(one: str, other: str) -> bool:
    """What eats memory hangs, too; which of the two is seen first is chance."""
    return one == other or {one, other} <= {"memory", "hang"}


def reduce(steps: list[Step], fails: Callable[[list[Step]], bool], can_go_on: Callable[[], bool]) -> list[Step]:
    """Fewer steps that still fail. Most need one alone, or the last two; then halves are left out."""
    heavy = [[step] for step in reversed(steps[:-1]) if step.family in HEAVY][:HEAVY_TRIES]
    for fewer in (steps[-1:], *heavy, steps[-2:]):
        if len(steps) > len(fewer) and can_go_on() and fails(fewer):
            return fewer if len(fewer) == 1 else reduce(fewer, fails, can_go_on)
    size = len(steps) // 2
    while size and len(steps) > 1:
        place = 0
        while place < len(steps) and can_go_on():
            fewer = steps[:place] + steps[place + size :]
            if fewer and fails(fewer):
                steps = fewer
            else:
                place += size
        size //= 2
    return steps


def write(found: Found, seed: int, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    name = found.steps[-1].family or "step"
    path = folder / f"{found.finding.kind}-{name}-{zlib.crc32(found.signature.encode()) & 0xFFFF:04x}.json"
    path.write_text(json.dumps(found.written(seed), indent=1, ensure_ascii=True) + "\n")
    return path


def read(path: Path) -> tuple[int, list[Step]]:
    data = json.loads(path.read_text())
    return int(data["seed"]), [Step.read(step) for step in data["steps"]]
