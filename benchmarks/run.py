"""`scripts/bench`: side by side in one run, printed as tables with ratios. Times vary by machine; ratios carry over.

    scripts/bench [PART...] [--rounds N] [--quick] [--json FILE]

Rounds alternate between the servers, so that a busy moment of the machine does not fall on one of them alone; each
figure is the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pods
import tables
from figures import Figures, number, say
from jobs import JobBench
from operators import Operators
from servers import ROOT, Danlu, RealControlPlane, Server, search_path

import console

OBJECTS = 20_000
FINISHED_JOBS = 500  # of four pods each
SETTLE_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    figure: str
    title: str
    unit: str
    more_is_better: bool
    goal: float  # at least this many times better than the real one


ROWS = [
    Row("start_s", "start to first `kubectl get ns`", "s", False, 4),
    Row("start_cpu_s", "processor time of the servers until then", "s", False, 4),
    Row("memory_mb", f"memory {SETTLE_SECONDS} s after that (PSS, all processes)", "MB", False, 4),
    Row("creates_per_s", "ConfigMap creates, 16 in flight, 10 watchers", "/s", True, 2),
    Row("events_per_s", "watch events to those 10 watchers", "/s", True, 2),
    Row("gets_per_s", "gets, 16 in flight", "/s", True, 2),
    Row("list_2000_ms", "list of 2,000 ConfigMaps (1.8 MB)", "ms", False, 2),
    Row("deletes_per_s", "deletes, 16 in flight", "/s", True, 2),
    Row("cpu_s", "processor time of the servers for the five above", "s", False, 2),
    Row("logs_s", "`kubectl logs` of 500 MB", "s", False, 1),
]


class Bench:
    def __init__(self, folder: Path, rounds: int, quick: bool) -> None:
        self.folder = folder
        self.rounds = rounds
        self.quick = quick
        self.path = search_path(["control-plane", "kubectl"])
        self.load = self._build("load")
        self.kubelet = self._build("kubelet")
        self.real, self.ours, self.empty, self.full = Figures(), Figures(), Figures(), Figures()

    def _build(self, name: str) -> Path:
        source = self.folder / f"{name}-source"
        shutil.copytree(ROOT / "benchmarks" / name, source)
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run(["go", "mod", "tidy"], cwd=source, check=True, env=environment, capture_output=True)
        subprocess.run(["go", "build", "-o", self.folder / name, "."], cwd=source, check=True, env=environment)
        return self.folder / name

    def run(self) -> None:
        for count in range(self.rounds):
            for make, figures in ((RealControlPlane, self.real), (Danlu, self.ours)):
                say(f"round {count + 1} of {self.rounds}: {make.name}")
                server = make(self.folder / f"{make.__name__}-{count}", self.path)
                try:
                    self._start(server, figures)
                    self._load(server, f"r{count}", figures)
                finally:
                    server.stop()
        if not self.quick:
            self._logs()
            self._flat()

    def _start(self, server: Server, figures: Figures) -> None:
        figures.add("start_s", server.start())
        figures.add("start_cpu_s", server.cpu())
        time.sleep(SETTLE_SECONDS)
        figures.add("memory_mb", server.memory() / 1e6)
        if isinstance(server, Danlu):
            before = server.cpu()
            time.sleep(5)
            figures.add("idle_percent", (server.cpu() - before) / 5 * 100)

    def _load(self, server: Server, prefix: str, figures: Figures, mode: str = "figures", *flags: str) -> None:
        before = server.cpu()
        done = subprocess.run(
            [str(self.load), *server.load_flags, "-prefix", prefix, *flags, mode],
            stdout=subprocess.PIPE, check=True, timeout=600,
        )  # fmt: skip
        figures.add("cpu_s", server.cpu() - before)
        for name, value in json.loads(done.stdout).items():
            figures.add(name, value)

    def _logs(self) -> None:
        say("logs")
        real = RealControlPlane(self.folder / "real-logs", self.path)
        ours = Danlu(self.folder / "our-logs", self.path)
        speaking: subprocess.Popen[bytes] | None = None
        try:
            real.start()
            ours.start()
            speaking = pods.serve_log(real, self.kubelet, self.folder)
            pods.make_log(ours)
            for _ in range(self.rounds):
                self.real.add("logs_s", pods.read_log_s(real))
                self.ours.add("logs_s", pods.read_log_s(ours))
        finally:
            if speaking is not None:
                speaking.kill()
                speaking.wait()
            real.stop()
            ours.stop()

    def _flat(self) -> None:
        """An empty server and a full one at the same time, measured in turns."""
        say(f"{OBJECTS:,} objects and {FINISHED_JOBS * 4:,} finished pods")
        empty, full = Danlu(self.folder / "empty", self.path), Danlu(self.folder / "full", self.path)
        try:
            full.start()
            self._load(full, "full", Figures(), "fill", "-n", str(OBJECTS))
            measured = Figures()
            self._load(full, "measured", measured, "jobs", "-n", "200")
            self.ours.add("jobs_per_s", *measured.seen["jobs_per_s"])
            self._load(full, "more", Figures(), "jobs", "-n", str(FINISHED_JOBS - 200))
            for count in range(self.rounds):
                for server, figures in ((empty, self.empty), (full, self.full)):
                    server.stop()
                    self._start(server, figures)
                for server, figures in ((empty, self.empty), (full, self.full)):
                    self._load(server, f"f{count}", figures)
                    figures.add("pod_ms", *pods.start_ms(server, f"start-{count}"))
        finally:
            empty.stop()
            full.stop()
        self.ours.add("pod_ms", *self.empty.seen["pod_ms"])


def comparison(bench: Bench) -> list[str]:
    lines = [f"| work | {RealControlPlane.name} | `danlu up` | better by | goal |", "|---|---|---|---|---|"]
    for row in [row for row in ROWS if row.figure in bench.ours.seen]:
        real, ours = bench.real.middle(row.figure), bench.ours.middle(row.figure)
        ratio = ours / real if row.more_is_better else real / ours
        verdict = "met" if ratio >= row.goal else "missed"
        lines.append(
            f"| {row.title} | {number(real)} {row.unit} | {number(ours)} {row.unit} | {ratio:.1f} × "
            f"| {row.goal:g} ×: {verdict} |"
        )
    alone: list[tuple[str, str, str, Callable[[float], bool], str]] = [
        ("start_s", "start to first `kubectl get ns`", "s", lambda v: v < 1.5, "under 1.5 s"),
        ("pod_ms", "`kubectl create` returned → the pod's process runs", "ms", lambda v: v <= 50, "50 ms"),
        ("idle_percent", "processor time when idle", "% of a core", lambda v: v < 1, "under 1 %"),
        ("jobs_per_s", "200 Jobs × 4 pods of `true`, to their end", "jobs/s", lambda v: v >= 20, "20/s, next issue"),
    ]  # fmt: skip
    for name, title, unit, reached, goal in [row for row in alone if row[0] in bench.ours.seen]:
        value = bench.ours.middle(name)
        lines.append(f"| {title} | | {number(value)} {unit} | | {goal}: {'met' if reached(value) else 'missed'} |")
    return lines


def flatness(bench: Bench) -> list[str]:
    lines = ["| work | empty | full | full is worse by |", "|---|---|---|---|"]
    rows = [(row.figure, row.title, row.unit, row.more_is_better) for row in ROWS if row.figure != "logs_s"]
    rows.append(("pod_ms", "`kubectl create` returned → the pod's process runs", "ms", False))
    for name, title, unit, more in rows:
        before, after = bench.empty.middle(name), bench.full.middle(name)
        worse = (before / after if more else after / before) - 1
        lines.append(f"| {title} | {number(before)} {unit} | {number(after)} {unit} | {worse:+.0%} |")
    return lines


def show_api(bench: Bench) -> list[str]:
    lines = comparison(bench)
    if not bench.quick:
        lines += [
            "",
            f"With {OBJECTS:,} more objects and {FINISHED_JOBS * 4:,} finished pods stored:",
            "",
            *flatness(bench),
        ]
    return lines


@dataclass(frozen=True, slots=True)
class Part:
    about: str
    run: Callable[[Run], list[str]]  # measures, and returns the lines of its table


class Run:
    """What all parts share."""

    def __init__(self, folder: Path, rounds: int, quick: bool) -> None:
        self.folder = folder
        self.rounds = rounds
        self.quick = quick
        self.kept: dict[str, dict[str, list[float]]] = {}

    def folder_of(self, part: str) -> Path:
        folder = self.folder / part
        folder.mkdir()
        return folder

    def keep(self, name: str, figures: Figures) -> None:
        self.kept[name] = figures.seen


def api(run: Run) -> list[str]:
    bench = Bench(run.folder_of("api"), run.rounds, run.quick)
    bench.run()
    for name, figures in (("real", bench.real), ("ours", bench.ours), ("empty", bench.empty), ("full", bench.full)):
        run.keep(f"api {name}", figures)
    return show_api(bench)


def operator_part(name: str, measure: Callable[[Operators], None]) -> Callable[[Run], list[str]]:
    def part(run: Run) -> list[str]:
        bench = Operators(run.folder_of(name), run.rounds)
        measure(bench)
        run.keep(f"{name} bare floor", bench.bare_floor)
        run.keep(f"{name} floor", bench.floor)
        run.keep(f"{name} floor with services", bench.named_floor)
        for contender, figures in bench.figures.items():
            run.keep(f"{name} {contender}", figures)
        return tables.operators(bench)

    return part


def job_part(name: str, *measures: Callable[[JobBench], None]) -> Callable[[Run], list[str]]:
    def part(run: Run) -> list[str]:
        bench = JobBench(run.folder_of(name), search_path(["kubectl"]), run.rounds)
        for measure in measures:
            measure(bench)
        run.keep(name, bench.figures)
        return tables.jobs(bench.figures)

    return part


def speed_and_requests(bench: Operators) -> None:
    bench.speed()
    bench.requests()


def console_part(run: Run) -> list[str]:
    found = console.measure(run.folder_of("console"), run.rounds)
    run.keep("console", found)
    return console.table(found)


PARTS = {
    "api": Part("the API, side by side with a real control plane", api),
    "jobs": Part("many small jobs, and how soon a job's ranks run", job_part("jobs", JobBench.rate, JobBench.latency)),
    "training": Part("example 03 inside Danlu and under torchrun", job_part("training", JobBench.training)),
    "notebook": Part("a notebook and `jupyter lab` by hand", job_part("notebook", JobBench.notebook)),
    "console": Part("the web console in a real browser", console_part),
    "operator": Part("operators on a real API server with fake nodes", operator_part("operator", speed_and_requests)),
    "operator-equal": Part(
        "the same with all programs at one priority",
        operator_part("operator-equal", lambda bench: bench.speed(equal=True)),
    ),
    "operator-memory": Part("their memory with many jobs", operator_part("operator-memory", Operators.memory)),
    "operator-large": Part("5,000 jobs on 500 fake nodes", operator_part("operator-large", Operators.large)),
}


def main() -> None:
    listed = "; ".join(f"{name}: {part.about}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Speed, side by side with others.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: api jobs operator. {listed}")
    parser.add_argument("--rounds", type=int, default=3, help="the median of this many is shown (default: 3)")
    parser.add_argument("--quick", action="store_true", help="api: leave out logs, jobs and the full server")
    parser.add_argument("--json", type=Path, help="write every value seen to this file")
    arguments = parser.parse_args()
    for name in arguments.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; there are {', '.join(PARTS)}")
    folder = Path(tempfile.mkdtemp(prefix="danlu-bench-"))
    run = Run(folder, arguments.rounds, arguments.quick)
    try:
        for name in arguments.parts or ("api", "jobs", "operator"):
            begun = time.monotonic()
            lines = PARTS[name].run(run)
            print("\n".join(["", f"## {name}: {PARTS[name].about}", "", *lines, ""]))
            say(f"{name} took {(time.monotonic() - begun) / 60:.1f} minutes")
            if arguments.json:
                arguments.json.write_text(json.dumps(run.kept, indent=1))
    except BaseException:
        say(f"the servers' logs are in {folder}")
        raise
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
