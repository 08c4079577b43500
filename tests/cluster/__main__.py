"""The commands of scripts/test-cluster; its head says what they do."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from tests.cluster import machine
from tests.cluster.building import OUTSIDE
from tests.cluster.cluster import Cluster
from tests.cluster.place import ROOT, Place, Trouble, build_programs, new_place, places
from tests.cluster.target import VARIABLE

MISSING = 3  # the machine cannot have a cluster; not a failure of what is tested


@dataclass(frozen=True)
class Phase:
    """One run of pytest. Those that restart the cluster's parts come last."""

    name: str
    words: tuple[str, ...]
    inside: bool = True  # the cluster's network


# The last has two processes wait for each other after every few pictures: beside another training it would crawl, and
# by then the other lane is done.
EXAMPLES = ("test_tensorstack_examples", "test_example_05", "test_example_06", "test_example_03")
OWN = ("tests/cluster/test_basics.py", "tests/cluster/test_console.py")
AT_ONCE = ("--numprocesses", "4")  # most cases wait, each in a namespace of its own
# One after the other; of those that stand in lanes, each lane goes on by itself: one computes, the other mostly waits.
STEPS: tuple[tuple[tuple[Phase, ...], ...], ...] = (
    (
        (Phase("conformance", ("tests/conformance", "--kubeconfig", "KUBECONFIG", *AT_ONCE)),),
        (Phase("images", ("tests/cluster/test_images.py",)),),
    ),
    (
        (Phase("examples", tuple(f"tests/e2e/{name}.py" for name in EXAMPLES)),),
        (
            Phase("documents", OWN),
            Phase("walk", ("tests/browser/test_documents.py", "-k", "zh")),  # `make test` walks in both languages
        ),
    ),
    (
        (
            Phase("upgrades", ("tests/cluster/test_upgrade.py",)),
            Phase("gangs", tuple(f"tests/cluster/test_{name}.py" for name in ("gangs", "trouble", "attack"))),
        ),
        (Phase("ending", ("tests/cluster/test_ending.py",), inside=False),),  # of another cluster
    ),
    ((Phase("faults", ("tests/cluster/test_faults.py",)),),),
)
LOOK_S = 0.5
MOST_LINES = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/test-cluster")
    parser.add_argument("command", nargs="?", choices=("run", "up", "install", "down", "list"), default="run")
    parser.add_argument("name", nargs="?", help="which cluster, when there is more than one")
    parser.add_argument("--keep", action="store_true", help="with run: do not end the cluster when something failed")
    names = [phase.name for lanes in STEPS for lane in lanes for phase in lane]
    parser.add_argument("--only", action="append", choices=names, help="with run: this phase; may be repeated")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # so that what was begun is ended
    try:
        if arguments.command == "list":
            for place in places():
                print(place.name, place.kubeconfig)
            return 0
        if arguments.command == "down":
            return down(chosen(arguments.name))
        if arguments.command == "install":
            Cluster(chosen(arguments.name), build_programs()).install(say)
            return 0
        cluster = prepared()
    except Trouble as trouble:
        print(f"test-cluster: {trouble}", file=sys.stderr)
        return 1 if arguments.command in ("down", "install") else MISSING
    if arguments.command == "up":
        return up(cluster)
    return run(cluster, arguments.only or names, keep=arguments.keep)


def prepared() -> Cluster:
    """Raises Trouble when this machine cannot have a cluster."""
    machine.prepare()
    path = build_programs()
    return Cluster(new_place(), path)


def up(cluster: Cluster) -> int:
    begun = time.monotonic()
    try:
        cluster.up(say)
    except Trouble as trouble:
        print(f"test-cluster: {trouble}", file=sys.stderr)
        down(cluster.place)
        return 1
    except BaseException:
        down(cluster.place)
        raise
    say(f"the cluster runs, {time.monotonic() - begun:.0f} s after the start")
    print(f"export KUBECONFIG={cluster.place.kubeconfig}")
    print(f"export PATH={cluster.path.split(':')[0]}:$PATH")
    print(f"inside='{' '.join(cluster.place.prefix)}'   # $inside kubectl get nodes; $inside bash")
    print(f"scripts/test-cluster down {cluster.place.name}")
    return 0


def run(cluster: Cluster, names: list[str], *, keep: bool) -> int:
    """Everything; 0 when all phases passed and nothing was left behind."""
    failed = ["the start"]
    try:
        if up(cluster) != 0:
            return 1
        cluster.install(say)
        failed = []
        for lanes in STEPS:
            chosen = [[phase for phase in lane if phase.name in names] for lane in lanes]
            failed += run_lanes(cluster, [lane for lane in chosen if lane])
    except Trouble as trouble:
        print(f"test-cluster: {trouble}", file=sys.stderr)
    finally:
        kept = keep and failed
        left = 0 if kept or not cluster.place.folder.exists() else down(cluster.place)
    if failed:
        where = f"; it still runs: scripts/test-cluster down {cluster.place.name}" if kept else ""
        say(f"failed: {', '.join(failed)}{where}")
    elif not left:
        say("all phases passed, and nothing of the cluster is left on this machine")
    return 1 if failed or left else 0


class Run:
    """A phase that has been started. Beside others it keeps what it prints to itself until its end."""

    def __init__(self, cluster: Cluster, phase: Phase, *, quiet: bool) -> None:
        say(f"phase {phase.name}")
        self.phase, self._cluster, self._begun = phase, cluster, time.monotonic()
        self._said = cluster.place.folder / f"phase-{phase.name}.log" if quiet else None
        words = [str(cluster.place.kubeconfig) if word == "KUBECONFIG" else word for word in phase.words]
        prefix = cluster.place.prefix if phase.inside else []
        with self._said.open("w") if self._said is not None else contextlib.nullcontext() as output:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "pytest", "--durations=5", *words], cwd=ROOT, stdout=output,
                env={**cluster.environment, VARIABLE: str(cluster.place.folder), OUTSIDE: str(os.getpid())},
            )  # fmt: skip

    def passed(self) -> bool:
        """To be asked once it has ended."""
        if self._said is not None:
            print(self._said.read_text(), flush=True)
        passed = self.process.wait() == 0
        if not passed:
            self._describe()
        took = time.monotonic() - self._begun
        say(f"phase {self.phase.name}: {'passed' if passed else 'FAILED'}, {took:.0f} s")
        return passed

    def _describe(self) -> None:
        """How the cluster stands while it can still be asked: what failed may have been its pods, not the page."""
        for words in (
            ("get", "pods", "--all-namespaces", "-o", "wide"),
            ("get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"),
        ):
            print("\n".join(self._cluster.kubectl(*words, check=False).splitlines()[-MOST_LINES:]), flush=True)


def run_lanes(cluster: Cluster, lanes: list[list[Phase]]) -> list[str]:
    """The phases of each lane one after the other, the lanes at the same time; the names of those that failed."""
    failed: list[str] = []
    running = {number: Run(cluster, lane[0], quiet=len(lanes) > 1) for number, lane in enumerate(lanes)}
    waiting = [lane[1:] for lane in lanes]
    try:
        while running:
            for number, run in [*running.items()]:
                if run.process.poll() is None:
                    continue
                del running[number]
                if not run.passed():
                    failed.append(run.phase.name)
                if waiting[number]:
                    running[number] = Run(cluster, waiting[number].pop(0), quiet=len(lanes) > 1)
            time.sleep(LOOK_S)
    finally:
        for run in running.values():
            run.process.kill()
            run.process.wait()
    return failed


def down(place: Place) -> int:
    left = Cluster(place, machine.SYSTEM).down()
    for line in left:
        print(f"test-cluster: left behind: {line}", file=sys.stderr)
    return 1 if left else 0


def chosen(name: str | None) -> Place:
    found = [place for place in places() if name in (None, place.name)]
    if len(found) != 1:
        there = " ".join(place.name for place in places()) or "none"
        raise Trouble(f"say which cluster; there are: {there}")
    return found[0]


def say(line: str) -> None:
    print(f"test-cluster: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
