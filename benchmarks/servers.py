"""The two API servers that are compared: a real control plane, and `danlu up`. Each starts in a folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOKEN = "benchmark"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident(pids: list[int]) -> int:
    """Proportional set size in bytes: shared pages are counted once over all processes."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def descendants(pid: int) -> list[int]:
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found += descendants(int(child))
    return found


class Server:
    """Something with a URL, a kubeconfig and processes."""

    name = ""
    kubeconfig: Path
    pids: list[int]
    load_flags: list[str]

    def start(self) -> float:
        """Seconds until the first `kubectl get ns` worked."""
        begun = time.monotonic()
        self.launch()
        while time.monotonic() - begun < 120:
            tried = subprocess.run(
                ["kubectl", "get", "ns", "default"], env={**os.environ, "KUBECONFIG": str(self.kubeconfig)}, capture_output=True
            )
            if tried.returncode == 0:
                return time.monotonic() - begun
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start: {tried.stderr.decode()}")

    def launch(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def memory(self) -> int:
        return resident([pid for top in self.pids for pid in descendants(top)])


class RealControlPlane(Server):
    name = "Kubernetes 1.36.3 + etcd"

    def __init__(self, folder: Path, binaries: list[Path]) -> None:
        self.folder = folder
        self.path = os.pathsep.join([*map(str, binaries), os.environ["PATH"]])
        self.kubeconfig = folder / "kubeconfig"
        self.port = free_port()
        self.load_flags = ["-server", f"https://127.0.0.1:{self.port}", "-token", TOKEN]
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:  # type: ignore[override]
        return [process.pid for process in self.processes]

    def launch(self) -> None:
        folder = self.folder
        (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        subprocess.run(["openssl", "genrsa", "-out", folder / "sa.key", "2048"], check=True, capture_output=True)
        self.kubeconfig.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: real\n"
            f"clusters: [{{name: real, cluster: {{server: 'https://127.0.0.1:{self.port}', insecure-skip-tls-verify: true}}}}]\n"
            f"users: [{{name: admin, user: {{token: {TOKEN}}}}}]\n"
            "contexts: [{name: real, context: {cluster: real, user: admin}}]\n"
        )
        etcd, peer = free_port(), free_port()
        self._run(
            "etcd", "--data-dir", folder / "etcd", "--listen-client-urls", f"http://127.0.0.1:{etcd}",
            "--advertise-client-urls", f"http://127.0.0.1:{etcd}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster", f"default=http://127.0.0.1:{peer}",
        )  # fmt: skip
        self._run(
            "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{etcd}", "--bind-address", "127.0.0.1",
            "--secure-port", str(self.port), "--cert-dir", folder / "certs", "--service-cluster-ip-range", "10.96.0.0/16",
            "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", folder / "sa.key",
            "--service-account-signing-key-file", folder / "sa.key", "--token-auth-file", folder / "tokens.csv",
            "--authorization-mode", "Node,RBAC", "--endpoint-reconciler-type", "none",
        )  # fmt: skip
        limits = ["--kube-api-qps", "2000", "--kube-api-burst", "4000"]
        self._run(
            "kube-controller-manager", "--kubeconfig", self.kubeconfig, "--service-account-private-key-file",
            folder / "sa.key", "--leader-elect=false", "--secure-port", str(free_port()), "--bind-address", "127.0.0.1", *limits,
        )  # fmt: skip
        self._run(
            "kube-scheduler", "--kubeconfig", self.kubeconfig, "--leader-elect=false", "--secure-port", str(free_port()),
            "--bind-address", "127.0.0.1", *limits,
        )  # fmt: skip

    def _run(self, *words: object) -> None:
        log = (self.folder / f"{words[0]}.log").open("wb")
        self.processes.append(
            subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, env={**os.environ, "PATH": self.path})
        )

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


class Danlu(Server):
    name = "danlu up"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "danlu"
        self.port = free_port()
        self.kubeconfig = self.folder / "kubeconfig"
        pki = self.folder / "pki"
        self.load_flags = [
            "-server", f"https://127.0.0.1:{self.port}", "-cert", str(pki / "admin.crt"), "-key", str(pki / "admin.key"),
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> list[int]:  # type: ignore[override]
        assert self.process is not None
        return [self.process.pid]

    def launch(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "danlu", "up", "--data-dir", str(self.folder), "--port", str(self.port)],
            stdout=log, stderr=log,
        )  # fmt: skip

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
