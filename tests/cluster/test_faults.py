"""What breaks in a cluster: pods, the API server, the operator, a node. Jobs end right, nothing is made twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.operator.install.options import NAMESPACE
from tests.cluster.cluster import GRACE, Cluster
from tests.cluster.conftest import Space
from tests.cluster.place import NODE
from tests.kinds.jobs import job, role

pytestmark = pytest.mark.timeout(420)
JOBS = 100


def sleeping(name: str, seconds: float, workers: int = 1, **pod: Any) -> dict[str, Any]:
    """A job of real containers that do nothing for a while."""
    script = f"import time; print('begun', flush=True); time.sleep({seconds})"
    roles = {
        "Master": role("PyTorchJob", script, restart="OnFailure", **pod),
        "Worker": role("PyTorchJob", script, workers, restart="OnFailure", **pod),
    }
    return job("PyTorchJob", name, roles, runPolicy={"cleanPodPolicy": "None"})


def identities(space: Space) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in space.all_pods()}


def test_a_deleted_pod_is_made_again(space: Space) -> None:
    what = space.submit(sleeping("torn", 15))
    space.until(what, "Running")
    space.danlu.wait("both pods", lambda: len(space.bound()) == 2)
    before = identities(space)
    space.danlu.kubectl("delete", "pod", "torn-worker-0", "--wait=true")
    space.danlu.wait(
        "the worker to be another pod",
        lambda: identities(space).get("torn-worker-0") not in (None, before["torn-worker-0"]),
    )
    space.until(what, "Succeeded")
    after = identities(space)
    assert set(after) == set(before)
    assert after["torn-master-0"] == before["torn-master-0"]


def test_jobs_live_through_a_restart_of_the_api_server(space: Space) -> None:
    what = space.submit(sleeping("deaf", 20, workers=2))
    space.until(what, "Running")
    space.danlu.wait("all pods to run", lambda: len(space.bound()) == 3)
    before = identities(space)
    space.cluster.processes.stop("kube-apiserver", signal.SIGKILL)
    time.sleep(3)  # long enough for everybody to notice
    space.cluster.processes.again("kube-apiserver")
    space.cluster.wait_for_api()
    space.until(what, "Succeeded")
    assert identities(space) == before, "the pods are those of before, none was made twice"


def test_the_operator_is_killed_in_the_middle_of_a_hundred_submissions(space: Space) -> None:
    for number in range(3):
        space.add_fake_node(str(number))
    made: dict[str, set[str]] = {}
    stop = threading.Event()
    watching = threading.Thread(target=watch_pods, args=(space, made, stop), daemon=True)
    watching.start()
    killed = 0
    for number in range(0, JOBS, 10):
        submit_many(space, range(number, number + 10))
        if number == JOBS // 2:
            killed = kill_leader(space)
    assert killed, "no operator was found to kill"

    def done() -> bool:
        states = space.danlu.kubectl("get", "pytorchjobs", "--no-headers").splitlines()
        return len(states) == JOBS and all(" Succeeded " in f"{line} " for line in states)

    space.danlu.wait(f"{JOBS} jobs to succeed", done, 240)
    names = {f"many-{number}-{role}-0" for number in range(JOBS) for role in ("master", "worker")}
    space.danlu.wait("the watch to have told of all pods", lambda: names <= set(made))
    stop.set()
    watching.join()
    assert set(made) == names
    twice = {name: uids for name, uids in made.items() if len(uids) > 1}
    assert not twice, f"made more than once: {twice}"
    owners = json.loads(space.danlu.kubectl("get", "pytorchjobs", "-o", "json"))["items"]
    known = {one["metadata"]["uid"] for one in owners}
    orphans = [
        pod["metadata"]["name"] for pod in space.all_pods() if pod["metadata"]["ownerReferences"][0]["uid"] not in known
    ]
    assert not orphans
    space.danlu.kubectl("delete", "pytorchjobs", "--all", "--wait=false")
    space.danlu.wait("their pods to go with them", lambda: not space.all_pods(), 120)


def submit_many(space: Space, numbers: range) -> None:
    items = []
    for number in numbers:
        where = space.on_fake_nodes()
        roles = {"Master": role("PyTorchJob", "", **where), "Worker": role("PyTorchJob", "", **where)}
        for one in roles.values():
            one["template"]["metadata"] = {"labels": {"benchmark/ends": "yes"}}
        items.append(job("PyTorchJob", f"many-{number}", roles, runPolicy={"cleanPodPolicy": "None"}))
    space.danlu.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def watch_pods(space: Space, made: dict[str, set[str]], stop: threading.Event) -> None:
    """Every pod that ever was in the namespace: name → uids. A watch that breaks is begun anew."""
    path = "{.metadata.name}{' '}{.metadata.uid}{'\\n'}"
    command = ["kubectl", "-n", space.name, "get", "pods", "--watch", "-o", f"jsonpath={path}"]
    while not stop.is_set():
        with subprocess.Popen(command, env=space.danlu.environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            threading.Thread(target=end_when, args=(stop, process), daemon=True).start()
            for line in process.stdout:
                name, _, uid = line.strip().partition(" ")
                if uid:  # what breaks a watch is told in it, too, and is no pod
                    made.setdefault(name, set()).add(uid)


def end_when(stop: threading.Event, process: subprocess.Popen[str]) -> None:
    stop.wait()
    process.kill()


def kill_leader(space: Space) -> int:
    """As an out-of-memory killer would: no last words."""
    holder = "jsonpath={.items[*].spec.holderIdentity}"
    pod = space.danlu.kubectl("get", "leases", "-n", NAMESPACE, "-o", holder).partition("_")[0]
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if f"HOSTNAME={pod}" in variables and "operator" in words:
                os.kill(int(folder.name), signal.SIGKILL)
                return int(folder.name)
    return 0


@pytest.fixture
def quick_to_miss(cluster: Cluster) -> Iterator[None]:
    """A node counts as lost after ten seconds of silence."""
    before = cluster.processes.recorded()["kube-controller-manager"]["words"]
    cluster.processes.again("kube-controller-manager", {GRACE: "10s"})
    yield
    cluster.processes.again("kube-controller-manager", {GRACE: before[before.index(GRACE) + 1]})


def test_a_node_that_dies(space: Space, quick_to_miss: None) -> None:
    """Its kubelet stops. Pods that may leave are told to; the job waits, says so, and ends when the node is back."""
    soon = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    ]
    space.add_fake_node("other")  # where no node at all answers, Kubernetes believes itself cut off and evicts nobody
    what = space.submit(sleeping("stranded", 25, tolerations=soon))
    space.until(what, "Running")
    space.danlu.wait("both pods to run here", lambda: set(space.bound().values()) == {NODE})
    before = identities(space)
    space.cluster.processes.stop("kubelet", signal.SIGKILL)
    try:
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        space.danlu.wait(
            "the node to be missed", lambda: space.danlu.kubectl("get", "node", NODE, "-o", ready) != "True"
        )
        space.danlu.wait(
            "its pods to be told to leave",
            lambda: all(pod["metadata"].get("deletionTimestamp") for pod in space.all_pods()),
        )
        assert space.state(what) not in ("Succeeded", "Failed")
    finally:
        space.cluster.processes.again("kubelet")
        space.cluster.wait_for_node()
    space.until(what, "Succeeded")
    after = identities(space)
    assert set(after) == set(before), "one pod for each replica"
