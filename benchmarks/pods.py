"""What needs real processes: how soon a pod's process runs, and how fast its log can be read."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from servers import Danlu, RealControlPlane, Server, free_port

LOG_BYTES = 500_000_000
# The same text as the other side's: see kubelet/main.go.
SPEAK = f"yes 'step 00000000 {'x' * 85}' | head -c {LOG_BYTES}"
WAIT_SECONDS = 120


def pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], **spec.pop("container", {})}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }  # fmt: skip


def start_ms(server: Danlu, prefix: str, times: int = 9) -> list[float]:
    """From `kubectl create` returning to the process having run its first instruction."""
    found = []
    for index in range(times):
        with tempfile.TemporaryDirectory() as shared:
            mark = Path(shared) / "started"
            script = "date +%s.%N > /shared/new; mv /shared/new /shared/started"
            mounts = {"volumeMounts": [{"name": "s", "mountPath": "/shared"}]}
            volumes = [{"name": "s", "hostPath": {"path": shared}}]
            manifest = pod(f"{prefix}-{index}", script, container=mounts, volumes=volumes)
            server.run("create", "-f", "-", manifest=manifest)
            returned = time.time()
            while not mark.exists():
                if time.time() - returned > WAIT_SECONDS:
                    raise RuntimeError(f"pod {prefix}-{index} did not start")
                time.sleep(0.001)
            found.append((float(mark.read_text()) - returned) * 1000)
    return found


def make_log(server: Danlu) -> None:
    server.run("create", "-f", "-", manifest=pod("speaker", SPEAK))
    server.run("wait", "pod/speaker", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={WAIT_SECONDS}s")


def serve_log(server: RealControlPlane, kubelet: Path, folder: Path) -> subprocess.Popen[bytes]:
    """The kubelet's log reader on a log of the same text, behind the real API server."""
    log, port = folder / "kubelet.log", free_port()
    subprocess.run([kubelet, "-write", log, "-bytes", str(LOG_BYTES)], check=True)
    process = subprocess.Popen([kubelet, "-log", log, "-addr", f"127.0.0.1:{port}"])
    server.add_kubelet(port)
    return process


def read_log_s(server: Server) -> float:
    begun = time.monotonic()
    reader = subprocess.Popen(server.kubectl("logs", "speaker"), stdout=subprocess.PIPE, env={"PATH": server.path})
    assert reader.stdout is not None
    size = 0
    while chunk := os.read(reader.stdout.fileno(), 1 << 20):
        size += len(chunk)
    if reader.wait() or size < LOG_BYTES:
        raise RuntimeError(f"{server.name}: kubectl logs ended with {reader.returncode} after {size} bytes")
    return time.monotonic() - begun
