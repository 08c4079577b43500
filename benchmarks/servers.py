"""The two API servers that are compared: a real control plane, and `danlu up`. Each starts in a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TOKEN = "benchmark"
READY_SECONDS = 120
TIMES = 5  # that a part of the control plane which gives up at its start is started again

PROGRAMS = {
    "control-plane": ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    "kubectl": ("kubectl",),
    "kwok": ("kwok",),
    "kubeflow": ("training-operator",),
}
"""By the names that scripts/real-kubernetes has for them."""


def search_path(parts: Sequence[str]) -> str:
    """Where these parts' programs are found: on PATH, or built. With all on PATH neither Go nor a network is needed."""
    wanted = [program for part in parts for program in PROGRAMS[part]]
    if all(map(shutil.which, wanted)):
        return os.environ["PATH"]
    built = subprocess.run([ROOT / "scripts/real-kubernetes", *parts], stdout=subprocess.PIPE, text=True, check=True)
    return os.pathsep.join([*built.stdout.split(), os.environ["PATH"]])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def proportional_bytes(pid: int) -> int:
    """The process's memory, with each shared page divided among those who share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def descendants(pid: int) -> list[int]:
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found += descendants(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


class Server:
    """Something with a URL, a kubeconfig and processes."""

    name = ""

    def __init__(self, folder: Path, path: str) -> None:
        """`path`: where programs are looked for, kubectl among them."""
        self.folder = folder
        self.path = path
        self.port = free_port()
        self.kubeconfig = folder / "kubeconfig"
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def load_flags(self) -> list[str]:
        raise NotImplementedError

    def launch(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def start(self) -> float:
        """Seconds until the first `kubectl get ns` worked."""
        begun = time.monotonic()
        self.launch()
        while time.monotonic() - begun < READY_SECONDS:
            tried = self.run("get", "ns", "default", check=False)
            if tried.returncode == 0:
                return time.monotonic() - begun
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start: {tried.stderr.decode()}")

    def kubectl(self, *words: str) -> list[str]:
        return ["kubectl", "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(self.folder / "cache"), *words]

    def run(self, *words: str, manifest: Any = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        sent = json.dumps(manifest).encode() if manifest is not None else None
        return subprocess.run(
            self.kubectl(*words), input=sent, capture_output=True, check=check, env=self._environment()
        )

    def pids(self) -> list[int]:
        return [pid for process in self.processes for pid in descendants(process.pid)]

    def memory(self) -> int:
        return sum(proportional_bytes(pid) for pid in self.pids())

    def cpu(self) -> float:
        return sum(cpu_seconds(pid) for pid in self.pids())

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": self.path, "PYTHONPATH": str(ROOT / "src")}

    def _spawn(self, *words: object, log: str) -> None:
        self.processes.append(self._begin(*words, log=log))

    def _begin(self, *words: object, log: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{log}.log").open("ab") as output:
            return subprocess.Popen(list(map(str, words)), stdout=output, stderr=output, env=self._environment())


class RealControlPlane(Server):
    name = "Kubernetes 1.36.3 + etcd"
    apiserver_flags: tuple[object, ...] = ()  # further ones
    _stopping = False

    @property
    def load_flags(self) -> list[str]:
        return ["-server", f"https://127.0.0.1:{self.port}", "-token", TOKEN]

    def launch(self) -> None:
        self.launch_api()
        self.launch_controllers()

    def launch_api(self) -> None:
        folder, etcd, peer = self.folder, free_port(), free_port()
        self._write_files()
        self._spawn(
            "etcd", "--data-dir", folder / "etcd", "--listen-client-urls", f"http://127.0.0.1:{etcd}",
            "--advertise-client-urls", f"http://127.0.0.1:{etcd}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster", f"default=http://127.0.0.1:{peer}",
            log="etcd",
        )  # fmt: skip
        self._spawn(
            "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{etcd}", "--bind-address", "127.0.0.1",
            "--secure-port", self.port, "--cert-dir", folder / "certs", "--service-cluster-ip-range", "10.96.0.0/16",
            "--service-account-issuer", "https://kubernetes.default.svc", "--token-auth-file", folder / "tokens.csv",
            "--service-account-key-file", folder / "sa.key", "--service-account-signing-key-file", folder / "sa.key",
            "--authorization-mode", "Node,RBAC", "--endpoint-reconciler-type", "none",
            "--kubelet-preferred-address-types", "InternalIP", *self.apiserver_flags, log="kube-apiserver",
        )  # fmt: skip

    def launch_controllers(self) -> None:
        common = (
            "--kubeconfig", self.kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1",
            "--kube-api-qps", 2000, "--kube-api-burst", 4000,
        )  # fmt: skip
        self._keep(
            "kube-controller-manager", *common, "--service-account-private-key-file", self.folder / "sa.key",
            "--secure-port", free_port(), log="kube-controller-manager",
        )  # fmt: skip
        self._keep("kube-scheduler", *common, "--secure-port", free_port(), log="kube-scheduler")

    def _keep(self, *words: object, log: str) -> None:
        """On a busy machine both may find no healthy API within ten seconds, and give up: they are started again."""
        self._spawn(*words, log=log)
        at = len(self.processes) - 1
        first = self.processes[at]

        def look_after() -> None:
            process = first
            for _ in range(TIMES):
                process.wait()
                time.sleep(1)
                if self._stopping:
                    return
                process = self.processes[at] = self._begin(*first.args, log=log)  # type: ignore[misc]

        threading.Thread(target=look_after, name=f"looks after {log}", daemon=True).start()

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        write_key(self.folder / "sa.key")
        cluster = {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        }  # fmt: skip
        self.kubeconfig.write_text(json.dumps(config))

    def add_kubelet(self, port: int) -> None:
        """Makes the server believe that the program at this port is the kubelet of a node with a pod on it."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        self.run("create", "-f", "-", manifest=node)
        self.run("patch", "node", "node", "--subresource=status", "--patch", json.dumps({"status": status}))
        pod = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "speaker"},
            "spec": {
                "nodeName": "node", "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "c", "image": "i"}],
            },
        }  # fmt: skip
        while self.run("get", "serviceaccount", "default", check=False).returncode:
            time.sleep(0.1)
        self.run("create", "-f", "-", manifest=pod)

    def stop(self) -> None:
        self._stopping = True
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes.clear()


class Danlu(Server):
    name = "danlu up"
    flags: tuple[str, ...] = ()

    @property
    def load_flags(self) -> list[str]:
        pair = self.folder / "pki/admin"
        return ["-server", f"https://127.0.0.1:{self.port}", "-cert", f"{pair}.crt", "-key", f"{pair}.key"]

    def launch(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._spawn(
            sys.executable,
            "-m",
            "danlu",
            "up",
            "--data-dir",
            self.folder,
            "--port",
            self.port,
            *self.flags,
            log="danlu",
        )

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
            process.wait()
        self.processes.clear()
