"""`danlu operator` as processes of their own before a real kube-apiserver: two replicas, rights, a server that goes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.servers import RealControlPlane
from tests.operator.install.conftest import Kubectl, programs
from tests.running import until

from danlu.kinds import platformroles, registry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_S = 90.0
JOBS, PODS = 20, 3  # pods of each


class ApiServer(RealControlPlane):
    def launch(self) -> None:
        self.launch_api()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    plane = ApiServer(tmp_path_factory.mktemp("real"), programs("kubernetes", "etcd"))
    try:
        plane.start()
        plane.run("create", "serviceaccount", "default")  # what the controller manager would do
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def kubectl(real: RealControlPlane) -> Kubectl:
    return Kubectl(real)


class Replica:
    def __init__(self, name: str, kubeconfig: Path, folder: Path, *options: str) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        words = ["operator", "--kubeconfig", str(kubeconfig), "--lease-duration", "3", "--log-format", "json", *options]
        with self._log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "danlu", *words], stderr=output, env={**os.environ, "POD_NAME": name}
            )

    def lines(self) -> list[dict[str, str]]:
        """Each is an object of its own."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def said(self, text: str) -> list[str]:
        return [line["message"] for line in self.lines() if text in line["message"]]

    def page(self, path: str) -> tuple[int, str]:
        found = re.search(r"http://\S+$", self.said("health and metrics at ")[0])
        assert found
        try:
            with urllib.request.urlopen(found[0] + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture
def start(real: RealControlPlane, tmp_path: Path) -> Iterator[Callable[..., Replica]]:
    started: list[Replica] = []

    def make(name: str, *options: str, kubeconfig: Path | None = None) -> Replica:
        started.append(Replica(name, kubeconfig or real.kubeconfig, tmp_path, *options))
        return started[-1]

    yield make
    for one in started:
        one.process.terminate()
        one.process.wait(30)


def wait(what: str, look: Callable[[], Any]) -> Any:
    return until(what, look, WAIT_S)


def job(number: int) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}
    roles = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": PODS - 1, "template": template}}
    return {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": f"job-{number}"},
        "spec": {"pytorchReplicaSpecs": roles},
    }  # fmt: skip


def of_account(name: str, real: RealControlPlane, kubectl: Kubectl, folder: Path) -> Path:
    """A kubeconfig."""
    known = yaml.safe_load(real.kubeconfig.read_text())
    known["users"][0]["user"] = {"token": kubectl("create", "token", name).stdout.decode().strip()}
    made = folder / f"{name}.yaml"
    made.write_text(yaml.safe_dump(known))
    return made


def without_writing_pods(rule: dict[str, Any]) -> dict[str, Any]:
    return {**rule, "verbs": ["get", "list", "watch"]} if rule["resources"] == ["pods"] else rule


def pods(kubectl: Kubectl) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in kubectl.get("pods")["items"]}


def test_what_is_missing_is_named_with_the_command_that_mends_it(
    start: Callable[..., Replica], real: RealControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    replica = start("weak", kubeconfig=of_account("default", real, kubectl, tmp_path))
    (said,) = wait("it to say so", lambda: replica.said("leases.coordination.k8s.io"))
    assert "the operator's role lacks it; `danlu install` grants it" in said
    whole = start("whole", "--no-leader-election")
    (said,) = wait("it to say so", lambda: whole.said("pytorchjobs.kubeflow.org is not served here"))
    assert "`danlu install --crds-only` adds it" in said
    assert replica.process.poll() is None
    assert whole.process.poll() is None
    assert len(replica.said("leases.coordination.k8s.io")) == 1, "once a minute"


def test_a_replica_that_is_killed_is_replaced_and_nothing_is_doubled(
    start: Callable[..., Replica], real: RealControlPlane, kubectl: Kubectl
) -> None:
    danlu = [sys.executable, "-m", "danlu", "install", "--crds-only", "--yes", "--kubeconfig", str(real.kubeconfig)]
    subprocess.run(danlu, check=True, stdout=subprocess.DEVNULL)
    replicas = {name: start(name) for name in ("one", "two")}

    def leader() -> str:
        leases = kubectl.get("leases")["items"]
        return next((one["spec"].get("holderIdentity", "").partition("_")[0] for one in leases), "")

    first = replicas[wait("a leader", leader)]
    second = next(one for one in replicas.values() if one is not first)
    wait("it to work", lambda: first.page("/readyz") == (200, "ok: leading\n"))
    wait("the other to know", lambda: second.page("/readyz") == (200, "ok: another replica leads\n"))
    kubectl("create", "-f", "-", manifest={"apiVersion": "v1", "kind": "List", "items": [job(n) for n in range(JOBS)]})
    before = wait("some pods", lambda: pods(kubectl))
    first.process.send_signal(signal.SIGKILL)
    wait("the other to lead", lambda: leader() == second.name)
    after = wait("all pods", lambda: (found := pods(kubectl)) and len(found) >= JOBS * PODS and found)
    assert len(after) == JOBS * PODS
    assert {name: after.get(name) for name in before} == before, "what the first made is taken up, not made anew"
    kubectl("create", "-f", "-", manifest=job(JOBS))
    wait("pods of a new job", lambda: len(pods(kubectl)) == (JOBS + 1) * PODS)
    _, metrics = second.page("/metrics")
    assert "danlu_leader 1" in metrics
    assert 'danlu_reconcile_errors_total{kind="PyTorchJob"} 0' in metrics


def test_a_right_that_is_taken_from_a_running_operator(
    start: Callable[..., Replica], real: RealControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    """The jobs that it concerns say so, with the command that mends it, until it is given back."""
    whole = platformroles.operator_role(registry.REGISTRY)
    cut = {**whole, "rules": [without_writing_pods(rule) for rule in whole["rules"]]}
    kubectl("apply", "-f", "-", manifest=whole)
    kubectl("create", "serviceaccount", "robbed")
    kubectl(
        "create",
        "clusterrolebinding",
        "robbed",
        f"--clusterrole={platformroles.OPERATOR}",
        "--serviceaccount=default:robbed",
    )
    options = ("--no-leader-election", "--kinds", "PyTorchJob,PyTorchTrainingJob")
    start("robbed", *options, kubeconfig=of_account("robbed", real, kubectl, tmp_path))

    def told(name: str) -> dict[str, Any]:
        found = kubectl.get(f"pytorchjob/{name}").get("status") or {}
        return next((one for one in found.get("conditions", ()) if one["type"] == "Blocked"), {})

    kubectl("create", "-f", "-", manifest=job(100))
    wait("its pods", lambda: {"job-100-master-0", "job-100-worker-1"} <= pods(kubectl).keys())
    kubectl("apply", "-f", "-", manifest=cut)
    kubectl("create", "-f", "-", manifest=job(101))
    fewer = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}}
    kubectl("patch", "pytorchjob", "job-100", "--type=merge", "-p", json.dumps(fewer))
    said = {name: wait(f"{name} to say it", partial(told, name))["message"] for name in ("job-100", "job-101")}
    assert 'cannot delete resource "pods"' in said["job-100"]
    assert 'cannot create resource "pods"' in said["job-101"]
    assert all("`danlu install`" in message for message in said.values())

    def warned() -> bool:
        found = [one for one in kubectl.get("events")["items"] if "`danlu install`" in one["message"]]
        return {one["involvedObject"]["name"] for one in found} == said.keys()

    wait("events that say it, too", warned)
    kubectl("apply", "-f", "-", manifest=whole)
    wait("both to be free", lambda: not told("job-100") and not told("job-101"))
    wait(
        "what they were to do", lambda: "job-100-worker-1" not in pods(kubectl) and "job-101-worker-1" in pods(kubectl)
    )


def test_a_server_that_goes_is_told_once_and_waited_for(start: Callable[..., Replica], real: RealControlPlane) -> None:
    """The last of this file: the server does not come back."""
    replica = start("patient")
    wait("it to work", lambda: replica.said("waiting for the lease") and replica.page("/readyz")[0] == 200)
    real.processes[1].kill()
    wait("it to see that", lambda: replica.page("/readyz")[0] == 503)
    tried = re.compile(r'danlu_api_requests_total\{code="none",verb="(?:get|update)"\} (\d+)')

    def attempts() -> int:
        return sum(map(int, tried.findall(replica.page("/metrics")[1])))

    wait("several attempts", lambda: attempts() >= 2)
    assert len(replica.said("cannot be reached")) == 1
    assert replica.process.poll() is None
