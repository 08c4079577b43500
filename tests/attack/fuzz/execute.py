"""Plays steps on a server and looks after each whether it still is what it should be."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from urllib.parse import quote

from tests.attack.fuzz.oracle import Finding, Judge
from tests.attack.fuzz.people import ADMIN
from tests.attack.fuzz.process import Server, StartFailed
from tests.attack.fuzz.steps import Harvest, Step, render
from tests.attack.fuzz.wire import Answer
from tests.attack.fuzz.world import BOUND_S, LITTER, Unwell, World

THAW_EVERY = 20  # steps between two looks at everything
DYING_SECONDS = 0.5
WRITE_EVERY = 5  # looks at the server's health
ENDLESS = ("watch", "follow")


class Stage:
    """A server with a world on it."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.world = World(server, seed)
        self.judge = Judge(self.world)
        self.harvest = Harvest()
        self.requests = 0
        self._looks = 0
        self._last: list[str] | None = None  # the paths of the last episode; None: everything may be anywhere
        self.statuses: dict[int, int] = {}

    def play(
        self,
        steps: Sequence[Step],
        *,
        thaw_every: int = THAW_EVERY,
        settle_s: float = 0.0,
        skip: Callable[[Step], bool] = lambda step: False,
    ) -> Finding | None:
        """The first thing that is not as it should be. `settle_s`: how long it is looked for after the last step."""
        step = Step(ADMIN, family="prepare")
        index = -1
        try:
            self.world.prepare(LITTER if self._last is None else self._last)
            self._last = [step.path for step in steps if step.mutates]
            self.judge.begin()
            self.harvest = Harvest()
            for index, step in enumerate(steps):
                if skip(step):
                    continue
                if problem := self._take(step, look=index % thaw_every == thaw_every - 1):
                    return Finding(*problem, step, index)
            problem = self._settle(settle_s) or _change(self.judge.thaw())
            if problem is None and self.server.ran_short:
                problem = ("memory", "it asked for more memory than there is")
            return Finding(*problem, step, index) if problem else None
        except Unwell as error:
            self._last = None
            time.sleep(DYING_SECONDS)
            return Finding(*(self._death() or ("hang", str(error))), step, index)

    def _settle(self, seconds: float) -> tuple[str, str] | None:
        ends = time.monotonic() + seconds
        while (problem := self._health()) is None and time.monotonic() < ends:
            time.sleep(0.2)
        return problem

    def _take(self, step: Step, look: bool) -> tuple[str, str] | None:
        if step.action == "restart":
            if (problem := self.restart()) is None:
                self.judge.look_again()
            return problem
        answer = self.send(step)
        if answer.problem.startswith("connection dropped"):
            time.sleep(DYING_SECONDS)  # a process that dies closes its connections a moment before it is gone
        problem = self._death() or self.judge.answer(step, answer)
        if problem:
            return problem
        if answer.problem:  # it was not answered: the server hangs, or this request does
            return self._health() or ("hang", f"the request had no answer within {BOUND_S:.0f} s; others have")
        if problem := self._health():
            return problem
        written = step.mutates and step.person != ADMIN and 200 <= answer.status < 300
        if written and (problem := _change(self.judge.changes())):
            return problem
        return _change(self.judge.thaw()) if look else None

    def send(self, step: Step) -> Answer:
        query = "&".join(f"{quote(name)}={quote(self.harvest.resolve(value), safe='')}" for name, value in step.query)
        target = step.path + (f"?{query}" if query else "")
        stream = any(name in ENDLESS for name, _ in step.query) or "/watch/" in step.path
        connection = self.world.people[step.person]
        answer = connection.send(step.method, target, render(step.body), step.headers, bound_s=BOUND_S, stream=stream)
        self.requests += 1
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        if 200 <= answer.status < 300 and answer.body[:1] == b"{" and b'"metadata"' in answer.body[:100_000]:
            with contextlib.suppress(ValueError, RecursionError):
                self.harvest.gather(step.person, step.path, json.loads(answer.body))
        return answer

    # -- health

    def _death(self) -> tuple[str, str] | None:
        if not self.server.ended:
            return None
        return ("memory" if self.server.grew_to else "crash"), self.server.ended

    def _health(self) -> tuple[str, str] | None:
        """It lives, says that it is ready, and serves the admin; now and then that it stores something, too."""
        self._looks += 1
        asked = [("GET", "/readyz"), ("GET", "/api/v1/namespaces/d/configmaps")]
        if self._looks % WRITE_EVERY == 0:
            asked.append(("PATCH", "/api/v1/namespaces/kube-public/configmaps/fuzz?fieldManager=fuzz&force=true"))
        for method, path in asked:
            answer = self._ask(method, path)
            if answer.status not in (200, 201):
                if answer.problem:
                    time.sleep(DYING_SECONDS)
                what = answer.problem or f"{answer.status} {answer.body[:200].decode(errors='replace')}"
                return self._death() or ("hang", f"the admin's {method} {path}: {what}")
        return None

    def _ask(self, method: str, path: str) -> Answer:
        if method == "GET":
            return self.server.ask(method, path, bound_s=BOUND_S)
        data = {"looks": str(self._looks)}
        heartbeat = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fuzz"}, "data": data}
        kind = "application/apply-patch+yaml"
        return self.server.ask(method, path, json.dumps(heartbeat).encode(), bound_s=BOUND_S, content_type=kind)

    def restart(self) -> tuple[str, str] | None:
        """Killed and started again on the same data."""
        self.server.kill()
        try:
            self.server.start()
        except StartFailed as error:
            memory = f" ({self.server.ended})" if self.server.grew_to else ""
            return "restart", f"`danlu up` on the same data{memory}: {error}"
        self.world.reconnect()
        return self._health()


def _change(text: str) -> tuple[str, str] | None:
    return ("change", text) if text else None
