"""A whole API server in this process, without controllers or nodes; and kubectl to talk to it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings


@pytest.fixture
def settings(tmp_path: Path) -> ClusterSettings:
    """Override in a test module to start more of the cluster."""
    return ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False)


@pytest.fixture
async def cluster(settings: ClusterSettings) -> AsyncIterator[Cluster]:
    cluster = Cluster(settings)
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return cluster.client


# kubectl before 1.33 may read the first, empty message of a stream before it has opened the stream.
NOTED_BY_KUBECTL = re.compile(r"^E\d{4} .*websocket\.go:\d+\] Unknown stream id \d, discarding message\n", re.M)
Kubectl = Callable[..., Awaitable[subprocess.CompletedProcess[str]]]


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Kubectl:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not on PATH; scripts/setup builds it")

    async def run(*words: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(cluster.directory.kubeconfig), "HOME": str(tmp_path)}
        process = await asyncio.create_subprocess_exec(program, *words, stdin=-1, stdout=-1, stderr=-1, env=environment)
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
        said = NOTED_BY_KUBECTL.sub("", err.decode())
        result = subprocess.CompletedProcess(words, process.returncode or 0, out.decode(), said)
        if check and result.returncode:
            raise AssertionError(f"kubectl {' '.join(words)} failed: {result.stderr}")
        return result

    return run
