"""`kill -9` of `danlu up` at random moments: nothing acknowledged is lost, no event is missed or told twice.

The seeds are fixed and printed, so that a failure can be tried again.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import Api, Danlu
from tests.torture.kills import torture

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_nothing_acknowledged_is_lost_and_watches_are_exact(make_danlu: Callable[..., Danlu]) -> None:
    seed = 20240
    print(f"seed {seed}")
    outcome = torture(make_danlu(), seed, lambda kills: kills < 12)
    assert outcome.kills == 12


# -- pods


def pod(name: str, script: str, host: Path, **spec: object) -> str:
    """A pod whose /shared is `host` of this machine; its first deed is to write down that it started."""
    started = f"echo start >> /shared/{name}.starts; "
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sh", "-c", started + script],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    volumes = [{"name": "shared", "hostPath": {"path": str(host), "type": "Directory"}}]
    body = {"restartPolicy": "Never", "containers": [container], "volumes": volumes, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body})


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def processes(danlu: Danlu) -> list[str]:
    """All that has anything to do with this danlu: its folder is in their environment or command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                said = (entry / "environ").read_bytes() + b"\0" + (entry / "cmdline").read_bytes()
                if str(danlu.folder).encode() in said:
                    found.append(f"{entry.name} {(entry / 'cmdline').read_bytes().decode(errors='replace')}")
    return found


def counter(name: str, host: Path, danlu: Danlu) -> str:
    """Counts for as long as /shared/NAME.stop is not there; the folder of `danlu` in its environment marks it."""
    script = f"i=0; while [ ! -e /shared/{name}.stop ]; do echo $i; i=$((i+1)); sleep 0.05; done; echo last $i"
    body = json.loads(pod(name, script, host))
    body["spec"]["containers"][0]["env"] = [{"name": "MARK", "value": str(danlu.folder)}]
    return json.dumps(body)


def phase(danlu: Danlu, name: str) -> str:
    return danlu.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}", check=False)


def test_pods_go_on_while_the_server_is_down(make_danlu: Callable[..., Danlu], shared: Path) -> None:
    danlu = make_danlu()
    danlu.kubectl("apply", "-f", "-", stdin=counter("counter", shared, danlu))
    waits = "while [ ! -e /shared/go ]; do sleep 0.05; done; echo ended > /shared/ended; exit 7"
    danlu.kubectl("apply", "-f", "-", stdin=pod("exits", waits, shared))
    for name in ("counter", "exits"):
        danlu.wait(f"{name} to run", lambda name=name: lines_of(shared / f"{name}.starts"))  # type: ignore[misc]
    begun = danlu.kubectl("get", "pod", "counter", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
    for number in range(3):
        before = len(danlu.kubectl("logs", "counter").splitlines())
        danlu.kill()
        if number == 1:
            (shared / "go").touch()
            danlu.wait("the end of the pod while no server runs", lambda: lines_of(shared / "ended"))
        time.sleep(0.5)
        danlu.up()
        after = danlu.kubectl("logs", "counter").splitlines()
        assert len(after) > before + 5, "it did not go on while the server was down"
        assert phase(danlu, "counter") == "Running"
    ended = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    danlu.wait("the exit code", lambda: danlu.kubectl("get", "pod", "exits", "-o", ended) == "7")
    assert phase(danlu, "exits") == "Failed"
    (shared / "counter.stop").touch()
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/counter", "--timeout=30s")
    log = danlu.kubectl("logs", "counter").splitlines()
    assert log == [*(str(number) for number in range(len(log) - 1)), f"last {len(log) - 1}"]
    assert lines_of(shared / "counter.starts") == ["start"]
    assert lines_of(shared / "exits.starts") == ["start"]
    assert begun == danlu.kubectl("get", "pod", "counter", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
    assert "\t0" in danlu.kubectl(
        "get", "pod", "counter", "-o", "jsonpath=\t{.status.containerStatuses[0].restartCount}"
    )


def test_no_pod_runs_twice(make_danlu: Callable[..., Danlu], shared: Path) -> None:
    """Killed at random while a Job makes pods: each pod starts once, and the Job completes."""
    seed = 7
    print(f"seed {seed}")
    chance = random.Random(seed)
    danlu = make_danlu()
    template = json.loads(pod("x", "", shared))["spec"]
    work = "echo start >> /shared/$(hostname).starts; sleep 0.3; echo done >> /shared/$(hostname).ends"
    template["containers"][0]["command"] = ["sh", "-c", work]
    spec = {"completions": 12, "parallelism": 3, "backoffLimit": 20, "template": {"spec": template}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "many"}, "spec": spec}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    for _ in range(4):
        time.sleep(chance.uniform(0.05, 0.8))
        danlu.kill()
        danlu.up()
    danlu.kubectl("wait", "--for=condition=Complete", "job/many", "--timeout=60s", timeout=70)
    starts = {path.stem: lines_of(path) for path in shared.glob("*.starts")}
    assert all(lines == ["start"] for lines in starts.values()), starts
    ends = {path.stem for path in shared.glob("*.ends")}
    assert len(ends) >= 12
    pods = danlu.kubectl("get", "pods", "-l", "job-name=many", "-o", "jsonpath={.items[*].metadata.name}").split()
    assert set(starts) <= set(pods)


def test_down_leaves_nothing_running(make_danlu: Callable[..., Danlu], shared: Path) -> None:
    danlu = make_danlu()
    danlu.kubectl("apply", "-f", "-", stdin=counter("a", shared, danlu))
    # A program that does not listen, and one that left its parent: both have to go.
    stubborn = f"export MARK={danlu.folder}; trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done"
    danlu.kubectl("apply", "-f", "-", stdin=pod("b", stubborn, shared, terminationGracePeriodSeconds=1))
    for name in ("a", "b"):
        danlu.wait(f"{name} to run", lambda name=name: phase(danlu, name) == "Running")  # type: ignore[misc]
    assert len(processes(danlu)) >= 4
    said = danlu.command("down").stdout
    assert re.match(r"stopped \(was pid \d+\); all objects and volumes stay in ", said)
    assert processes(danlu) == []
    assert danlu.command("status", check=False).returncode == 3


def test_down_keeps_pods_when_asked_and_stops_what_a_crash_left(make_danlu: Callable[..., Danlu], shared: Path) -> None:
    danlu = make_danlu()
    danlu.kubectl("apply", "-f", "-", stdin=counter("a", shared, danlu))
    danlu.wait("the pod to run", lambda: lines_of(shared / "a.starts"))
    assert "its pods go on" in danlu.command("down", "--keep-pods").stdout
    assert processes(danlu) != []
    danlu.up()
    assert phase(danlu, "a") == "Running"
    danlu.kill()
    assert processes(danlu) != []
    assert "stopped 1 container that it had left behind" in danlu.command("down").stdout
    assert processes(danlu) == []
    assert lines_of(shared / "a.starts") == ["start"]
    assert "nothing to stop" in danlu.command("down").stdout


def test_down_and_up_cost_a_job_none_of_its_tries(make_danlu: Callable[..., Danlu], shared: Path) -> None:
    """Two evenings: what ran starts again in the morning, and nothing is counted, however few tries there are."""
    danlu = make_danlu()
    work = "echo start >> /shared/{name}.starts; while [ ! -e /shared/go ]; do sleep 0.1; done"

    def template(name: str, container: str, policy: str) -> dict[str, Any]:
        spec = json.loads(pod("x", "", shared))["spec"]
        spec["containers"][0] |= {"name": container, "command": ["sh", "-c", work.format(name=name)]}
        return {"spec": spec | {"restartPolicy": policy}}

    kubeflow, jobs = "kubeflow.org/v1", ("never", "onfailure", "exitcode")
    for name, policy in zip(jobs, ("Never", "OnFailure", "ExitCode"), strict=True):
        replica = {"replicas": 1, "restartPolicy": policy, "template": template(name, "pytorch", "Never")}
        spec = {"runPolicy": {"backoffLimit": 1}, "pytorchReplicaSpecs": {"Master": replica}}
        job = {"apiVersion": kubeflow, "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}
        danlu.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    plain = {"backoffLimit": 0, "template": template("plain", "c", "Never")}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}, "spec": plain}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    names = (*jobs, "plain")
    for times in (1, 2):
        for name in names:
            starts = shared / f"{name}.starts"
            danlu.wait(f"{name} to run", lambda starts=starts, times=times: len(lines_of(starts)) == times)  # type: ignore[misc]
        danlu.down()
        assert processes(danlu) == []
        danlu.up()
    (shared / "go").touch()
    for name in jobs:
        danlu.kubectl("wait", "--for=condition=Succeeded", f"pytorchjob/{name}", "--timeout=60s", timeout=70)
    danlu.kubectl("wait", "--for=condition=Complete", "job/plain", "--timeout=60s", timeout=70)
    assert {name: len(lines_of(shared / f"{name}.starts")) for name in names} == dict.fromkeys(names, 3)
    restarts = "jsonpath={.items[*].status.containerStatuses[*].restartCount}"
    assert danlu.kubectl("get", "pods", "-o", restarts).split() == ["0"] * 4
    assert danlu.kubectl("get", "job", "plain", "-o", "jsonpath={.status.failed}") == ""


# -- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "danlu", folder]).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_said_and_loses_nothing(make_danlu: Callable[..., Danlu], small_disk: Path) -> None:
    danlu = make_danlu(start=False)
    danlu.data = small_disk / "data"
    danlu.kubeconfig = danlu.data / "kubeconfig"
    danlu.up()
    api = Api(danlu.kubeconfig)
    kept: list[str] = []
    refused: dict[str, Any] = {}
    for number in range(40):
        body = {"metadata": {"name": f"c{number}"}, "data": {"filling": f"{number}:" + "x" * 700_000}}
        status, answer = api.request("POST", CONFIG_MAPS, body)
        if status == 201:
            kept.append(f"c{number}")
        else:
            refused = answer
            break
    assert kept
    assert refused["kind"] == "Status"
    assert "etcdserver: mvcc: database space exceeded" in refused["message"]
    assert api.request("GET", f"{CONFIG_MAPS}/{kept[-1]}")[0] == 200, "reading goes on"
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    after = {"metadata": {"name": "c-after"}}
    danlu.wait("the alarm to end by itself", lambda: api.request("POST", CONFIG_MAPS, after)[0] == 201)
    kept.append("c-after")
    danlu.kill()
    danlu.up()
    api = Api(danlu.kubeconfig)
    _, listed = api.request("GET", CONFIG_MAPS)
    found = [item["metadata"]["name"] for item in listed["items"] if item["metadata"]["name"].startswith("c")]
    assert sorted(found) == sorted(kept)
    assert api.request("POST", CONFIG_MAPS, {"metadata": {"name": "more"}})[0] == 201
    danlu.down()
