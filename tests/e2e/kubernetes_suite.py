"""Kubernetes' own conformance suite (e2e.test) as a judge: which specs there are to pass, and how they are run.

    python -m tests.e2e.kubernetes_suite KUBECONFIG real|danlu [SIG...]

runs every [Conformance] spec of these groups (default: those of the list) on a cluster and writes into
kubernetes-suite.yaml whether it passed there. The real one is a control plane with kwok's fake nodes
(`benchmarks/fakecluster.py`): a spec that needs containers to do something fails on it and is not asked of `danlu up`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
LIST = Path(__file__).with_name("kubernetes-suite.yaml")
SIGS = ("sig-api-machinery", "sig-auth")
LABELS = re.compile(r" \[[^\[\]]*\]$")  # what the report puts behind a spec's name
HEAD = """\
# Specs of Kubernetes' conformance suite: whether each passes on a real control plane with fake nodes and on `danlu up`;
# `why` it does not here. Written by `python -m tests.e2e.kubernetes_suite` (see there), the reasons by hand.
"""


@dataclass(slots=True)
class Spec:
    name: str
    real: bool = False
    danlu: bool = False
    seconds: float = 0.0  # on `danlu up`
    why: str = ""


@dataclass(slots=True)
class Result:
    passed: bool
    seconds: float
    message: str


def load() -> list[Spec]:
    return [Spec(**entry) for entry in yaml.safe_load(LIST.read_text())]


def save(specs: Iterable[Spec]) -> None:
    entries: list[dict[str, Any]] = []
    for spec in sorted(specs, key=lambda one: one.name):
        entry: dict[str, Any] = {"name": spec.name, "real": spec.real, "danlu": spec.danlu}
        if spec.danlu:
            entry["seconds"] = round(spec.seconds, 1)
        elif spec.why:
            entry["why"] = spec.why
        entries.append(entry)
    LIST.write_text(HEAD + yaml.safe_dump(entries, sort_keys=False, width=1000))


def program() -> str:
    """Path of e2e.test, built if Go is there; "" when it cannot be had."""
    if shutil.which("go") is None:
        return ""
    built = subprocess.run([ROOT / "scripts/real-kubernetes", "e2e"], capture_output=True, text=True, check=True)
    found = Path(built.stdout.split()[0]) / "e2e.test"
    return str(found) if found.is_file() else ""


def run(binary: str, kubeconfig: Path, specs: Sequence[Spec], processes: int = 3) -> dict[str, Result]:
    """All specs, dealt out to some processes that run side by side; by name."""
    hands: list[list[Spec]] = [[] for _ in range(min(processes, len(specs)))]
    for spec in sorted(specs, key=lambda one: -one.seconds):
        min(hands, key=lambda hand: sum(1 + one.seconds for one in hand)).append(spec)
    found: dict[str, Result] = {}
    with tempfile.TemporaryDirectory() as folder:
        running = [
            _start(binary, kubeconfig, "|".join(re.escape(one.name) for one in hand), Path(folder) / f"{at}.xml")
            for at, hand in enumerate(hands)
        ]
        try:
            for process in running:
                process.wait()
        finally:
            for process in running:
                process.kill()
        for at in range(len(hands)):
            found |= read_report(Path(folder) / f"{at}.xml")
    return found


def _start(binary: str, kubeconfig: Path, focus: str, report: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            binary, "--kubeconfig", str(kubeconfig), "--provider", "skeleton", "--allowed-not-ready-nodes=-1",
            "--disable-log-dump", "--ginkgo.focus", focus, "--ginkgo.junit-report", str(report),
            "--ginkgo.timeout", "60m", "--ginkgo.no-color",
        ],
        cwd=report.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{Path(binary).parent}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip


def read_report(path: Path) -> dict[str, Result]:
    found: dict[str, Result] = {}
    if not path.is_file():  # the process died before it could write one: its specs are missing from the answer
        return found
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name", "")
        if case.find("skipped") is not None or not name.startswith("[It] "):
            continue
        failure = case.find("failure")
        message = (failure.get("message") or "").partition("\n")[0] if failure is not None else ""
        passed = case.get("status") == "passed"
        found[LABELS.sub("", name.removeprefix("[It] "))] = Result(passed, float(case.get("time") or 0), message)
    return found


def main() -> None:
    kubeconfig, column, *sigs = sys.argv[1:]
    binary = program() or sys.exit("Go is needed to build e2e.test")
    known = {spec.name: spec for spec in (load() if LIST.is_file() else [])}
    with tempfile.TemporaryDirectory() as folder:
        focus = "|".join(rf"\[{sig}\].*\[Conformance\]" for sig in sigs or SIGS)
        report = Path(folder) / "report.xml"
        _start(str(binary), Path(kubeconfig).absolute(), focus, report).wait()
        for name, result in read_report(report).items():
            spec = known.setdefault(name, Spec(name))
            setattr(spec, column, result.passed)
            if column == "danlu":
                spec.seconds = result.seconds
    save(known.values())


if __name__ == "__main__":
    main()
