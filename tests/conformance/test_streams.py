"""logs, exec, attach, cp, port-forward."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.servers import free_port
from tests.conformance.conftest import Kube

pytestmark = pytest.mark.node

Make = Callable[..., dict[str, Any]]


def test_logs(kube: Kube, pod: Make) -> None:
    two = pod("two", "for i in 1 2 3 4 5; do echo line $i; done")
    two["spec"]["containers"].append({"name": "other", "image": "busybox", "command": ["sh", "-c", "echo from other"]})
    both = pod("both", "echo line 1; echo problem >&2; echo line 2")
    kube.apply(two, both, pod("slow", "for i in 1 2 3; do echo tick $i; sleep 0.3; done"))
    with kube.started("logs", "-f", "slow", "--pod-running-timeout=20s") as following:
        said, _ = following.communicate(timeout=30)
    if "waiting to start" in said:  # asked too early, as on any cluster
        said = kube("logs", "-f", "slow")
    assert said.split() == ["tick", "1", "tick", "2", "tick", "3"]
    kube.finished("two")
    assert kube("logs", "two", "-c", "main").splitlines() == [f"line {i}" for i in range(1, 6)]
    assert kube("logs", "two", "-c", "other") == "from other\n"
    assert kube("logs", "two", "-c", "main", "--tail=2").splitlines() == ["line 4", "line 5"]
    assert kube("logs", "two", "-c", "main", "--limit-bytes=6") == "line 1"
    stamped = kube("logs", "two", "-c", "main", "--timestamps", "--tail=1")
    stamp, rest = stamped.split(" ", 1)
    assert (stamp[4], stamp[10], stamp[-1], rest) == ("-", "T", "Z", "line 5\n")
    assert len(kube("logs", "two", "-c", "main", "--since=1h").splitlines()) == 5
    assert kube("logs", "two", "-c", "main", "--since-time=2099-01-01T00:00:00Z") == ""
    everything = kube("logs", "-l", "app=two", "--all-containers", "--prefix")
    assert "[pod/two/other] from other" in everything
    assert "container nothing is not valid for pod two" in kube.fails("logs", "two", "-c", "nothing")
    assert 'previous terminated container "main" in pod "two" not found' in kube.fails(
        "logs", "two", "-c", "main", "-p"
    )
    kube.finished("both")
    lines = kube("logs", "both").splitlines()
    assert sorted(lines) == ["line 1", "line 2", "problem"]
    assert lines.index("line 1") < lines.index("line 2"), "each stream keeps its order; between them there is none"


def test_logs_before_there_are_any(kube: Kube, pod: Make) -> None:
    missing = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x"}}}]}
    kube.apply(pod("waits", **missing))
    path = "{.status.containerStatuses[0].state.waiting.reason}"
    kube.until("pod/waits", path, "CreateContainerConfigError")
    problem = kube.fails("logs", "waits")
    assert 'container "main" in pod "waits" is waiting to start: CreateContainerConfigError' in problem
    assert 'pods "nobody" not found' in kube.fails("logs", "nobody")
    kube.apply(pod("nowhere", spec={"nodeSelector": {"danlu.test/none": "yes"}}))
    assert kube("logs", "nowhere", "--follow") == "", "without a node the log is empty, and that is no error"


def test_exec(kube: Kube, pod: Make, tmp_path: Path) -> None:
    kube.apply(pod("a", "export INSIDE=1; sleep 600", env=[{"name": "GIVEN", "value": "yes"}], workingDir="/tmp"))
    kube.running("a")
    assert kube("exec", "a", "--", "echo", "hello") == "hello\n"
    assert kube("exec", "a", "--", "sh", "-c", "echo $GIVEN; pwd; hostname").split() == ["yes", "/tmp", "a"]
    failed = kube.run("exec", "a", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (failed.returncode, failed.stdout) == (7, "out\n")
    assert "err\n" in failed.stderr
    assert "command terminated with exit code 7" in failed.stderr
    assert kube("exec", "-i", "a", "--", "cat", stdin="through stdin\n") == "through stdin\n"
    assert len(kube("exec", "-i", "a", "--", "wc", "-c", stdin="x" * 300_000).split()) == 1
    assert "/no/such/program" in kube.fails("exec", "a", "--", "/no/such/program")
    assert "container nothing is not valid for pod a" in kube.fails("exec", "a", "-c", "nothing", "--", "true")
    # cp is tar through exec
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("copied" * 1000)
    kube("cp", str(tmp_path / "folder"), "a:/tmp/there")
    assert kube("exec", "a", "--", "cat", "/tmp/there/file") == "copied" * 1000
    kube("cp", "a:/tmp/there/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "copied" * 1000


@pytest.mark.skipif(shutil.which("script") is None, reason="`script` gives kubectl a terminal and is not installed")
def test_a_terminal(kube: Kube, pod: Make) -> None:
    kube.apply(pod("a"))
    kube.running("a")
    # The size comes a moment after the program has begun.
    size = 'for i in 1 2 3 4 5 6 7 8 9; do test "$(stty size)" = "40 100" && break; sleep 0.2; done; stty size'
    command = f"kubectl -n {kube.namespace} exec -it a -- sh -c 'test -t 0 && echo a terminal; {size}; exit 5'"
    done = subprocess.run(
        ["script", "-qec", f"stty rows 40 cols 100; {command}", "/dev/null"],
        env=kube.environment, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "a terminal" in done.stdout
    assert "40 100" in done.stdout
    assert done.returncode == 5


def test_attach_and_run(kube: Kube, pod: Make) -> None:
    made = pod("reads", "while read line; do echo got $line; done", stdin=True, stdinOnce=True)
    kube.apply(made)
    kube.running("reads")
    assert "got one" in kube("attach", "-i", "reads", stdin="one\ntwo\n")
    kube.finished("reads")
    assert kube("logs", "reads").splitlines() == ["got one", "got two"]
    done = kube.run(
        "run", "once", "--image=busybox", "--restart=Never", "--rm", "-i", "--command", "--", "sh", "-c", "cat; exit 3",
        stdin="typed in\n", check=False,
    )  # fmt: skip
    assert "typed in" in done.stdout
    assert done.returncode == 3
    kube.gone("pod/once")


def test_port_forward(kube: Kube, pod: Make) -> None:
    port = free_port()
    env = [{"name": "PORT", "value": str(port)}]
    # On every address: a runtime forwards to the pod's own loopback.
    serve = "cd /tmp; echo forwarded > index.html; exec python3 -m http.server $PORT"
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    web = pod(
        "web",
        serve,
        image="python:3.12-slim",
        env=env,
        readinessProbe=probe,
        ports=[{"name": "web", "containerPort": port}],
    )
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web"}]},
    }  # fmt: skip
    kube.apply(web, service)
    kube.running("web")
    for target, remote in (("pod/web", port), ("service/web", 80)):
        with kube.started("port-forward", target, f":{remote}") as forward:
            assert forward.stdout is not None
            local = forward.stdout.readline().split()[2].rsplit(":", 1)[1]
            for _ in range(3):
                with urllib.request.urlopen(f"http://127.0.0.1:{local}/index.html", timeout=10) as answer:
                    assert answer.read() == b"forwarded\n"
    through = kube("get", "--raw", f"/api/v1/namespaces/{kube.namespace}/pods/web:{port}/proxy/index.html")
    assert through == "forwarded\n"
    through = kube("get", "--raw", f"/api/v1/namespaces/{kube.namespace}/services/web:80/proxy/index.html")
    assert through == "forwarded\n"
