"""`kill -9` of `danlu up` at random moments under load: nothing acknowledged is lost, doubled or reordered.

Writers create, change and delete ConfigMaps and remember what was acknowledged; a watcher resumes after each kill from
the last version it saw. In the end memory, list and watch must agree, event by event.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from danlu.embedded.datadir import DataDirectory
from tests.running import Api, Danlu, until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 3
NAMES = 12
LOST = (OSError, http.client.HTTPException)
Content = str | None  # what a ConfigMap says; None: it is not there


@dataclass
class Writer:
    """Creates, changes and deletes ConfigMaps of its own, and remembers what was acknowledged."""

    danlu: Danlu
    number: int
    chance: random.Random
    stop: threading.Event
    known: dict[str, Content] = field(default_factory=dict)
    open: dict[str, Content] = field(default_factory=dict)  # asked for and not answered: may have been done or not
    versions: list[int] = field(default_factory=list)  # of acknowledged creations and changes
    problems: list[str] = field(default_factory=list)
    count: int = 0

    def run(self) -> None:
        api: Api | None = None
        while not self.stop.is_set():
            try:
                api = api or Api(self.danlu.kubeconfig)
                self._settle(api)
                self._write(api)
            except LOST:
                api = None  # killed; its port may be another one next time
                time.sleep(0.02)

    def _settle(self, api: Api) -> None:
        """What was asked for when the server died is there or not; anything else would be wrong."""
        for name, wanted in list(self.open.items()):
            found = read(api, name)
            if found not in (wanted, self.known.get(name)):
                self.problems.append(f"{name} is {found!r}, acknowledged {self.known.get(name)!r}, asked {wanted!r}")
            self.known[name] = found
            del self.open[name]

    def _write(self, api: Api) -> None:
        name = f"w{self.number}-{self.chance.randrange(NAMES)}"
        self.count += 1
        text = f"{self.number}.{self.count}"
        body = {"metadata": {"name": name}, "data": {"said": text}}
        exists = self.known.get(name) is not None
        if exists and self.chance.random() < 0.2:
            method, path, wanted = "DELETE", f"{CONFIG_MAPS}/{name}", None
        elif exists:
            method, path, wanted = "PUT", f"{CONFIG_MAPS}/{name}", text
        else:
            method, path, wanted = "POST", CONFIG_MAPS, text
        self.open[name] = wanted
        status, answer = api.request(method, path, None if method == "DELETE" else body)
        if status not in (200, 201):
            self.problems.append(f"{method} {name}: {status} {answer}")
            return
        del self.open[name]
        self.known[name] = wanted
        if wanted is not None:
            self.versions.append(int(answer["metadata"]["resourceVersion"]))


def read(api: Api, name: str) -> Content:
    status, answer = api.request("GET", f"{CONFIG_MAPS}/{name}")
    return answer["data"]["said"] if status == 200 else None


@dataclass
class Watcher:
    """Follows all changes, resumes after every break from the last version it saw, and writes all of it down."""

    danlu: Danlu
    since: str
    stop: threading.Event
    record: list[tuple[str, str, int, Content]] = field(default_factory=list)
    breaks: int = 0

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                self._watch(Api(self.danlu.kubeconfig).open(timeout=2))
            except LOST:
                self.breaks += 1
                time.sleep(0.02)

    def _watch(self, connection: http.client.HTTPSConnection) -> None:
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=60&resourceVersion={self.since}"
        connection.request("GET", f"{CONFIG_MAPS}?{query}")
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        with contextlib.closing(connection):
            while not self.stop.is_set():
                line = answer.readline()
                if not line.endswith(b"\n"):
                    return  # cut in the middle: this event was not told
                self._hear(json.loads(line))

    def _hear(self, event: dict[str, Any]) -> None:
        meta = event["object"]["metadata"]
        self.since = meta["resourceVersion"]
        if event["type"] != "BOOKMARK":
            said = (event["object"].get("data") or {}).get("said")
            self.record.append((event["type"], meta["name"], int(self.since), said))


@dataclass(slots=True)
class Outcome:
    kills: int
    writes: int  # acknowledged
    events: int  # that the watch was told
    breaks: int  # of the watch


def torture(
    danlu: Danlu,
    seed: int,
    more: Callable[[int], bool],
    alive_s: tuple[float, float] = (0.1, 1.0),
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Kills a running danlu for as long as `more(kills)` says. Raises AssertionError when anything was lost."""
    chance = random.Random(seed)
    _, listed = Api(danlu.kubeconfig).request("GET", CONFIG_MAPS)
    stop, stop_watching = threading.Event(), threading.Event()
    writers = [Writer(danlu, number, random.Random(seed + number), stop) for number in range(WRITERS)]
    watcher = Watcher(danlu, listed["metadata"]["resourceVersion"], stop_watching)
    threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
    watching = threading.Thread(target=watcher.run, daemon=True)
    for thread in (*threads, watching):
        thread.start()
    kills = 0
    process: subprocess.Popen[bytes] | None = None
    try:
        while more(kills):
            time.sleep(chance.uniform(*alive_s))
            kill(danlu)
            if process is not None:
                process.wait()
            kills += 1
            process = start(danlu)
            if kills % 25 == 0:
                written = sum(len(writer.versions) for writer in writers)
                say(f"{kills} kills, {written} acknowledged writes, {len(watcher.record)} events")
            assert [problem for writer in writers for problem in writer.problems] == []
        time.sleep(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    for writer in writers:
        writer._settle(Api(danlu.kubeconfig))
    _, listed = Api(danlu.kubeconfig).request("GET", CONFIG_MAPS)
    last = int(listed["metadata"]["resourceVersion"])
    until("the watch to have caught up", lambda: int(watcher.since) >= last or _poke(danlu))
    stop_watching.set()
    watching.join(30)
    _compare(writers, watcher, {item["metadata"]["name"]: item["data"] for item in listed["items"]}, kills)
    written = sum(len(writer.versions) for writer in writers)
    return Outcome(kills, written, len(watcher.record), watcher.breaks)


def kill(danlu: Danlu) -> None:
    """Without asking `danlu status` for the pid: that takes longer than some servers are to live."""
    pid = _pid(danlu)
    assert pid > 1, "nobody runs"  # 0 would be whoever runs this
    os.kill(pid, signal.SIGKILL)
    until("the process to be gone", lambda: not _alive(pid), pause_s=0.01)


def start(danlu: Danlu) -> subprocess.Popen[bytes]:
    """Returns when the API answers, while the rest still starts: some are to be killed just then."""
    command = [sys.executable, "-m", "danlu", "up", "--data-dir", str(danlu.data), "--port", "0", *danlu.flags]
    with (danlu.data / "danlu.log").open("ab") as log:
        process = subprocess.Popen(command, env=danlu.environment, cwd=danlu.home, stdout=log, stderr=log)
    until("the API", lambda: _pid(danlu) == process.pid or process.poll() is not None, pause_s=0.01)
    assert process.poll() is None, (danlu.data / "danlu.log").read_text()[-2000:]
    return process


def _pid(danlu: Danlu) -> int:
    holder = DataDirectory(danlu.data).holder()
    return holder.pid if holder is not None else 0


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return ") Z " not in file.read()
    except OSError:
        return False


def _poke(danlu: Danlu) -> bool:
    """Other kinds move the version on without an event for this watch; one more write of ours ends the waiting."""
    Api(danlu.kubeconfig).request("POST", CONFIG_MAPS, {"metadata": {"generateName": "poke-"}})
    return False


def _compare(writers: list[Writer], watcher: Watcher, listed: dict[str, dict[str, str]], kills: int) -> None:
    assert [problem for writer in writers for problem in writer.problems] == []
    versions = [version for writer in writers for version in writer.versions]
    assert len(versions) > 2 * kills, "hardly anything was written: this proves nothing"
    assert len(versions) == len(set(versions)), "a revision was given out twice"
    assert all(writer.versions == sorted(writer.versions) for writer in writers), "revisions went backwards"
    assert watcher.breaks >= kills // 2
    wanted = {name: said for writer in writers for name, said in writer.known.items() if said is not None}
    assert {name: data["said"] for name, data in listed.items() if name.startswith("w")} == wanted
    told = [version for _, _, version, _ in watcher.record]
    assert told == sorted(set(told)), "an event was told twice or out of order"
    missed = {version for writer in writers for version in writer.versions} - set(told)
    assert not missed, f"the watch missed {len(missed)} acknowledged writes: {sorted(missed)[:10]}"
    state: dict[str, Content] = {}
    for kind, name, _, said in watcher.record:
        if kind == "ADDED":
            assert name not in state, f"{name} was added twice"
        else:
            assert name in state, f"{name} was {kind} before it was added"
        if kind == "DELETED":
            del state[name]
        else:
            state[name] = said
    assert {name: said for name, said in state.items() if name.startswith("w")} == wanted
