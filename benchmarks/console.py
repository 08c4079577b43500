"""The console as a person feels it, in a real browser on a real `danlu up`: a part of `scripts/bench`.

    scripts/bench console [--rounds N] [--json FILE]

It needs Chromium and Node. What is measured stands in README.md. Nothing fails because it is slow.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from figures import Figures, number, say
from servers import ROOT, Danlu

JOBS = 5_000
LOG_LINES = 1_000_000
LOG_JOB = "long-log"
NAMESPACE = "default"
WATCHED_S = 10
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# figure, title, unit, goal
ROWS = (
    ("landing", "landing page, cold", "ms", "under 1,000"),
    ("jobs_usable", f"click on Job → rows of {JOBS:,} jobs", "ms", "under 1,000"),
    ("jobs_usable_cpu", "… processor time of the page for it", "ms", ""),
    ("jobs_all_after", "… until the last of them is there", "ms", ""),
    ("jobs_search", "… search among them", "ms", ""),
    ("jobs_scroll_fps", "scrolling 100 rows", "frames/s", "60"),
    ("jobs_scroll_longest", "… longest frame", "ms", ""),
    ("jobs_scroll_cpu", "… processor time of the page for a frame", "ms", "16.7 is 60 frames/s"),
    ("status_change", "change of status sent → on screen", "ms", "under 300"),
    ("log_opens", f"click on Logs → last line of {LOG_LINES:,}", "ms", "under 1,000"),
    ("log_opens_cpu", "… processor time of the page for it", "ms", ""),
    ("log_whole_after", "… until all lines are there", "ms", ""),
    ("log_scroll_fps", "scrolling them", "frames/s", "60"),
    ("log_scroll_longest", "… longest frame", "ms", ""),
    ("log_scroll_cpu", "… processor time of the page for a frame", "ms", "16.7 is 60 frames/s"),
    ("watching_percent", "processor time of the server for an open, idle console", "% of a core", "under 1"),
)


def measure(folder: Path, rounds: int) -> Figures:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"bench: the console is measured in a browser: install one of {', '.join(BROWSERS)}")
    subprocess.run([ROOT / "scripts/build"], check=True)
    server = Danlu(folder, os.environ["PATH"])
    try:
        server.start()
        say(f"{JOBS:,} jobs and a log of {LOG_LINES:,} lines")
        fill(server, rounds)
        return look(server, browser, rounds)
    finally:
        server.stop()


def fill(server: Danlu, rounds: int) -> None:
    """Suspended, so that no pods are made; and one whose only replica writes the long log."""
    names = [f"job-{index}" for index in range(JOBS - rounds - 1)]
    names += [f"job-{index}-changes" for index in range(rounds)]
    for start in range(0, len(names), 500):
        manifests = [job(name, suspend=True) for name in names[start : start + 500]]
        server.run("create", "-f", "-", manifest={"apiVersion": "v1", "kind": "List", "items": manifests})
    script = f"seq -f 'step %.0f loss 0.1234 accuracy 0.9876 lr 0.001' 1 {LOG_LINES}; sleep 100000"
    server.run("create", "-f", "-", manifest=job(LOG_JOB, script))
    deadline = time.monotonic() + 120
    while (
        f"step {LOG_LINES} " not in server.run("logs", f"{LOG_JOB}-master-0", "--tail=1", check=False).stdout.decode()
    ):
        if time.monotonic() > deadline:
            raise RuntimeError("the long log was not written within two minutes")
        time.sleep(0.5)


def job(name: str, script: str = "true", *, suspend: bool = False) -> dict[str, Any]:
    resources = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "pytorch", "image": "busybox", "command": ["sh", "-c", script], "resources": resources}
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "labels": {"team": f"team-{len(name) % 5}"}},
        "spec": {"runPolicy": {"suspend": suspend}, "pytorchReplicaSpecs": {"Master": master}},
    }


def look(server: Danlu, browser: str, rounds: int) -> Figures:
    asked = {
        "browser": browser,
        "link": console_link(server),
        "namespace": NAMESPACE,
        "jobs": JOBS,
        "logJob": LOG_JOB,
        "lastLine": f"step {LOG_LINES} loss",
        "rounds": rounds,
    }
    found = Figures()
    say("the browser")
    script = ROOT / "benchmarks/console.mjs"
    with subprocess.Popen(
        ["node", str(script), json.dumps(asked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        told = running.stdout.readline()
        if not told:
            raise RuntimeError("the browser's part failed; its reason stands above")
        for name, values in json.loads(told).items():
            found.add(name, *values)
        before = server.cpu()  # the script keeps one page open until its input ends
        time.sleep(WATCHED_S)
        found.add("watching_percent", (server.cpu() - before) / WATCHED_S * 100)
        running.stdin.close()
    return found


def console_link(server: Danlu) -> str:
    log = (server.folder / "danlu.log").read_text()
    links = re.findall(r"https?://\S+/\?token=\w+", log)
    if not links:
        raise RuntimeError("danlu up printed no link to its console")
    return str(links[-1])


def table(found: Figures) -> list[str]:
    lines = ["| what | median | all | goal |", "|---|---|---|---|"]
    for name, title, unit, goal in ROWS:
        if name in found:
            values = ", ".join(number(value) for value in found.seen[name])
            lines.append(f"| {title} | {number(found.middle(name))} {unit} | {values} | {goal} |")
    return lines
