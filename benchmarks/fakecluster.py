"""A real control plane with fake nodes (kwok), and the operators that are compared on it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from servers import ROOT, RealControlPlane, cpu_seconds, free_port, proportional_bytes

from danlu.client.client import Client
from danlu.client.config import load
from danlu.client.http import HttpTransport
from danlu.meta.wellknown import NODE

WEBHOOK_CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")  # the training operator looks nowhere else
AT_ONCE = 16  # requests: each has a connection of its own
READY_SECONDS = 180  # on a busy machine; a quiet one takes seconds
# In life the API server has machines of its own. Here all share two cores, and a server that gets no processor for some
# 50 ms drops its watchers; they come again, kwok from the very beginning, and that would be what is measured.
ALONE = ("etcd", "kube-apiserver")
NICENESS = 10  # everybody else's, where that would happen
AUDIT = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}  # fmt: skip


class FakeCluster(RealControlPlane):
    name = "Kubernetes 1.36.3 + etcd + kwok"

    def __init__(self, folder: Path, path: str, nodes: int, *, audit: bool = False, crowded: bool = False) -> None:
        """`crowded`: so much is to be done that the API server's clients, operators too, have to yield to it."""
        super().__init__(folder, path)
        self.nodes = nodes
        self.niceness = NICENESS if crowded else 0
        self.audit = folder / "audit.log" if audit else None
        if self.audit:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "audit.json").write_text(json.dumps(AUDIT))
            self.apiserver_flags = ("--audit-policy-file", folder / "audit.json", "--audit-log-path", self.audit)

    def launch(self) -> None:
        """On a busy machine a controller manager that finds no healthy API within ten seconds would give up."""
        self.launch_api()
        ends = time.monotonic() + READY_SECONDS
        while self.run("get", "--raw", "/healthz", check=False).returncode and time.monotonic() < ends:
            time.sleep(0.2)
        self.launch_controllers()

    def start(self) -> float:
        taken = super().start()
        self._spawn(
            "kwok", "--kubeconfig", self.kubeconfig, "--config", ROOT / "benchmarks/kwok.yaml", "--manage-all-nodes",
            "--node-lease-duration-seconds", 120, "--v", "WARN", log="kwok",
        )  # fmt: skip
        asyncio.run(self._add_nodes())
        return taken

    def _begin(self, *words: object, log: str) -> subprocess.Popen[bytes]:
        process = super()._begin(*words, log=log)
        if words[0] not in ALONE:
            os.setpriority(os.PRIO_PROCESS, process.pid, self.niceness)
        return process

    async def _add_nodes(self) -> None:
        room = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
        async with self.client() as client:
            made = [
                {
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"},
                    "status": {"capacity": room, "allocatable": room},
                }
                for number in range(self.nodes)
            ]  # fmt: skip
            for first in range(0, len(made), AT_ONCE):
                await asyncio.gather(*(client.create(NODE, node) for node in made[first : first + AT_ONCE]))
            ends = time.monotonic() + READY_SECONDS
            while time.monotonic() < ends:
                found = (await client.list(NODE)).items
                if len([node for node in found if not node["spec"].get("taints")]) == self.nodes:
                    return
                await asyncio.sleep(0.2)
        raise RuntimeError("the fake nodes did not become ready")

    def api_cpu(self) -> float:
        """Seconds of processor time that kube-apiserver has used."""
        return cpu_seconds(self.processes[1].pid)

    def client(self) -> open_client:
        return open_client(self.kubeconfig)

    def requests(self, agent: str) -> Counter[str]:
        """What the audit log has of a user agent: by verb and resource. A lease that is renewed is no job's request."""
        assert self.audit is not None
        found: Counter[str] = Counter()
        for line in self.audit.read_text().splitlines():
            entry = json.loads(line)
            what = entry.get("objectRef") or {}
            if entry["userAgent"].startswith(agent) and what.get("resource") != "leases":
                sub = f"/{what['subresource']}" if what.get("subresource") else ""
                found[f"{entry['verb']} {what.get('resource', entry['requestURI'])}{sub}"] += 1
        return found


class open_client:
    """A client of our own for what the benchmark does, for as long as a block."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = Client(HttpTransport(load(kubeconfig), "benchmark"))

    async def __aenter__(self) -> Client:
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


class OperatorProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def memory(self) -> int:
        return proportional_bytes(self.process.pid)

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)


@contextmanager
def danlu(cluster: FakeCluster, *flags: str) -> Iterator[OperatorProcess]:
    from danlu.kinds import registry

    async def install() -> None:
        async with cluster.client() as client:
            await registry.install(client)

    asyncio.run(install())
    port = free_port()
    words = [sys.executable, "-m", "danlu", "operator", "--kubeconfig", str(cluster.kubeconfig)]
    with _process(cluster, [*words, "--listen", f"127.0.0.1:{port}", *flags], "danlu-operator") as operator:
        _wait(f"http://127.0.0.1:{port}/readyz", operator.process, "leading")
        yield operator


@contextmanager
def kubeflow(cluster: FakeCluster) -> Iterator[OperatorProcess]:
    """Tuned: its default limits of 20 requests a second would hide everything else."""
    _prepare_kubeflow(cluster)
    health = free_port()
    words = [
        "training-operator", "--kube-api-qps", "1000", "--kube-api-burst", "2000", "--controller-threads", "8",
        "--metrics-bind-address", f"127.0.0.1:{free_port()}", "--health-probe-bind-address", f"127.0.0.1:{health}",
        "--webhook-server-port", str(free_port()), "--zap-log-level", "error",
    ]  # fmt: skip
    more = {"POD_NAMESPACE": "kubeflow", "MY_POD_NAMESPACE": "kubeflow", "KUBECONFIG": str(cluster.kubeconfig)}
    with _process(cluster, words, "training-operator", PATH=cluster.path, **more) as operator:
        _copy_certificates(cluster)
        _wait(f"http://127.0.0.1:{health}/readyz", operator.process)
        yield operator


def _prepare_kubeflow(cluster: FakeCluster) -> None:
    for file in sorted(_kubeflow_definitions(cluster.path).glob("kubeflow.org_*.yaml")):
        cluster.run("apply", "--server-side", "-f", str(file))
    cluster.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    cluster.run("create", "namespace", "kubeflow")
    secret = {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "training-operator-webhook-cert", "namespace": "kubeflow"},
    }  # fmt: skip
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validator.training-operator.kubeflow.org"},
        "webhooks": [{
            "name": "validator.pytorchjob.training-operator.kubeflow.org", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "training-operator", "namespace": "kubeflow"}},
            "namespaceSelector": {"matchLabels": {"benchmark/never": "true"}},
            "rules": [{
                "apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pytorchjobs"],
            }],
        }],
    }  # fmt: skip
    for manifest in (secret, webhook):
        cluster.run("create", "-f", "-", manifest=manifest)


def _kubeflow_definitions(path: str) -> Path:
    """Beside the program, so that its folder is all that another machine needs."""
    program = shutil.which("training-operator", path=path)
    assert program is not None, "training-operator is not on PATH"
    beside = Path(program).parent / "crds"
    if not beside.exists():
        source = subprocess.run(
            ["go", "mod", "download", "-json", "github.com/kubeflow/training-operator@v1.9.3"],
            capture_output=True, check=True,
        )  # fmt: skip
        shutil.copytree(Path(json.loads(source.stdout)["Dir"]) / "manifests/base/crds", beside)
    return beside


def _copy_certificates(cluster: FakeCluster) -> None:
    """In a pod the kubelet would bring the Secret's files."""
    WEBHOOK_CERTIFICATES.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends:
        found = cluster.run("get", "secret", "training-operator-webhook-cert", "-n", "kubeflow", "-o", "json")
        data: dict[str, Any] = json.loads(found.stdout).get("data") or {}
        if len(data) >= 4:
            for name, content in data.items():
                (WEBHOOK_CERTIFICATES / name).write_bytes(base64.b64decode(content))
            return
        time.sleep(0.2)
    raise RuntimeError("the training operator made no certificates")


@contextmanager
def _process(cluster: FakeCluster, words: list[str], name: str, **more: str) -> Iterator[OperatorProcess]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}
    with (cluster.folder / f"{name}.log").open("ab") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=environment)
    os.setpriority(os.PRIO_PROCESS, process.pid, cluster.niceness)
    try:
        yield OperatorProcess(process)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], word: str = "") -> None:
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if word in answer.read().decode():
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{url} did not become ready")
