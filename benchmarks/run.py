"""`scripts/bench`: side by side in one run, printed as tables with ratios. Times vary by machine; ratios carry over.

    scripts/bench [--rounds N] [--quick] [--json FILE]

Rounds alternate between the servers, so that a busy moment of the machine does not fall on one of them alone; each
figure is the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pods
from servers import ROOT, Danlu, RealControlPlane, Server

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


@dataclass(slots=True)
class Figures:
    """All values seen of each figure."""

    seen: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, *values: float) -> None:
        self.seen.setdefault(name, []).extend(values)

    def middle(self, name: str) -> float:
        return statistics.median(self.seen[name])


class Bench:
    def __init__(self, folder: Path, rounds: int, quick: bool) -> None:
        self.folder = folder
        self.rounds = rounds
        self.quick = quick
        script = ROOT / "scripts/real-kubernetes"
        built = subprocess.run([script, "control-plane", "kubectl"], stdout=subprocess.PIPE, text=True, check=True)
        self.path = os.pathsep.join([*built.stdout.split(), os.environ["PATH"]])
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
        for number in range(self.rounds):
            for make, figures in ((RealControlPlane, self.real), (Danlu, self.ours)):
                say(f"round {number + 1} of {self.rounds}: {make.name}")
                server = make(self.folder / f"{make.__name__}-{number}", self.path)
                try:
                    self._start(server, figures)
                    self._load(server, f"r{number}", figures)
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
            for number in range(self.rounds):
                for server, figures in ((empty, self.empty), (full, self.full)):
                    server.stop()
                    self._start(server, figures)
                for server, figures in ((empty, self.empty), (full, self.full)):
                    self._load(server, f"f{number}", figures)
                    figures.add("pod_ms", *pods.start_ms(server, f"start-{number}"))
        finally:
            empty.stop()
            full.stop()
        self.ours.add("pod_ms", *self.empty.seen["pod_ms"])


def say(text: str) -> None:
    """With the load average: where others are at work too, times say little, and processor time and ratios more."""
    print(f"bench: {text} (load average {os.getloadavg()[0]:.1f})", flush=True)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Speed, side by side with a real control plane.")
    parser.add_argument("--rounds", type=int, default=3, help="the median of this many is shown (default: 3)")
    parser.add_argument("--quick", action="store_true", help="leave out logs, jobs and the full server")
    parser.add_argument("--json", type=Path, help="write every value seen to this file")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="danlu-bench-"))
    try:
        bench = Bench(folder, arguments.rounds, arguments.quick)
        bench.run()
    except BaseException:
        say(f"the servers' logs are in {folder}")
        raise
    shutil.rmtree(folder)
    lines = ["", *comparison(bench)]
    if not arguments.quick:
        filled = f"With {OBJECTS:,} more objects and {FINISHED_JOBS * 4:,} finished pods stored:"
        lines += ["", filled, "", *flatness(bench)]
    print("\n".join(lines))
    if arguments.json:
        kept = {"real": bench.real, "ours": bench.ours, "empty": bench.empty, "full": bench.full}
        arguments.json.write_text(json.dumps({name: figures.seen for name, figures in kept.items()}, indent=1))


if __name__ == "__main__":
    main()
