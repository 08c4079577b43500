"""Notebook, TensorBoard and Project on the embedded Kubernetes: the notebook is a real JupyterLab."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from tests.kinds.notebooks import ask, run_cell, token
from tests.running import ROOT, Danlu

from danlu.environments.catalogue import Catalogue

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = ROOT / "src/danlu/kinds"
BASE = "/t9k/notebooks/projects/default/name/mnist/"
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "mnist"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
WRITE_SCALARS = """
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter("/mnt/log") as writer:
    for step in range(10):
        writer.add_scalar("loss", 1 / (step + 1), step)
"""


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    if not Catalogue(Path("/nonexistent")).environments()["torch"].is_built:
        pytest.skip("the environment `torch` is not built; `danlu images build torch` makes it")
    return make_danlu("--no-console", "--nodes", "big:cpu=16,memory=16Gi")


def get(danlu: Danlu, what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(danlu.kubectl("get", what, "-o", "json"))
    return found


def ready(danlu: Danlu, what: str) -> dict[str, Any]:
    conditions = (get(danlu, what).get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "Ready"), {})


@pytest.fixture(scope="module")
def notebook(danlu: Danlu) -> dict[str, Any]:
    """Created before its claim: it says what is missing, and starts when it is there."""
    danlu.kubectl("apply", "-f", str(KINDS / "notebook/example.yaml"))
    danlu.wait(
        "the missing claim to be named", lambda: '"mnist" does not exist' in ready(danlu, "nb/mnist").get("message", "")
    )
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(CLAIM))
    danlu.wait("JupyterLab to answer", lambda: ready(danlu, "nb/mnist").get("status") == "True", timeout=120)
    return get(danlu, "nb/mnist")


def test_jupyterlab_answers_through_the_service_proxy(danlu: Danlu, notebook: dict[str, Any]) -> None:
    service = notebook["status"]["tokenSecret"].replace("notebook-", "notebook-http-")
    proxy = f"/api/v1/namespaces/default/services/{service}:http/proxy"
    assert "version" in json.loads(danlu.kubectl("get", "--raw", f"{proxy}{BASE}api"))
    page = danlu.kubectl("get", "--raw", f"{proxy}{BASE}lab?token={token(danlu, notebook)}")
    assert "<title>JupyterLab</title>" in page
    refused = danlu.fails("get", "--raw", f"{proxy}{BASE}api/kernels")
    assert refused == "Error from server (Forbidden): unknown\n", "JupyterLab's own 403"


def test_home_is_the_claim_and_terminals_are_on(danlu: Danlu, notebook: dict[str, Any]) -> None:
    secret = token(danlu, notebook)
    ask(notebook, "api/contents/hello.txt", secret, "PUT", {"type": "file", "format": "text", "content": "kept"})
    pod = notebook["status"]["pod"]["reference"]["name"]
    assert danlu.kubectl("exec", pod, "--", "sh", "-c", "cat /t9k/mnt/hello.txt; echo; echo $HOME; pwd").split() == [
        "kept", "/t9k/mnt", "/t9k/mnt",
    ]  # fmt: skip
    assert ask(notebook, "api/terminals", secret, "POST")["name"]


async def test_a_cell_runs_in_a_kernel(danlu: Danlu, notebook: dict[str, Any]) -> None:
    code = "import torch; print(torch.ones(2).sum().item())"
    assert await run_cell(notebook, token(danlu, notebook), code) == "2.0\n"


def pod_name(danlu: Danlu) -> str:
    found: str = get(danlu, "nb/mnist")["status"]["pod"]["reference"]["name"]
    return found


def test_ssh_with_a_key_from_a_secret(danlu: Danlu, notebook: dict[str, Any], tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    danlu.kubectl("create", "secret", "generic", "alice", f"--from-file=ssh-publickey={key}.pub")
    change = {"spec": {"ssh": {"enabled": True, "authorized_keys": ["alice"]}}}
    danlu.kubectl("patch", "nb", "mnist", "--type", "merge", "-p", json.dumps(change))

    def is_ready() -> bool:
        status = get(danlu, "nb/mnist")["status"]
        found = {one["type"]: one["status"] for one in status["conditions"]}
        return found.get("SSHReady") == "True" and found.get("Ready") == "True" and "ssh" in status

    danlu.wait("the SSH server", is_ready, timeout=120)
    ssh = get(danlu, "nb/mnist")["status"]["ssh"]
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    words = ["ssh", "-i", str(key), "-p", str(ssh["port"]), *options, f"me@{ssh['clusterIp']}", "pwd; exit 7"]
    danlu.wait("the log-in", lambda: subprocess.run(words, capture_output=True, timeout=30).returncode == 7)
    assert subprocess.run(words, capture_output=True, text=True, timeout=30).stdout == "/t9k/mnt\n"

    there = f"me@{ssh['clusterIp']}:large.bin"
    (tmp_path / "large.bin").write_bytes(os.urandom(1_000_000))
    copy = ["scp", "-q", "-i", str(key), "-P", str(ssh["port"]), *options]
    subprocess.run([*copy, str(tmp_path / "large.bin"), there], check=True, timeout=60)
    subprocess.run([*copy, there, str(tmp_path / "back.bin")], check=True, timeout=60)
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "large.bin").read_bytes()

    # Ports of the pod are reached through it, such as JupyterLab's.
    forward = [*words[:5], "-W", f"{get(danlu, 'pod/' + pod_name(danlu))['status']['podIP']}:8888", *options, words[-2]]
    with subprocess.Popen(forward, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as through:
        assert through.stdin is not None
        assert through.stdout is not None
        through.stdin.write(f"GET {BASE}api HTTP/1.0\r\n\r\n")
        through.stdin.flush()  # and stays open: who hangs up at once gets no answer from Jupyter's server
        answer = through.stdout.read()
    assert '"version"' in answer

    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    refused = subprocess.run([*words[:2], str(stranger), *words[3:]], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr


def test_suspended_and_resumed(danlu: Danlu, notebook: dict[str, Any]) -> None:
    danlu.kubectl("patch", "nb", "mnist", "--type", "merge", "-p", '{"spec":{"suspend":true}}')
    pod = notebook["status"]["pod"]["reference"]["name"]
    danlu.wait("the pod to go", lambda: "NotFound" in danlu.run("kubectl", "get", "pod", pod, check=False).stderr)
    assert get(danlu, "nb/mnist")["status"]["phase"] == "Suspended"
    danlu.kubectl("patch", "nb", "mnist", "--type", "merge", "-p", '{"spec":{"suspend":false}}')
    danlu.wait("it to be back", lambda: get(danlu, "nb/mnist")["status"]["phase"] == "Running", timeout=120)


def test_tensorboard_shows_scalars(danlu: Danlu, notebook: dict[str, Any]) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "writer"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {"name": "c", "image": "pytorch/pytorch", "command": ["python", "-c", WRITE_SCALARS],
                 "volumeMounts": [{"name": "d", "mountPath": "/mnt"}]},
            ],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "mnist"}}],
        },
    }  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    obj = yaml.safe_load((KINDS / "tensorboard/example.yaml").read_text())
    obj["spec"]["image"] = "pytorch/pytorch"  # the smaller of the two environments that have the program
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
    danlu.wait("TensorBoard to answer", lambda: ready(danlu, "tb/mnist").get("status") == "True", timeout=120)
    address = get(danlu, "tb/mnist")["status"]["url"]
    assert address.endswith("/t9k/tensorboards/projects/default/name/mnist/")

    def tags() -> Any:
        with urlopen(f"{address}data/plugin/scalars/tags", timeout=30) as answer:
            return json.loads(answer.read())

    danlu.wait("the scalars", lambda: any("loss" in found for found in tags().values()), timeout=120)


def test_a_tensorboard_of_logs_that_cannot_be_shown_says_so(danlu: Danlu) -> None:
    spec = {"logDir": {"http": {"url": ["http://logs"]}}}
    obj = {"apiVersion": "tensorstack.dev/v1beta1", "kind": "TensorBoard", "metadata": {"name": "far"}, "spec": spec}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
    danlu.wait("the condition", lambda: ready(danlu, "tb/far").get("reason") == "NotSupported")
    assert "http://logs" in ready(danlu, "tb/far")["message"]


def test_rstudio_says_what_is_missing(danlu: Danlu) -> None:
    template = {"spec": {"containers": [{"name": "notebook", "image": "rocker/rstudio"}]}}
    obj = {"apiVersion": "tensorstack.dev/v1beta1", "kind": "Notebook", "metadata": {"name": "r"},
           "spec": {"type": "rstudio", "template": template}}  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
    danlu.wait("the condition", lambda: "no program rserver" in ready(danlu, "nb/r").get("message", ""))
    danlu.kubectl("delete", "nb", "r")


RSERVER = """#!/usr/bin/env python3
import http.server, os, sys
flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
assert open(flags["database-config-file"]).read() == "provider=sqlite\\ndirectory=" + flags["server-data-dir"] + "\\n"
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"a stand-in for RStudio at {flags['www-root-path']}, {self.path}".encode())
http.server.HTTPServer((flags["www-address"], int(flags["www-port"])), Page).serve_forever()
"""


def test_rstudio_runs_where_it_is_installed(danlu: Danlu) -> None:
    """A stand-in for rserver, where Debian's package puts it: how it is started and reached."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r"}, "data": {"rserver": RSERVER}}
    mount = {"name": "r", "mountPath": "/usr/lib/rstudio-server/bin"}
    container = {"name": "notebook", "image": "python", "volumeMounts": [mount]}
    volume = {"name": "r", "configMap": {"name": "r", "defaultMode": 0o755}}
    template = {"spec": {"containers": [container], "volumes": [volume]}}
    obj = {"apiVersion": "tensorstack.dev/v1beta1", "kind": "Notebook", "metadata": {"name": "rs"},
           "spec": {"type": "rstudio", "template": template}}  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [config, obj]}))
    danlu.wait("the page", lambda: ready(danlu, "nb/rs").get("status") == "True")
    with urlopen(get(danlu, "nb/rs")["status"]["url"], timeout=30) as answer:
        path = "/t9k/notebooks/projects/default/name/rs"
        assert answer.read().decode() == f"a stand-in for RStudio at {path}, {path}/"
    danlu.kubectl("delete", "nb", "rs")


def test_a_project_has_a_quota(danlu: Danlu) -> None:
    danlu.kubectl("create", "namespace", "demo")
    danlu.kubectl("apply", "-f", str(KINDS / "project/example.yaml"))
    look = ("get", "proj", "demo", "-n", "demo", "-o")
    danlu.wait("the quota", lambda: danlu.kubectl(*look, "jsonpath={.status.resourceQuota.hard.pods}") == "50")
    assert danlu.kubectl("get", "ns", "-l", "project.tensorstack.dev=true", "-o", "name").split() == ["namespace/demo"]


def test_a_project_follows_its_quota_profile(danlu: Danlu) -> None:
    profile = {"apiVersion": "tensorstack.dev/v1beta1", "kind": "QuotaProfile", "metadata": {"name": "small"}}
    project = {"apiVersion": "tensorstack.dev/v1beta1", "kind": "Project", "metadata": {"name": "follows"}}
    danlu.kubectl("create", "namespace", "follows")
    stated = {**profile, "spec": {"hard": {"pods": "7"}}}
    danlu.kubectl("create", "-n", "t9k-system", "-f", "-", stdin=json.dumps(stated))
    stated = {**project, "spec": {"quotaProfile": "small"}}
    danlu.kubectl("create", "-n", "follows", "-f", "-", stdin=json.dumps(stated))
    look = ("get", "quota", "managed-project-quota", "-n", "follows", "--ignore-not-found", "-o")
    danlu.wait("the profile's limits", lambda: danlu.kubectl(*look, "jsonpath={.spec.hard.pods}") == "7")


def test_what_is_refused(danlu: Danlu) -> None:
    body = {"apiVersion": "tensorstack.dev/v1beta1", "kind": "Notebook", "metadata": {"name": "bad"}}
    good = {"template": {"spec": {"containers": [{"name": "notebook", "image": "x"}]}}}
    for problem, spec in (
        ("spec.template.spec is missing", {"template": {}}),
        ("spec.template.spec.containers is empty", {"template": {"spec": {"containers": []}}}),
        (
            "needs spec.ssh.authorized_keys",
            {**good, "ssh": {"enabled": True}},
        ),
        ('supported values: "jupyter", "rstudio"', {**good, "type": "vim"}),
    ):
        assert problem in danlu.fails("create", "-f", "-", stdin=json.dumps({**body, "spec": spec}))
