"""The cluster: its programs in the order of their start, and the end of all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from danlu.operator.install.manifests import OPERATOR
from danlu.operator.install.options import NAMESPACE
from tests.cluster import building, configuration, images, network, residue
from tests.cluster.place import ADDRESS, API, FAKE, NODE, PODS, ROOT, SERVICES, Place, Trouble
from tests.cluster.processes import Processes

READY_S = 120.0
# How long a node may be silent. Nodes that tests make up never speak, and tests on a busy machine take their time.
GRACE = "--node-monitor-grace-period"
ETCD = "http://127.0.0.1:2379"


class Cluster:
    def __init__(self, place: Place, path: str) -> None:
        self.place = place
        self.path = path
        self.processes = Processes(place, path)

    # -- use

    @property
    def environment(self) -> dict[str, str]:
        """For commands that use the cluster."""
        return {**os.environ, "PATH": f"{ROOT / '.venv/bin'}:{self.path}", "KUBECONFIG": str(self.place.kubeconfig)}

    def run(self, *words: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """A command with the cluster's network and kubeconfig."""
        settings = {"capture_output": True, "text": True, "env": self.environment, **options}
        done: subprocess.CompletedProcess[str] = subprocess.run([*self.place.prefix, *words], **settings)
        if check and done.returncode != 0:
            raise Trouble(f"{' '.join(words)} ended with {done.returncode}: {done.stdout or ''}{done.stderr or ''}")
        return done

    def kubectl(self, *words: str, stdin: Any = None, check: bool = True) -> str:
        text = stdin if isinstance(stdin, str) else json.dumps(stdin) if stdin is not None else ""
        return self.run("kubectl", *words, check=check, input=text).stdout

    # -- life

    def up(self, say: Callable[[str], None]) -> None:
        residue.record(self.place)
        store = images.store(self.path)
        configuration.write_before(self.place, self.path)
        network.make(self.place)
        residue.make_cgroups(self.place)
        say("starting etcd, kube-apiserver, containerd and the registry")
        self._start_base(store)
        self._until(
            "the API server's certificate", (self.place.folder / "certs/apiserver.crt").exists, "kube-apiserver"
        )
        configuration.write_kubeconfigs(self.place)
        self._until("the API server", self._answers, "kube-apiserver")
        say("starting controller manager, scheduler, kubelet, kube-proxy, CoreDNS and the volume provisioner")
        self._start_rest()
        for objects in (configuration.storage(), configuration.small_machine()):
            self.kubectl("apply", "-f", "-", stdin=objects)
        self._until("the node to be Ready", self._node_ready, "kubelet")

    def _start_base(self, store: images.Store) -> None:
        folder, start = self.place.folder, self.processes.start
        start(
            "etcd", "etcd", "--data-dir", folder / "etcd", "--listen-client-urls", ETCD,
            "--advertise-client-urls", ETCD, "--unsafe-no-fsync",  # it is thrown away; disks are slow
        )  # fmt: skip
        start(
            "kube-apiserver", "kube-apiserver", "--etcd-servers", ETCD, "--bind-address", ADDRESS,
            "--advertise-address", ADDRESS, "--secure-port", API.rpartition(":")[2], "--cert-dir", folder / "certs",
            "--service-cluster-ip-range", SERVICES, "--token-auth-file", folder / "tokens.csv",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", folder / "sa.pub", "--service-account-signing-key-file", folder / "sa.key",
            "--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction", "--allow-privileged",
            "--kubelet-preferred-address-types", "InternalIP", "--feature-gates", _gates(),
            "--runtime-config", "scheduling.k8s.io/v1alpha2=true",
        )  # fmt: skip
        start("containerd", "containerd", "--config", folder / "containerd.toml")
        start(
            "registry", sys.executable, "-m", "tests.cluster.registry", store.folder, store.base, self.place.built,
            ADDRESS, 5000,
            PYTHONPATH=f"{ROOT}:{ROOT / 'src'}",
        )  # fmt: skip

    def _start_rest(self) -> None:
        folder, start, kubeconfig = self.place.folder, self.processes.start, self.place.kubeconfig
        start(
            "kube-controller-manager", "kube-controller-manager", "--kubeconfig", kubeconfig, "--leader-elect=false",
            "--bind-address", "127.0.0.1", "--kube-api-qps", 2000, "--kube-api-burst", 4000,
            "--service-account-private-key-file", folder / "sa.key", "--root-ca-file", folder / "certs/apiserver.crt",
            "--use-service-account-credentials", "--node-monitor-period", "1s", GRACE, "300s",
            "--cluster-cidr", PODS, "--feature-gates", _gates(),
        )  # fmt: skip
        start(
            "kube-scheduler", "kube-scheduler", "--config", folder / "scheduler.yaml", "--bind-address", "127.0.0.1",
            "--feature-gates", _gates(),
        )  # fmt: skip
        self._until("containerd", lambda: self.place.containerd_socket.exists(), "containerd")
        start(
            "kubelet", "kubelet", "--config", folder / "kubelet.yaml", "--kubeconfig", folder / "kubelet.kubeconfig",
            "--root-dir", folder / "kubelet", "--hostname-override", NODE, "--node-ip", ADDRESS,
        )  # fmt: skip
        start("kube-proxy", "kube-proxy", "--config", folder / "kube-proxy.yaml")
        start("coredns", "coredns", "-conf", folder / "Corefile")
        start(  # nodes that carry its label are fake: it plays their kubelets
            "kwok", "kwok", "--kubeconfig", kubeconfig, "--config", ROOT / "benchmarks/kwok.yaml",
            "--manage-nodes-with-label-selector", f"{FAKE}=yes", "--node-lease-duration-seconds", 40,
            "--server-address", "127.0.0.1:10247",
        )  # fmt: skip
        start(
            "local-path-provisioner", "local-path-provisioner", "start", "--kubeconfig", kubeconfig,
            "--config", folder / "storage.json", "--provisioner-name", configuration.PROVISIONER,
            "--namespace", "kube-system", "--helper-image", "busybox", "--helper-pod-file", folder / "helperPod.yaml",
            "--configmap-name", "local-path-config", "--service-account-name", "default",
        )  # fmt: skip

    def install(self, say: Callable[[str], None]) -> None:
        """Danlu, as its document tells it: the image, then `danlu install`. Again: with what has been changed since."""
        say("building the console's pages and Danlu's image")
        builder = building.Builder(images.store(self.path), self.place)
        image = builder.build("danlu")
        say("danlu install")
        there = self.kubectl("get", "deployment", OPERATOR, "-n", NAMESPACE, "-o", "name", "--ignore-not-found")
        words = ("--image", builder.by_content(image)) if there else ()
        self.run(sys.executable, "-m", "danlu", "install", "--yes", "--gang", "kube", *words, capture_output=False)

    def down(self) -> list[str]:
        """Ends everything, whatever state it is in; what is left all the same."""
        for name in reversed([*self.processes.recorded()]):
            self.processes.stop(name, how=9)
        residue.sweep(self.place)
        network.remove(self.place)
        return residue.left(self.place)

    def wait_for_api(self) -> None:
        self._until("the API server", self._answers, "kube-apiserver")

    def wait_for_node(self) -> None:
        self._until("the node to be Ready", self._node_ready, "kubelet")

    # -- waiting

    def _answers(self) -> bool:
        return "ok" in self.kubectl("get", "--raw", "/readyz", check=False)

    def _node_ready(self) -> bool:
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        return self.kubectl("get", "node", NODE, "-o", f"jsonpath={path}", check=False) == "True"

    def _until(self, what: str, look: Callable[[], bool], needs: str) -> None:
        ends = time.monotonic() + READY_S
        while not look():
            if not self.processes.running(needs) or time.monotonic() > ends:
                raise Trouble(f"{what} did not come; {needs} said last:\n{self.processes.log(needs)}")
            time.sleep(0.1)


def _gates() -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in configuration.GATES.items())
