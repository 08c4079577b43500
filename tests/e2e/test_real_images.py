"""Servers from Debian packages, built into images by the test, run by their usual manifests: two replicas each."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ociimages import MadeImage
from tests.running import ORDINARY, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ASKED = (
    "--recurse",
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
)
REDIS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: redis}
spec:
  replicas: 2
  selector: {matchLabels: {app: redis}}
  template:
    metadata: {labels: {app: redis}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: redis
          image: example.com/redis:7
          ports: [{containerPort: 6379}]
          readinessProbe: {exec: {command: [redis-cli, ping]}, periodSeconds: 2, timeoutSeconds: 20}
---
apiVersion: v1
kind: Service
metadata: {name: redis}
spec:
  selector: {app: redis}
  ports: [{port: 6379}]
"""


def debian_image(folder: Path, package: str, **config: object) -> MadeImage:
    """The files of a package and of all that it depends on; none of their scripts is run."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("no apt-get and dpkg-deb on this machine")
    told = subprocess.run(["apt-cache", "depends", *ASKED, package], capture_output=True, text=True, check=False)
    wanted = [line for line in told.stdout.splitlines() if re.match(r"[a-z0-9]", line)]
    got = subprocess.run(["apt-get", "download", *wanted], cwd=folder, capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"Debian's packages of {package} cannot be had here: {got.stderr[-200:]}")
    tree = folder / "tree"
    for file in sorted(folder.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(file), str(tree)], check=True)
    for left_out in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(tree / left_out, ignore_errors=True)
    (tree / "data").mkdir()
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nredis:x:999:999::/data:/bin/sh\n")
    (tree / "etc/group").write_text("root:x:0:\nredis:x:999:\n")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(tree, arcname=".")
    return MadeImage(dict(config), [packed.getvalue()])


@pytest.mark.parametrize("user", [None, ORDINARY], ids=["own account", "ordinary account"])
def test_redis_runs_and_two_replicas_coexist(
    make_danlu: Callable[..., Danlu], tmp_path: Path, user: int | None
) -> None:
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can become another account")
    image = debian_image(
        tmp_path, "redis-server", User="redis", WorkingDir="/data", StopSignal="SIGINT",
        # An IPv6-only socket on :: is the machine's, where pods have no network namespace.
        Cmd=["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""],
    )  # fmt: skip
    danlu = make_danlu(user=user)
    if "own file tree" not in danlu.command("status").stdout:
        pytest.skip("this machine allows no namespaces, and an image needs them")
    archive = danlu.folder / "redis.tar"
    archive.write_bytes(image.build(packed=False).docker_archive("example.com/redis:7"))
    assert danlu.command("images", "load", str(archive)).stdout == "loaded example.com/redis:7\n"
    danlu.kubectl("apply", "-f", "-", stdin=REDIS)
    danlu.kubectl("rollout", "status", "deployment/redis", "--timeout=240s", timeout=250)
    pods = danlu.kubectl("get", "pods", "-l", "app=redis", "-o", "name").split()
    assert len(pods) == 2
    for number, pod in enumerate(pods):
        assert danlu.kubectl("exec", pod, "--", "redis-cli", "set", "who", str(number)).strip() == "OK"
    said = [danlu.kubectl("exec", pod, "--", "redis-cli", "get", "who").strip() for pod in pods]
    assert said == ["0", "1"], "each answers on its own address"
    assert danlu.kubectl("exec", pods[0], "--", "redis-cli", "-h", "redis", "ping").strip() == "PONG"
    assert "itself, put here by hand" in danlu.command("images").stdout
    assert "ImageSubstituted" not in danlu.kubectl("events")
    danlu.down()
