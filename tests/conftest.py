"""What tests of every level share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import target
from tests.running import Danlu


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kubeconfig", help="run tests/conformance on this cluster instead of on an embedded one")
    parser.addoption(
        "--real", action="store_true", help="run tests/conformance on a real control plane (scripts/conformance)"
    )
    parser.addoption(
        "--rewrite", action="store_true", help="write golden files (*.output.yaml) anew; then read the diff"
    )


@pytest.fixture(scope="session")
def need_kubectl() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH; scripts/setup --dev builds it")


@pytest.fixture(scope="module")
def make_danlu(need_kubectl: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Danlu]]:
    """Starts as many as a test asks for; all are stopped at the end. scripts/test-cluster gives its cluster instead."""
    made: list[Danlu] = []
    others: list[Path] = []

    def make(
        *flags: str, user: int | None = None, start: bool = True, variables: dict[str, str] | None = None
    ) -> Danlu:
        if user is None:
            folder = tmp_path_factory.mktemp("danlu")
            if (place := target.place()) is not None:
                return target.OnCluster(place, folder)
        else:  # pytest keeps its own folders for itself, again with every session that starts
            folder = Path(tempfile.mkdtemp(prefix="danlu-test-"))
            folder.chmod(0o755)
            others.append(folder)
        danlu = Danlu(folder, *flags, user=user, variables=variables)
        made.append(danlu)
        if start:
            danlu.up()
        return danlu

    yield make
    for danlu in made:
        danlu.command("down", check=False)
    for folder in others:
        shutil.rmtree(folder, ignore_errors=True)
