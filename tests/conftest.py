"""What tests of every level share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.running import Danlu


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kubeconfig", help="run tests/conformance on this cluster instead of on an embedded one")
    parser.addoption(
        "--real", action="store_true", help="run tests/conformance on a real control plane (scripts/conformance)"
    )
    parser.addoption("--rewrite", action="store_true", help="write golden files (*.output.yaml) anew; then read the diff")


@pytest.fixture(scope="session")
def need_kubectl() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH; scripts/setup --dev builds it")


@pytest.fixture(scope="module")
def make_danlu(need_kubectl: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Danlu]]:
    """Starts as many as a test asks for; all are stopped at the end."""
    made: list[Danlu] = []

    def make(
        *flags: str, user: int | None = None, start: bool = True, variables: dict[str, str] | None = None
    ) -> Danlu:
        folder = tmp_path_factory.mktemp("danlu")
        if user is not None:
            for parent in [folder, *folder.parents]:
                if parent == Path("/tmp"):
                    break
                parent.chmod(parent.stat().st_mode | 0o755)
        danlu = Danlu(folder, *flags, user=user, variables=variables)
        made.append(danlu)
        if start:
            danlu.up()
        return danlu

    yield make
    for danlu in made:
        danlu.command("down", check=False)
