"""`danlu` as its user sees it: what each command prints, and one clear line for each thing that goes wrong."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
import yaml
from tests.running import ORDINARY, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu(start=False)


@pytest.fixture(scope="module")
def running(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu()


def refused(danlu: Danlu, *words: str, code: int = 1) -> str:
    """The one line that a command which cannot work says."""
    done = danlu.run(sys.executable, "-m", "danlu", *words, check=False)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert done.stdout == ""
    assert re.fullmatch(r"danlu: .*\n", done.stderr), f"not one line: {done.stderr}"
    return done.stderr.removeprefix("danlu: ").rstrip("\n")


# -- up, status, down


def test_up_says_where_things_are_and_what_to_paste(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu(start=False)
    said = danlu.up().splitlines()
    assert re.fullmatch(r"Danlu [\d.]+ is up: a Kubernetes v1\.36 at https://127\.0\.0\.1:\d+", said[0])
    assert f"  data      {danlu.data}" in said
    assert f"  export KUBECONFIG={danlu.kubeconfig}" in said
    assert any(re.fullmatch(r"  console   http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{48}", line) for line in said)
    # It is ready when the command returns: the very next one works, with the line that was to be pasted.
    line = next(line for line in said if "export KUBECONFIG" in line)
    nodes = danlu.run("bash", "-c", f"unset KUBECONFIG; {line}; kubectl get nodes --no-headers").stdout
    assert re.search(r"\sReady\s", nodes)
    assert "v1.36" in danlu.kubectl("version")
    assert stat.S_IMODE(danlu.data.stat().st_mode) == 0o700, "it holds the keys of the cluster"
    assert stat.S_IMODE(danlu.kubeconfig.stat().st_mode) == 0o600


def test_up_in_the_foreground_ends_with_control_c(danlu: Danlu) -> None:
    command = f"{sys.executable} -m danlu up --data-dir {danlu.folder}/fg --port 0; echo code $?"
    said = danlu.terminal(command, when="export KUBECONFIG=", keys="\x03")
    assert "Paste this to use it:" in said
    assert "stopping; pods end within their grace periods" in said
    assert said.rstrip().endswith("code 0")
    assert "Traceback" not in said


def test_status(running: Danlu, danlu: Danlu) -> None:
    said = running.command("status").stdout
    facts = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert list(facts) == [
        "state",
        "url",
        "console",
        "trust",
        "pid",
        "since",
        "version",
        "data",
        "kubeconfig",
        "pods",
        "limits",
    ]
    assert facts["state"] == "running"
    assert len({re.match(r"\S+\s+", line).end() for line in said.splitlines()}) == 1  # type: ignore[union-attr]
    assert json.loads(running.command("status", "--json").stdout)["url"] == facts["url"]
    nothing = danlu.command("status", check=False)
    assert nothing.returncode == 3
    assert nothing.stdout.startswith("state      not running; `danlu up` starts it\n")


def test_a_second_up_says_who_is_running(running: Danlu) -> None:
    said = refused(running, "up", "--data-dir", str(running.data), "--port", "0")
    assert said.startswith(f"already running on {running.data} (pid {running.pid()}, https://127.0.0.1:")
    assert refused(running, "up", "--detach", "--data-dir", str(running.data), "--port", "0").startswith("already")
    assert running.kubectl("get", "nodes")


def test_danlu_home_is_the_data_directory(running: Danlu) -> None:
    said = running.run("env", f"DANLU_HOME={running.data}", sys.executable, "-m", "danlu", "kubeconfig").stdout
    assert said == f"{running.kubeconfig}\n"
    homeless = running.run(sys.executable, "-m", "danlu", "status", check=False).stdout
    assert f"data       {running.home}/.danlu\n" in homeless


def test_down(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu()
    danlu.kubectl("create", "configmap", "stays")
    pid = danlu.pid()
    assert danlu.command("down").stdout == f"stopped (was pid {pid}); all objects and volumes stay in {danlu.data}\n"
    assert danlu.command("down").stdout == f"danlu does not run on {danlu.data}; nothing to stop\n"
    danlu.up()
    assert danlu.kubectl("get", "configmap", "stays", "-o", "name") == "configmap/stays\n"


# -- what cannot work


def test_a_taken_port(danlu: Danlu) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for more in ([], ["--detach"]):
            said = refused(danlu, "up", "--data-dir", str(danlu.folder / "taken"), "--port", port, *more)
            assert said == f"port {port} of 127.0.0.1 is taken; choose another with --port (0: any free one)"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "99999"], "--port 99999 is not a port; choose 1 to 65535, or 0 for any free one"),
        (["--port", "-1"], "--port -1 is not a port"),
        (["--port", "x"], "--port: 'x' is not a whole number; `danlu up --help` tells more"),
        (["--nodes", "0"], "--nodes: 0 nodes; choose 1 to 500"),
        (["--nodes", ""], "--nodes: no node is named"),
        (["--nodes", "a;a"], "--nodes: two nodes have the same name"),
        (["--nodes", "Big:cpu=1"], "--nodes: 'Big' is not a name for a node"),
        (["--nodes", "a:cpu=lots"], "--nodes: 'lots' is not an amount of cpu; write for instance cpu=2 or cpu=500m"),
        (["--nodes", "a:cpu=-1"], "--nodes: cpu=-1: a node needs more than that"),
        (["--nodes", "a:gpu=0.5"], "--nodes: gpu=0.5: GPUs come whole"),
        (["--nodes", "a:disk=1Gi"], "--nodes: 'disk' is not known; a node has cpu, memory and gpu"),
        (["--fake-gpus", "-1"], "--fake-gpus must be ≥ 0, not -1"),
        (["--images", "some"], "--images: 'some' is none of lenient, strict; `danlu up --help` tells more"),
        (["--wat"], "there is no option --wat; `danlu up --help` tells more"),
    ],
)
def test_bad_options(danlu: Danlu, words: list[str], said: str) -> None:
    assert refused(danlu, "up", *words, code=2).startswith(said)
    assert not (danlu.home / ".danlu").exists(), "nothing was made"


def test_addresses_of_other_machines(danlu: Danlu) -> None:
    where = ("--data-dir", str(danlu.folder / "host"), "--port", "0")
    assert refused(danlu, "up", "--host", "192.0.2.1", *where).startswith("--host 192.0.2.1 is no address of this")


def test_a_file_in_place_of_the_directory(danlu: Danlu) -> None:
    file = danlu.folder / "file"
    file.write_text("precious")
    for command in ("up", "status", "down", "kubeconfig", "images"):
        said = refused(danlu, command, "--data-dir", str(file))
        assert said == f"{file} is a file, not a directory; choose another with --data-dir or DANLU_HOME"
    assert file.read_text() == "precious"


def test_a_directory_that_cannot_be_written(danlu: Danlu) -> None:
    said = refused(danlu, "up", "--data-dir", "/proc/danlu", "--port", "0")
    assert said.startswith("cannot write to /proc/danlu: ")
    assert said.endswith("; choose another with --data-dir or DANLU_HOME")


def test_a_directory_of_another_account(make_danlu: Callable[..., Danlu], running: Danlu) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can try this as another account")
    other = make_danlu(user=ORDINARY, start=False)
    other.data = running.data
    for command in ("up", "status", "down"):
        done = other.command(command, check=False)
        assert done.returncode == 1
        assert "belongs to another account" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_directory_of_a_newer_danlu(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu()
    danlu.down()
    with sqlite3.connect(danlu.data / "store.db") as database:
        # With its check, as that one would have written it: without, the number is a flipped bit and is mended.
        for fact in (("format", 99), ("format_check", crc32(b"danlu format 99"))):
            database.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", fact)
    database.close()
    before = (danlu.data / "store.db").read_bytes()
    said = refused(danlu, "up", "--data-dir", str(danlu.data), "--port", "0")
    assert said == (
        f"{danlu.data}/store.db was written by a newer Danlu (format 99, this one knows 2); "
        "update Danlu or choose another --data-dir"
    )
    assert (danlu.data / "store.db").read_bytes() == before


def test_a_directory_that_is_damaged(danlu: Danlu) -> None:
    folder = danlu.folder / "damaged"
    folder.mkdir(mode=0o700)
    (folder / "store.db").write_bytes(b"this is no database at all, but it is there " * 100)
    said = refused(danlu, "up", "--data-dir", str(folder), "--port", "0")
    assert said == (f"cannot use {folder}/store.db: file is not a database; move it away and `danlu up` begins anew")
    assert (folder / "store.db").read_bytes().startswith(b"this is no database")


# -- nodes and images


def test_nodes_by_number_and_by_description(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--nodes", "3")
    names = danlu.kubectl("get", "nodes", "-o", "name").split()
    assert names == ["node/node-0", "node/node-1", "node/node-2"]
    danlu.down()
    danlu = make_danlu("--nodes", "small:cpu=500m,memory=1Gi;big:cpu=16,memory=64Gi,gpu=8")
    columns = "custom-columns=N:.metadata.name,C:.status.allocatable.cpu,M:.status.allocatable.memory"
    shown = danlu.kubectl("get", "nodes", "--no-headers", "-o", columns + r",G:.status.allocatable.nvidia\.com/gpu")
    rows = {row.split()[0]: row.split()[1:] for row in shown.splitlines()}
    assert rows["big"][0] == "16"
    assert rows["big"][2] == "8"
    assert rows["small"][0] == "500m"
    assert rows["small"][2] in ("<none>", "0")
    danlu.down()


def test_strict_images_fail_to_be_pulled(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--images", "strict")
    danlu.kubectl("run", "x", "--image=registry.example/unknown:1", "--", "true")
    waiting = ("get", "pod", "x", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
    reason = danlu.wait("the refusal", lambda: danlu.kubectl(*waiting))
    assert reason in ("ErrImagePull", "ImagePullBackOff")
    events = danlu.wait("the event", lambda: "not in the catalogue" in danlu.kubectl("describe", "pod", "x"))
    assert events
    danlu.down()


def test_images_are_listed_built_and_removed(danlu: Danlu) -> None:
    context = danlu.folder / "context"
    context.mkdir()
    (context / "main.py").write_text("print('hello')")
    (context / "Dockerfile").write_text(
        'FROM python:3.12\nRUN echo here > /made\nCOPY main.py /app/\nCMD ["python3"]\n'
    )
    built = danlu.command("images", "build", "-t", "me/app:1", str(context))
    assert re.fullmatch(r"me/app:1: sha256:[0-9a-f]{64}, on the environment default of this machine\n", built.stdout)
    assert "line 2: RUN echo here > /made\n" in built.stderr
    assert (
        "line 2: RUN echo here > /made (as before)\n"
        in danlu.command("images", "build", "-t", "me/app:1", str(context)).stderr
    )
    assert re.search(r"^me/app:1 +itself, put here by hand", danlu.command("images").stdout, re.M)
    data = ("--data-dir", str(danlu.data))
    assert "is built on the environment" in refused(danlu, "images", "save", "me/app:1", "-o", "/dev/null", *data)
    assert danlu.command("images", "remove", "me/app:1").stdout == "removed image me/app:1\n"
    assert "nor among your own entries" in refused(danlu, "images", "remove", "me/app:1", *data)
    assert refused(danlu, "images", "build", "-t", "x", "/nowhere", *data).startswith("there is no /nowhere/Dockerfile")
    assert refused(danlu, "images", "build", "nothing", *data).startswith(
        "there is no environment 'nothing'; there are"
    )
    assert refused(danlu, "images", "build", *data, code=2).startswith("images build needs an environment, or -t NAME")
    (context / "Dockerfile").write_text("FROM python\nFRY eggs\n")
    said = refused(danlu, "images", "build", "-t", "x", str(context), *data)
    assert said == f"{context}/Dockerfile: line 2: FRY is not a Dockerfile instruction"
    (context / "Dockerfile").write_text("FROM python\n")
    (danlu.data / "images.yaml").write_text("images: [")
    assert "images.yaml is not valid YAML: yaml: line " in refused(
        danlu, "images", "build", "-t", "x", str(context), *data
    )


# -- kubeconfig

MINE = """apiVersion: v1
kind: Config
clusters:
- name: work
  cluster:
    server: https://work.example
contexts:
- name: work
  context:
    cluster: work
    user: me
    namespace: team
current-context: work
users:
- name: me
  user:
    token: secret
"""


@pytest.fixture
def mine(running: Danlu) -> Iterator[Path]:
    path = running.home / ".kube/config"
    path.parent.mkdir(exist_ok=True)
    path.write_text(MINE)
    yield path
    path.unlink()


def test_kubeconfig_is_merged_and_the_rest_is_kept(running: Danlu, mine: Path) -> None:
    said = running.command("kubeconfig", "--merge").stdout
    assert said == f"{mine} now has the context `danlu`, and it is the current one\n"
    merged, before = yaml.safe_load(mine.read_text()), yaml.safe_load(MINE)
    for section in ("clusters", "contexts", "users"):
        assert merged[section][: len(before[section])] == before[section]
        assert [entry["name"] for entry in merged[section]][1:] == ["danlu"]
    nodes = running.run("env", "-u", "KUBECONFIG", "kubectl", "get", "nodes").stdout
    assert "Ready" in nodes
    once = mine.read_text()
    running.command("kubeconfig", "--merge")
    assert mine.read_text() == once, "a second time changes nothing"


def test_kubeconfig_merge_can_keep_the_context_and_takes_another_file(running: Danlu, mine: Path) -> None:
    running.command("kubeconfig", "--merge", "--keep-context")
    assert yaml.safe_load(mine.read_text())["current-context"] == "work"
    other = running.home / "new/config"
    other.parent.mkdir()
    running.command("kubeconfig", "--merge", "--into", str(other))
    assert yaml.safe_load(other.read_text())["current-context"] == "danlu"
    assert stat.S_IMODE(other.stat().st_mode) == 0o600


def test_kubeconfig_that_cannot_be_understood_is_left_alone(running: Danlu, mine: Path) -> None:
    mine.write_text("just: [some, text")
    said = refused(running, "kubeconfig", "--merge", "--data-dir", str(running.data))
    assert str(mine) in said
    assert mine.read_text() == "just: [some, text"


def test_kubeconfig_before_the_first_start(danlu: Danlu) -> None:
    said = refused(danlu, "kubeconfig", "--data-dir", str(danlu.folder / "fresh"))
    assert said == f"there is no {danlu.folder}/fresh/kubeconfig yet; `danlu up` makes it"


# -- help


def test_help(danlu: Danlu) -> None:
    overview = danlu.run(sys.executable, "-m", "danlu", "--help").stdout
    assert max(map(len, overview.splitlines())) <= 100
    for command in ("up", "down", "status", "kubeconfig", "images", "version"):
        assert re.search(rf"^  {command} +\S", overview, re.M)
        text = danlu.run(sys.executable, "-m", "danlu", command, "--help").stdout
        assert "--data-dir DIR" in text
        assert max(map(len, text.splitlines())) <= 100
    empty = danlu.run(sys.executable, "-m", "danlu", check=False)
    assert (empty.returncode, empty.stdout) == (2, overview)
    assert refused(danlu, "fly", code=2) == "there is no command 'fly'; `danlu --help` lists them"
    for words in (["version"], ["--version"]):
        said = danlu.run(sys.executable, "-m", "danlu", *words).stdout
        assert re.fullmatch(r"danlu [\d.]+ \(serves the API of Kubernetes v1\.36\)\n", said)


def test_output_into_a_closed_pipe_is_no_mistake(danlu: Danlu) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m danlu images | true"],
        capture_output=True,
        text=True,
        env=danlu.environment,
    )
    assert done.stderr == ""
