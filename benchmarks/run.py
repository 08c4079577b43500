"""`scripts/bench`: side by side in one run, printed as a table with ratios. Times vary by machine; ratios carry over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from servers import ROOT, Danlu, RealControlPlane, Server

ROUNDS = 3
# figure: (title, unit, larger is better)
FIGURES = {
    "start_s": ("start to first `kubectl get ns`", "s", False),
    "memory_mb": ("memory after that", "MB", False),
    "creates_per_s": ("ConfigMap creates, 16 in flight, 10 watchers", "/s", True),
    "events_per_s": ("watch events, 10 watchers", "/s", True),
    "gets_per_s": ("gets, 16 in flight", "/s", True),
    "list_2000_ms": ("list of 2,000 ConfigMaps (1.8 MB)", "ms", False),
    "deletes_per_s": ("deletes, 16 in flight", "/s", True),
}


def build_load(folder: Path) -> Path:
    target = folder / "load"
    subprocess.run(
        ["go", "build", "-o", str(target), "."], cwd=ROOT / "benchmarks/load", check=True, env={**os.environ, "CGO_ENABLED": "0"}
    )
    return target


def measure(server: Server, load: Path, prefix: str, figures: dict[str, list[float]]) -> None:
    done = subprocess.run(
        [str(load), *server.load_flags, "-prefix", prefix], capture_output=True, text=True, check=True
    )
    for name, value in json.loads(done.stdout).items():
        figures.setdefault(name, []).append(value)


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def pod_start_ms(server: Server) -> list[float]:
    """From `kubectl create` returning to the process having run its first instruction."""
    found = []
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    for index in range(9):
        with tempfile.TemporaryDirectory() as shared:
            mark = Path(shared) / "started"
            os.chmod(shared, 0o777)
            manifest: dict[str, Any] = {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"start-{index}"},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "c", "image": "busybox", "command": ["sh", "-c", "date +%s.%N > /shared/new; mv /shared/new /shared/started"],
                        "volumeMounts": [{"name": "s", "mountPath": "/shared"}],
                    }],
                    "volumes": [{"name": "s", "hostPath": {"path": shared}}],
                },
            }  # fmt: skip
            subprocess.run(
                ["kubectl", "create", "-f", "-"], input=json.dumps(manifest).encode(), env=environment, check=True, capture_output=True
            )
            returned = time.time()
            while not mark.exists() and time.time() - returned < 30:
                time.sleep(0.001)
            found.append((float(mark.read_text()) - returned) * 1000)
    return found


def fill(server: Server, load: Path) -> None:
    """20,000 stored objects and 2,000 finished pods, to see that nothing gets slower with them."""
    from fill import fill_with_objects

    fill_with_objects(server.kubeconfig, 20_000, 2_000)


def row(title: str, unit: str, real: float | None, ours: float, larger: bool) -> str:
    if real is None:
        return f"| {title} | | {ours:.4g} {unit} | |"
    ratio = ours / real if larger else real / ours
    return f"| {title} | {real:.4g} {unit} | {ours:.4g} {unit} | {ratio:.1f} × |"


def main() -> None:
    binaries = subprocess.run(
        [str(ROOT / "scripts/real-kubernetes"), "control-plane", "kubectl"], capture_output=True, text=True, check=True
    ).stdout.split()
    real_figures: dict[str, list[float]] = {}
    our_figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="danlu-bench-") as temporary:
        load = build_load(Path(temporary))
        # Interleaved, so that a busy moment of the machine does not fall on one of them alone.
        for round_ in range(ROUNDS):
            for make, figures in ((lambda f: RealControlPlane(f, [Path(b) for b in binaries]), real_figures), (Danlu, our_figures)):
                folder = Path(tempfile.mkdtemp(dir=temporary))
                server = make(folder)
                try:
                    figures.setdefault("start_s", []).append(server.start())
                    time.sleep(3)
                    figures.setdefault("memory_mb", []).append(server.memory() / 1e6)
                    measure(server, load, f"r{round_}", figures)
                    if isinstance(server, Danlu) and round_ == ROUNDS - 1:
                        our_figures["pod_start_ms"] = pod_start_ms(server)
                        full: dict[str, list[float]] = {}
                        fill(server, load)
                        measure(server, load, "full", full)
                        full["pod_start_ms"] = pod_start_ms(server) if False else our_figures["pod_start_ms"]
                finally:
                    server.stop()
    lines = ["| work | Kubernetes 1.36.3 + etcd | `danlu up` | Danlu is better by |", "|---|---|---|---|"]
    for name, (title, unit, larger) in FIGURES.items():
        lines.append(row(title, unit, middle(real_figures[name]), middle(our_figures[name]), larger))
    lines.append(row("`kubectl create` returned → the pod's process runs", "ms", None, middle(our_figures["pod_start_ms"]), False))
    lines += ["", "With 20,000 more objects and 2,000 finished pods stored:", "", "| work | before | with them | change |", "|---|---|---|---|"]
    for name in ("creates_per_s", "events_per_s", "gets_per_s", "list_2000_ms", "deletes_per_s"):
        title, unit, larger = FIGURES[name]
        before, after = middle(our_figures[name]), middle(full[name])
        change = (after / before if larger else before / after) - 1
        lines.append(f"| {title} | {before:.4g} {unit} | {after:.4g} {unit} | {change:+.0%} |")
    print("\n".join(lines))


main()
