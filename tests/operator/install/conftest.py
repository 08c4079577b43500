"""A real control plane for each module, and `danlu install` as people type it, in the test's own process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.servers import RealControlPlane

from danlu.cli.main import main

STARTS = 3
ACCOUNT_TRIES = 300
CACHE = Path(os.environ.get("DANLU_CACHE") or Path("~/.cache/danlu").expanduser()) / "go-binaries"


def programs(*names: str) -> str:
    """A PATH with what scripts/real-kubernetes built; skips where a part is missing."""
    folders = {name: sorted(CACHE.glob(f"{name}-v*")) for name in names}
    missing = [name for name, found in folders.items() if not found]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not built on this machine; scripts/real-kubernetes does it")
    return ":".join([*(str(found[-1]) for found in folders.values()), os.environ["PATH"]])


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    path = programs("kubernetes", "etcd")
    for _ in range(STARTS):
        plane = RealControlPlane(tmp_path_factory.mktemp("real"), path)
        try:
            plane.start()
            if _is_whole(plane):
                yield plane
                return
        finally:
            plane.stop()
    pytest.fail(f"of {STARTS} control planes none came up whole: the controller manager made no account")


def _is_whole(plane: RealControlPlane) -> bool:
    """On a busy machine the controller manager gives up when the API server is not there within seconds."""
    for _ in range(ACCOUNT_TRIES):
        if plane.run("get", "serviceaccount", "default", check=False).returncode == 0:
            return True
        if any(process.poll() is not None for process in plane.processes):
            return False
        time.sleep(0.2)
    return False


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str


Danlu = Callable[..., Said]


@pytest.fixture
def danlu(real: RealControlPlane, capsys: pytest.CaptureFixture[str]) -> Danlu:
    """`danlu WORDS` on the real control plane; another `kubeconfig` is somebody else's."""

    def run(*words: str, kubeconfig: Path | None = None) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "--kubeconfig", str(kubeconfig or real.kubeconfig)])
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return run


@dataclass(frozen=True, slots=True)
class Kubectl:
    plane: RealControlPlane

    def __call__(self, *words: str, manifest: Any = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        done = self.plane.run(*words, manifest=manifest, check=False)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done

    def get(self, *words: str) -> Any:
        return yaml.load(self("get", *words, "-o", "yaml").stdout, yaml.CSafeLoader)

    def names(self, *words: str) -> set[str]:
        return {one["metadata"]["name"] for one in self.get(*words)["items"]}


@pytest.fixture
def kubectl(real: RealControlPlane) -> Kubectl:
    return Kubectl(real)
