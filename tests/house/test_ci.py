"""`.ci/run` on machines that lack something, with every program it calls replaced: what it lets pass, and what not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.house.tree import ROOT

NO_CLUSTER = 3
KEPT = ("bash", "env", "dirname", "mktemp", "rm", "cat", "renice")


def run(
    tmp_path: Path, *, root: bool = True, apt: bool = True, go: bool = True, cluster: int = 0
) -> tuple[int, list[str]]:
    """Its exit status, and what it called."""
    called, programs, tree = tmp_path / "called", tmp_path / "bin", tmp_path / "tree"
    for folder in (programs, tree / ".ci", tree / "scripts"):
        folder.mkdir(parents=True)
    for name in KEPT:
        if (found := shutil.which(name)) is not None:
            (programs / name).symlink_to(found)
    stand_in(programs / "id", called, says="0" if root else "1000")
    stand_in(programs / "make", called)
    for name, there in (("apt-get", apt), ("go", go)):
        if there:
            stand_in(programs / name, called)
    for name, status in (("torture", 0), ("fuzz", 0), ("audit", 0), ("test-cluster", cluster)):
        stand_in(tree / "scripts" / name, called, status=status)
    shutil.copy2(ROOT / ".ci/run", tree / ".ci/run")
    done = subprocess.run([tree / ".ci/run"], env={"PATH": str(programs), "TMPDIR": str(tmp_path)}, check=False)
    return done.returncode, called.read_text().splitlines()


def stand_in(path: Path, called: Path, *, says: str = "", status: int = 0) -> None:
    shell = shutil.which("bash") or "/bin/bash"
    path.write_text(f'#!{shell}\necho "{path.name} $*" >> {called}\n{f"echo {says}" if says else ""}\nexit {status}\n')
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("root", "apt", "go", "cluster", "status"),
    [
        (True, True, True, 0, 0),
        (True, True, True, NO_CLUSTER, 1),
        (True, True, False, NO_CLUSTER, 1),  # it has lost Go, and could have it
        (False, True, True, NO_CLUSTER, 0),
        (True, False, True, NO_CLUSTER, 0),
        (False, False, False, 2, 2),  # a cluster that fails is a failure everywhere
    ],
)
def test_no_cluster_is_a_failure_where_there_could_be_one(
    tmp_path: Path, root: bool, apt: bool, go: bool, cluster: int, status: int
) -> None:
    assert run(tmp_path, root=root, apt=apt, go=go, cluster=cluster)[0] == status


def test_go_is_installed_where_that_may_be_done(tmp_path: Path) -> None:
    install = "apt-get install -qq -y --no-install-recommends golang-go"
    _, called = run(tmp_path / "lost", go=False)
    assert called.index(install) < called.index("make test")
    assert install not in run(tmp_path / "has")[1]
    assert install not in run(tmp_path / "ordinary", root=False, go=False)[1]
