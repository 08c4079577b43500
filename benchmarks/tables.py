"""Tables of what operators and jobs were measured at, each row with its goal."""

from __future__ import annotations

from figures import Figures, number
from operators import (
    DANLU,
    FINISHED,
    FINISHED_REPLICAS,
    JOBS,
    KUBEFLOW,
    LARGE_NODES,
    REPLICAS,
    STILL_RUNNING,
    Operators,
)


def verdict(reached: bool) -> str:
    return "met" if reached else "missed"


def operators(bench: Operators) -> list[str]:
    ours, theirs = bench.figures[DANLU.name], bench.figures[KUBEFLOW.name]
    lines = [f"| work | straight to the API | {KUBEFLOW.name} | {DANLU.name} | goal |", "|---|---|---|---|---|"]
    if "all_running_s" in ours and "all_running_s" in theirs:
        lines += _turns(bench, theirs, ours)
    many = f"{FINISHED:,} finished jobs × {FINISHED_REPLICAS} and {STILL_RUNNING} running × {REPLICAS}"
    rows = [
        ("operator_cpu_s", "… processor time of the operator", "s", 0.0),
        ("all_running_mb", "… its memory after that", "MB", 0.0),
        ("one_running_s", f"1 job × {REPLICAS}, created → Running", "s", 1.0),
        ("requests_per_job", "API requests per job, creation to finish", "", 0.5),
        ("empty_mb", "operator memory without any job", "MB", 0.0),
        ("memory_mb", f"operator memory with {many}", "MB", 1.0),
    ]
    for name, title, unit, most in rows:
        if name in ours and name in theirs:
            lines.append(_beside(title, unit, theirs.middle(name), ours.middle(name), most))
    return lines + _steps(theirs, ours)


def _turns(bench: Operators, theirs: Figures, ours: Figures) -> list[str]:
    floor, named_floor = bench.floor, bench.named_floor
    low, peer, own = (one.middle("all_running_s") for one in (floor, theirs, ours))
    goal = f"1.3 × the floor: {own / low:.2f} ×, {verdict(own <= 1.3 * low)}; "
    goal += f"2 × faster than Kubeflow: {peer / own:.1f} ×, {verdict(peer >= 2 * own)}"
    title = f"{JOBS} PyTorchJobs × {REPLICAS}, all pods and jobs Running (floor: the same pods)"
    lines = [f"| {title} | {low:.1f} s | {peer:.1f} s | {own:.1f} s | {goal} |"]
    low = bench.bare_floor.middle("all_running_s")
    lines.append(f"| … beside pods that are a container and nothing else | {low:.1f} s | | | {own / low:.2f} × |")
    peer, own = (one.middle("services_when_running") for one in (theirs, ours))
    lines.append(f"| … services that were there by then, of {JOBS * REPLICAS} | | {peer:.0f} | {own:.0f} | |")
    low, peer, own = (one.middle("complete_s") for one in (named_floor, theirs, ours))
    title = "… all services there, too (floor: the same pods and services)"
    goal = f"{own / low:.2f} × the floor; {peer / own:.1f} × faster than Kubeflow"
    lines.append(f"| {title} | {low:.1f} s | {peer:.1f} s | {own:.1f} s | {goal} |")
    for name, title, least in (
        ("running_cpu_s", "… processor time of the control plane and the fake nodes until all run", floor),
        ("complete_cpu_s", "… and until all services are there", named_floor),
        ("api_cpu_s", "… of it kube-apiserver's", named_floor),
    ):
        low, peer, own = (one.middle(name) for one in (least, theirs, ours))
        lines.append(f"| {title} | {low:.1f} s | {peer:.1f} s | {own:.1f} s | |")
    return lines


LARGE_ROWS = (
    ("ms_per_job", "jobs × 2 on {nodes} nodes: each of the last step's jobs, to its last service", "ms"),
    ("operator_ms_per_job", "… processor time of the operator for each", "ms"),
    ("mb", "… operator memory", "MB"),
    ("one_s", "… then one job × 4, created → Running", "s"),
)


def _steps(theirs: Figures, ours: Figures) -> list[str]:
    lines = []
    for size in sorted({int(name.split("_")[1]) for name in ours.seen if name.startswith("large_")}):
        for figure, title, unit in LARGE_ROWS:
            name = f"large_{size}_{figure}"
            told = title.format(nodes=LARGE_NODES)
            told = f"{size:,} {told}" if figure == "ms_per_job" else told
            peer = f"{number(theirs.middle(name))} {unit}" if name in theirs else "not asked"
            lines.append(f"| {told} | | {peer} | {number(ours.middle(name))} {unit} | |")
    return lines


def _beside(title: str, unit: str, peer: float, own: float, most: float) -> str:
    goal = f"at most {most:g} ×: {own / peer:.2f} ×, {verdict(own <= most * peer)}" if most else ""
    return f"| {title} | | {number(peer)} {unit} | {number(own)} {unit} | {goal} |"


def jobs(figures: Figures) -> list[str]:
    lines = ["| work | by hand | `danlu up` | goal |", "|---|---|---|---|"]
    if "jobs_per_s" in figures:
        rate, used = figures.middle("jobs_per_s"), figures.middle("cpu_ms_per_job")
        title = f"{JOBS} PyTorchJobs × {REPLICAS} of `true`, all finished"
        lines.append(f"| {title} | | {number(rate)} jobs/s | 20/s: {verdict(rate >= 20)} |")
        lines.append(f"| processor time of Danlu for each of them | | {number(used)} ms | |")
    if "above_pods_ms" in figures:
        low, own, above = (figures.middle(name) for name in ("pods_ms", "ranks_ms", "above_pods_ms"))
        title = "submit → all 4 ranks' processes run (by hand: four pods)"
        goal = f"150 ms above: {above:.0f} ms, {verdict(above <= 150)}"
        lines.append(f"| {title} | {low:.0f} ms | {own:.0f} ms | {goal} |")
    if "job_s" in figures:
        low, own, used = (figures.middle(name) for name in ("torchrun_s", "job_s", "own_percent"))
        goal = f"1.02 ×: {own / low:.3f} ×, {verdict(own <= 1.02 * low)}"
        lines.append(f"| example 03's training (by hand: torchrun) | {low:.1f} s | {own:.1f} s | {goal} |")
        title = "processor time of Danlu itself meanwhile"
        lines.append(f"| {title} | | {used:.2f} % of a core | under 3 %: {verdict(used < 3)} |")
    if "notebook_s" in figures:
        low, own = figures.middle("jupyter_s"), figures.middle("notebook_s")
        goal = f"1.2 ×: {own / low:.2f} ×, {verdict(own <= 1.2 * low)}"
        lines.append(f"| Notebook created → JupyterLab answers | {low:.2f} s | {own:.2f} s | {goal} |")
    return lines
